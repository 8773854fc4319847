package refusal

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/procurement"
)

// The bounds of what is repeated of an upstream's answer.
const (
	maxReason   = 200 // characters
	maxBodyText = 256 // bytes
	maxSecret   = 512 // bytes
)

// MaxBody is how many bytes of an answer's body FromAnswer needs: enough that
// no credential is truncated before it is replaced.
const MaxBody = maxBodyText + 2*maxSecret

// AnswerPrefix precedes the provider's reason in HowToFix.
const AnswerPrefix = "the provider answered: "

// ProviderAnswer returns a copy whose HowToFix repeats the provider's reason.
func (r *Refusal) ProviderAnswer(reason string) *Refusal { return r.Note(AnswerPrefix + reason) }

// upstreamReason composes why an upstream refused: the status, the fields in which
// proxies explain it, and the first line of the body in the form CODE: message. The
// text is untrusted input, so the result is printable ASCII in which the credential of
// the upstream proxy is replaced. truncated is set if body is not the whole body.
func upstreamReason(a *http1.Answer, body []byte, truncated bool, proxy *procurement.Endpoint) string {
	hide := secretsOf(proxy)
	parts := append([]string{strconv.Itoa(a.Status) + " " + a.Text}, a.Why...)
	for i, p := range parts {
		parts[i] = printable(p)
	}
	if line := codeLine(hide.replace(printableLines(body)), truncated); line != "" {
		parts = append(parts, line)
	}
	return hide.replace(strings.Join(parts, "; "))
}

// printable replaces every rune but printable ASCII by a space, and trims spaces.
func printable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s))
}

// printableLines applies printable to each line.
func printableLines(b []byte) string {
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n")
}

// codeLine returns the first line CODE or CODE: message among the first maxBodyText
// bytes of body, empty if there is none. The last line of a truncated body is
// incomplete and does not count.
func codeLine(body string, truncated bool) string {
	if truncated {
		body = body[:strings.LastIndexByte(body, '\n')+1]
	}
	body = body[:min(len(body), maxBodyText)]
	for line := range strings.SplitSeq(body, "\n") {
		code, message, found := strings.Cut(line, ":")
		if isCode(code) && (!found || strings.HasPrefix(message, " ")) {
			return line
		}
	}
	return ""
}

// isCode reports whether s has the form of E_CAP_EXCEEDED.
func isCode(s string) bool {
	return len(s) >= 3 && s[0] >= 'A' && s[0] <= 'Z' && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// secrets are texts that must not be repeated, in lower case because some providers
// lower the user name, the longest first.
type secrets []string

// secretsOf lists the encodings in which an answer may repeat the credential of an
// upstream proxy.
func secretsOf(proxy *procurement.Endpoint) secrets {
	var all secrets
	both := proxy.User + ":" + proxy.Password
	for _, s := range []string{base64.StdEncoding.EncodeToString([]byte(both)), proxy.User, proxy.Password,
		url.QueryEscape(proxy.User), url.QueryEscape(proxy.Password),
		url.PathEscape(proxy.User), url.PathEscape(proxy.Password)} {
		if s = strings.ToLower(printable(s)); s != "" && both != ":" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return slices.Compact(all)
}

// replace replaces every secret in s, which is ASCII, by [hidden].
func (hide secrets) replace(s string) string {
	folded := strings.ToLower(s) // keeps offsets, as s is ASCII
	var b strings.Builder
next:
	for i := 0; i < len(s); {
		for _, secret := range hide {
			if strings.HasPrefix(folded[i:], secret) {
				b.WriteString("[hidden]")
				i += len(secret)
				continue next
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}
