package gateway

import (
	"errors"
	"net/http"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/health"
)

// refusal is an answer of the gateway itself. The status says whose turn it is:
// 407 the credential, 402 the wallet, 403 the target, 410 the session is over,
// 429 too many, 502 and 504 the target, 503 us.
type refusal struct {
	status     int
	code       string
	message    string
	howToFix   string
	proxyError string       // RFC 9209 section 2.3
	socks      socks5.Reply // the nearest reply of RFC 1928
	retryAfter time.Duration
	evidence   health.Type // what it says about the exit; empty: nothing
	silent     bool        // not observed: it tells of a stranger, not of the session
	upstream   bool        // it is an upstream proxy's, see refuse_hop.go
	lasting    bool        // trying again will not help
}

func (r *refusal) Error() string { return "gateway: " + r.code + ": " + r.message }

// retryable says whether the same request can succeed later by itself.
func (r *refusal) retryable() bool {
	switch r.status {
	case http.StatusBadGateway:
		return !r.lasting
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (r *refusal) reply(head bool) http1.Reply {
	return http1.Reply{Status: r.status, Code: r.code, Message: r.message, HowToFix: r.howToFix,
		ProxyError: r.proxyError, RetryAfter: r.retryAfter, Head: head}
}

// because is a copy with another message.
func (r *refusal) because(message string) *refusal {
	c := *r
	c.message = message
	return &c
}

// The refusals. Messages are for whoever reads the event feed, too.
var (
	noCredential = &refusal{status: 407, code: "PROXY_AUTH_REQUIRED", silent: true, socks: socks5.GeneralFailure,
		message:  "no proxy user name and password, or not the ones of a session",
		howToFix: "use proxy.full_url of an active session as your proxy; user name and password are part of it"}
	tooManyGuesses = &refusal{status: 429, code: "TOO_MANY_GUESSES", silent: true, socks: socks5.GeneralFailure,
		message:    "too many wrong credentials from this address",
		howToFix:   "read proxy.full_url of the session again; a right password is accepted at any time",
		retryAfter: time.Minute}
	trafficExhausted = &refusal{status: 402, code: "TRAFFIC_EXHAUSTED", proxyError: "http_request_denied", socks: socks5.GeneralFailure,
		message:  "the traffic of this session is used up",
		howToFix: "create a new session with POST /v1/sessions"}
	targetRefused = &refusal{status: 403, code: "TARGET_REFUSED", proxyError: "destination_ip_prohibited", socks: socks5.NotAllowed,
		message:  "this target cannot be reached through the gateway",
		howToFix: "use a public address or name, and a port other than 25, 465 and 587"}
	sessionOver = &refusal{status: 410, code: "SESSION_EXPIRED", proxyError: "http_request_denied", socks: socks5.GeneralFailure,
		message:  "this session has ended",
		howToFix: "create a new session with POST /v1/sessions"}
	tooManyTunnels = &refusal{status: 429, code: "TOO_MANY_TUNNELS", proxyError: "connection_limit_reached", socks: socks5.GeneralFailure,
		message:    "this session has too many connections open at once",
		howToFix:   "close some or spread the work over more sessions",
		retryAfter: time.Second}
	sessionNotReady = &refusal{status: 503, code: "SESSION_NOT_READY", proxyError: "destination_unavailable", socks: socks5.GeneralFailure,
		message:    "this session is still being created",
		howToFix:   "wait until its status is active",
		retryAfter: time.Second}
	noCapacity = &refusal{status: 503, code: "NO_CAPACITY", proxyError: "proxy_internal_response", socks: socks5.GeneralFailure,
		message:    "no traffic can be given to this connection right now",
		howToFix:   "try again in a second",
		retryAfter: time.Second}
	targetUnreachable = &refusal{status: 502, code: "TARGET_UNREACHABLE", proxyError: "destination_ip_unroutable", socks: socks5.HostUnreachable,
		message:  "the target cannot be reached from this exit",
		howToFix: "check the address; if it is right, rotate the session or try again later",
		evidence: health.HTTPError}
	targetClosed = &refusal{status: 502, code: "TARGET_UNREACHABLE", proxyError: "connection_refused", socks: socks5.ConnectionRefused,
		message:  "the target refused the connection",
		howToFix: "check host and port; if they are right, rotate the session or try again later",
		evidence: health.HTTPError}
	targetSilent = &refusal{status: 504, code: "TARGET_TIMEOUT", proxyError: "connection_timeout", socks: socks5.TTLExpired,
		message:  "the target did not answer in time",
		howToFix: "try again; if it stays silent, rotate the session",
		evidence: health.Timeout}
	targetReset = &refusal{status: 502, code: "TARGET_UNREACHABLE", proxyError: "connection_terminated", socks: socks5.GeneralFailure,
		message:  "the target ended the connection before it answered",
		howToFix: "try again; if it happens again, rotate the session",
		evidence: health.HTTPError}
	answerSlow = &refusal{status: 504, code: "TARGET_TIMEOUT", proxyError: "http_response_timeout", socks: socks5.GeneralFailure,
		message:  "the target took the request and did not answer in time",
		howToFix: "try again; if it stays silent, rotate the session",
		evidence: health.Timeout}
	nameUnknown = &refusal{status: 502, code: "TARGET_UNREACHABLE", proxyError: "dns_error", socks: socks5.HostUnreachable,
		message: "the target's name has no address", howToFix: "check the spelling of the host name"}
	nameSilent = &refusal{status: 504, code: "TARGET_TIMEOUT", proxyError: "dns_timeout", socks: socks5.TTLExpired,
		message: "the target's name could not be looked up in time", howToFix: "try again"}
	outOfSockets = noCapacity.because("the gateway is out of sockets for this exit and target")
)

// badRequest is the refusal of a message that the wire package refused.
func badRequest(e *http1.Error) *refusal {
	r := &refusal{status: e.Status, code: "BAD_REQUEST", message: e.Reason, proxyError: e.Type,
		howToFix: "send an HTTP/1.1 proxy request: CONNECT host:port, or an absolute http:// URI"}
	if e.Status == http.StatusRequestHeaderFieldsTooLarge {
		r.code, r.howToFix = "HEAD_TOO_LARGE", "send at most 32 KiB and 128 header fields"
	}
	return r
}

// badAnswer is the refusal of an answer that the wire package refused.
func badAnswer(e *http1.Error) *refusal {
	return &refusal{status: http.StatusBadGateway, code: "TARGET_UNREACHABLE", message: e.Reason, proxyError: e.Type,
		howToFix: "the target does not speak HTTP as it should; use CONNECT, or another target", evidence: health.HTTPError}
}

// asRefusal is the refusal in an error; one that nobody declared is ours to fix.
func asRefusal(err error) *refusal {
	var r *refusal
	if errors.As(err, &r) {
		return r
	}
	return noCapacity
}
