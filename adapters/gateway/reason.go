package gateway

import (
	"cmp"
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/procurement"
)

// The bounds of what is repeated of an upstream's reason. maxSecret is how much
// more of a body is read, so that no credential is cut before it is hidden.
const (
	maxReason     = 200 // characters
	maxReasonBody = 256 // bytes
	maxSecret     = 512 // bytes
	reasonGrace   = 500 * time.Millisecond
)

// says is a copy that tells in how_to_fix what the provider said.
func (r *refusal) says(reason string) *refusal { return r.noting("the provider says: " + reason) }

// noting is a copy with more in how_to_fix, which the event feed shows.
func (r *refusal) noting(more string) *refusal {
	c := *r
	c.howToFix += "; " + more
	return &c
}

// reasonOf puts together why an upstream refused: the status, the fields in which
// proxies tell it, and a body's line of the form CODE: message. All of it is what
// a stranger wrote, so it is printable ASCII, short, and without our credential.
func reasonOf(a *http1.Answer, body []byte, cut bool, hop *procurement.Endpoint) string {
	hide := secretsOf(hop)
	parts := append([]string{strconv.Itoa(a.Status) + " " + a.Text}, a.Why...)
	for i, p := range parts {
		parts[i] = printable(p)
	}
	if line := codeLine(hide.in(printableLines(body)), cut); line != "" {
		parts = append(parts, line)
	}
	reason := hide.in(strings.Join(parts, "; "))
	return reason[:min(len(reason), maxReason)]
}

// printable replaces everything but printable ASCII by spaces.
func printable(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, s))
}

// printableLines is printable that keeps the ends of lines.
func printableLines(b []byte) string {
	lines := strings.Split(string(b), "\n")
	for i, l := range lines {
		lines[i] = printable(l)
	}
	return strings.Join(lines, "\n")
}

// codeLine finds the first line CODE or CODE: message among the first bytes of a
// body. The last line of a body that was cut is not whole, so it does not count.
func codeLine(body string, cut bool) string {
	if cut {
		body = body[:strings.LastIndexByte(body, '\n')+1]
	}
	body = body[:min(len(body), maxReasonBody)]
	for line := range strings.SplitSeq(body, "\n") {
		code, message, found := strings.Cut(line, ":")
		if isCode(code) && (!found || strings.HasPrefix(message, " ")) {
			return line
		}
	}
	return ""
}

// isCode says whether a word is like E_CAP_EXCEEDED.
func isCode(s string) bool {
	return len(s) >= 3 && s[0] >= 'A' && s[0] <= 'Z' && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
}

// secrets are texts that must not be repeated, in lower case, the longest first:
// some providers lower the user name.
type secrets []string

// secretsOf lists the credential of a hop in the forms in which it may come back.
func secretsOf(hop *procurement.Endpoint) secrets {
	var all secrets
	both := hop.User + ":" + hop.Password
	for _, s := range []string{base64.StdEncoding.EncodeToString([]byte(both)), hop.User, hop.Password,
		url.QueryEscape(hop.User), url.QueryEscape(hop.Password), url.PathEscape(hop.User), url.PathEscape(hop.Password)} {
		if s = strings.ToLower(printable(s)); s != "" && both != ":" {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return slices.Compact(all)
}

// in replaces every secret in s.
func (hide secrets) in(s string) string {
	folded := strings.ToLower(s) // of ASCII, so the bytes stay in place
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
