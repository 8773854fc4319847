package http1

import (
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"

	"agentproxy/adapters/gateway/hostport"
)

// MaxAnswer is how many bytes the head of an upstream proxy's answer to CONNECT
// may have, the empty line that ends it included.
const MaxAnswer = 16 << 10

// AppendConnect appends the request to an upstream proxy for a tunnel to t (RFC
// 9110 section 9.3.6), with Basic credentials (RFC 7617) unless both are empty.
func AppendConnect(dst []byte, t hostport.Target, user, password string) []byte {
	authority := net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
	dst = append(append(dst, "CONNECT "...), authority...)
	dst = append(append(dst, " HTTP/1.1\r\nHost: "...), authority...)
	if user != "" || password != "" {
		dst = append(dst, "\r\nProxy-Authorization: Basic "...)
		dst = base64.StdEncoding.AppendEncode(dst, []byte(user+":"+password))
	}
	return append(dst, "\r\n\r\n"...)
}

// Answer is an upstream proxy's final answer to CONNECT. Its texts are the proxy's
// own: they may contain any byte but control characters, and any secret.
type Answer struct {
	Status     int
	Text       string   // the reason phrase, or the standard text of the status
	Why        []string // values of the fields in which proxies explain a refusal
	RetryAfter string   // Retry-After as it came

	body Body
}

// Open reports whether the tunnel is open: any 2xx means that (RFC 9110 section
// 9.3.6). What src holds then is the target's.
func (a *Answer) Open() bool { return 200 <= a.Status && a.Status < 300 }

// ReadAnswer reads heads up to a final one, each at most MaxAnswer bytes and at
// most MaxInterim before it. Errors are as of ReadResponse.
func ReadAnswer(src *Reader) (Answer, error) {
	// Of a refusal's body only the beginning is read, without its chunks.
	ex := Exchange{Connect: true, HTTP10: true}
	var h ResponseHead
	for range MaxInterim + 1 {
		raw, err := src.head(false, MaxAnswer)
		if err == errHeadSize {
			err = errAnswerSize
		}
		if err == nil {
			err = h.parse(raw, ex)
		}
		if err != nil {
			return Answer{}, inResponse(err)
		}
		if !h.Interim() {
			return h.answer(), nil
		}
	}
	return Answer{}, errInterims
}

func (h *ResponseHead) answer() Answer {
	a := Answer{Status: h.Status, Text: string(h.reason), body: h.Body}
	if a.Text == "" {
		a.Text = http.StatusText(a.Status)
	}
	for _, f := range h.fields {
		name, value := h.name(f), string(h.value(f))
		switch {
		case fold(name, "retry-after"):
			a.RetryAfter = value
		case value != "" && explains(name):
			a.Why = append(a.Why, value)
		}
	}
	return a
}

// explanations are the fields in which proxies explain a refusal: that of RFC 9209, and
// those of providers.
var explanations = []string{"proxy-status", "x-error", "x-error-code", "x-error-description", "x-proxy-error",
	"x-brd-err-code", "x-brd-err-msg", "x-luminati-error", "x-luminati-error-code"}

func explains(name []byte) bool {
	return slices.ContainsFunc(explanations, func(e string) bool { return fold(name, e) })
}

// errEnough ends the copy of a body once the beginning was read.
var errEnough = errors.New("http1: enough")

// beginning keeps the first bytes that are written to it.
type beginning struct {
	b    []byte
	most int
}

func (w *beginning) Write(p []byte) (int, error) {
	n := min(len(p), w.most-len(w.b))
	w.b = append(w.b, p[:n]...)
	if len(w.b) == w.most {
		return n, errEnough
	}
	return n, nil
}

// Beginning reads at most n bytes of the answer's body. truncated is true if there may
// be more, because n were read or because src failed.
func (a *Answer) Beginning(src *Reader, n int) (body []byte, truncated bool) {
	if n <= 0 || a.body.Kind == NoBody {
		return nil, false
	}
	w := &beginning{most: n}
	_, err := CopyResponse(w, nil, src, a.body, nil)
	return w.b, err != nil
}
