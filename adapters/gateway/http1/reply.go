package http1

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// Established answers a CONNECT whose tunnel is open. It has no fields: whatever
// follows belongs to the tunnel (RFC 9110 section 9.3.6).
const Established = "HTTP/1.1 200 Connection established\r\n\r\n"

// proxyName is how the gateway names itself in Proxy-Status.
const proxyName = "agentproxy"

// Reply is an answer of the gateway itself, after which it closes the connection.
type Reply struct {
	Status     int           // 4xx or 5xx; 407 also asks for Basic credentials
	Code       string        // public error code
	Message    string        // what happened
	HowToFix   string        // what to do about it
	ProxyError string        // error type of RFC 9209 section 2.3; empty: none is given
	RetryAfter time.Duration // rounded up to seconds; 0: no Retry-After
	Head       bool          // the request was HEAD: the body is described, not sent
	Layer      string        // whose policy refuses the target; empty: none does
	Rule       string        // of the session's policy that refuses it; empty: not shown
}

// maxReasonPhrase is how many characters a reason phrase may have.
const maxReasonPhrase = 120

// Append appends the whole reply. Its reason phrase is CODE: message, because most
// clients print nothing else of a refused CONNECT. Proxy-Status carries the message as its details
// (RFC 9209 section 2.1), with everything but printable ASCII replaced.
func (r Reply) Append(dst []byte) []byte {
	body, _ := json.Marshal(struct { // strings cannot fail
		Code     string `json:"code"`
		Message  string `json:"message"`
		HowToFix string `json:"how_to_fix"`
		Layer    string `json:"layer,omitempty"`
		Rule     string `json:"rule,omitempty"`
	}{r.Code, r.Message, r.HowToFix, r.Layer, r.Rule})
	dst = strconv.AppendInt(append(dst, "HTTP/1.1 "...), int64(r.Status), 10)
	dst = appendReason(append(dst, ' '), r.Code, r.Message)
	dst = append(dst, "\r\nContent-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\nProxy-Status: "+proxyName...)
	if r.ProxyError != "" {
		dst = append(append(dst, "; error="...), r.ProxyError...)
	}
	dst = appendString(append(dst, "; details="...), r.Message)
	if r.Status == http.StatusProxyAuthRequired {
		dst = append(dst, "\r\nProxy-Authenticate: Basic realm=\""+proxyName+"\""...)
	}
	if r.RetryAfter > 0 {
		seconds := int64((r.RetryAfter + time.Second - 1) / time.Second)
		dst = strconv.AppendInt(append(dst, "\r\nRetry-After: "...), seconds, 10)
	}
	if r.Status == http.StatusUpgradeRequired {
		dst = append(dst, "\r\nUpgrade: TLS/1.3\r\nConnection: close, Upgrade\r\n\r\n"...)
	} else {
		dst = append(dst, "\r\nConnection: close\r\n\r\n"...)
	}
	if r.Head {
		return dst
	}
	return append(dst, body...)
}

// appendReason writes CODE: message as a reason phrase (RFC 9112 section 4), with
// everything but printable ASCII replaced.
func appendReason(dst []byte, code, message string) []byte {
	start := len(dst)
	for _, c := range code + ": " + message {
		if len(dst)-start == maxReasonPhrase {
			break
		}
		if c < 0x20 || c > 0x7e {
			c = '?'
		}
		dst = append(dst, byte(c))
	}
	return dst
}

// appendString writes a quoted sf-string (RFC 8941 section 3.3.3), which is ASCII.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, c := range s {
		switch {
		case c < 0x20 || c > 0x7e:
			c = '?'
		case c == '"' || c == '\\':
			dst = append(dst, '\\')
		}
		dst = append(dst, byte(c))
	}
	return append(dst, '"')
}
