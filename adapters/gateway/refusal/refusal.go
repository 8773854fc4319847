package refusal

import (
	"errors"
	"net/http"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/diagnose"
	"agentproxy/domain/health"
)

// Refusal is one answer of the gateway itself.
type Refusal struct {
	Status     int
	Code       Code
	Message    string
	HowToFix   string
	ProxyError string       // RFC 9209 section 2.3
	SOCKS      socks5.Reply // the nearest reply of RFC 1928
	RetryAfter time.Duration
	Evidence   health.Type // what it indicates about the exit; empty: nothing
	Unobserved bool        // no event is recorded: the client did not prove to own the session
	Upstream   bool        // an upstream proxy caused it
	// UpstreamStatus is the HTTP status that the upstream proxy answered with; 0 if it did not.
	UpstreamStatus int
	Permanent      bool   // a retry will not help
	Layer          string // whose policy refuses the target; empty if none does
	Rule           string // of the session's own policy that refuses it
}

// Error returns code and message.
func (r *Refusal) Error() string { return "gateway: " + r.Code.String() + ": " + r.Message }

// Retryable reports whether the same request may succeed later without a change.
func (r *Refusal) Retryable() bool {
	switch r.Status {
	case http.StatusBadGateway:
		return !r.Permanent
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return !r.Permanent
	}
	return false
}

// Failure reports whether the target, or the path to it, failed, as opposed to a
// decision of the gateway.
func (r *Refusal) Failure() bool {
	return r.Upstream || r.Status == http.StatusBadGateway || r.Status == http.StatusGatewayTimeout
}

// Reply returns the answer in HTTP; head is set if the request was HEAD.
func (r *Refusal) Reply(head bool) http1.Reply {
	return http1.Reply{Status: r.Status, Code: r.Code.String(), Message: r.Message, HowToFix: r.HowToFix,
		ProxyError: r.ProxyError, RetryAfter: r.RetryAfter, Head: head,
		Layer: r.Layer, Rule: r.Rule}
}

// Because returns a copy with another message.
func (r *Refusal) Because(message string) *Refusal {
	c := *r
	c.Message = message
	return &c
}

// After returns a copy with a Retry-After.
func (r *Refusal) After(wait time.Duration) *Refusal {
	c := *r
	c.RetryAfter = wait
	return &c
}

// Note returns a copy with more added to HowToFix.
func (r *Refusal) Note(more string) *Refusal {
	c := *r
	c.HowToFix += "; " + more
	return &c
}

// WithoutEvidence returns a copy that indicates nothing about the exit.
func (r *Refusal) WithoutEvidence() *Refusal {
	c := *r
	c.Evidence = ""
	return &c
}

// The refusals that no upstream proxy causes.
var (
	NoCredential = &Refusal{Status: 407, Code: CodeProxyAuthRequired, Unobserved: true,
		SOCKS:    socks5.GeneralFailure,
		Message:  "the proxy user name and password are missing or do not belong to a session",
		HowToFix: "use proxy.full_url of an active session as your proxy; user name and password are part of it"}
	TooManyAuthFailures = &Refusal{Status: 429, Code: CodeTooManyAuthFailures, Unobserved: true,
		SOCKS:      socks5.GeneralFailure,
		Message:    "too many wrong credentials from this address",
		HowToFix:   "read proxy.full_url of the session again; a right password is accepted at any time",
		RetryAfter: time.Minute}
	TrafficExhausted = &Refusal{Status: 402, Code: CodeTrafficExhausted, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the traffic of this session is used up",
		HowToFix: "create a new session with POST /v1/sessions"}
	FairUseReached = &Refusal{Status: 402, Code: CodeFairUseReached, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  "this static session has used up the traffic of its fair use",
		HowToFix: "renew it with POST /v1/sessions/{session_id}/renew, which adds the fair use of the days bought"}
	TargetForbidden = &Refusal{Status: 403, Code: CodeTargetRefused, ProxyError: "destination_ip_prohibited",
		SOCKS:    socks5.NotAllowed,
		Message:  "this target cannot be reached through the gateway",
		HowToFix: "use a public address or name, and a port other than 25, 465 and 587"}
	ClientAddress = &Refusal{Status: 403, Code: CodeClientAddressRefused, ProxyError: "http_request_denied",
		SOCKS:    socks5.NotAllowed,
		Message:  "this session does not take connections from your address",
		HowToFix: "connect from one of its allowed_ips, or change them with PATCH /v1/sessions/{session_id}"}
	TLSRequired = &Refusal{Status: 426, Code: CodeTLSRequired, ProxyError: "http_request_denied", Unobserved: true,
		SOCKS:    socks5.GeneralFailure,
		Message:  "this gateway takes connections with TLS only",
		HowToFix: "use proxy.https_url of the session as your proxy"}
	SessionOver = &Refusal{Status: 410, Code: CodeSessionExpired, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  "this session has ended",
		HowToFix: "create a new session with POST /v1/sessions"}
	AddressEnded = &Refusal{Status: 410, Code: CodeSessionExpired, ProxyError: "http_request_denied",
		SOCKS:    socks5.GeneralFailure,
		Message:  "this address of the session was given back",
		HowToFix: "use another one of ip_list in GET /v1/sessions/{session_id}"}
	TooManyTunnels = &Refusal{Status: 429, Code: CodeTooManyTunnels, ProxyError: "connection_limit_reached",
		SOCKS:      socks5.GeneralFailure,
		Message:    "this session has too many connections open at once",
		HowToFix:   "close some or spread the work over more sessions",
		RetryAfter: time.Second}
	TooManyOfAgent = TooManyTunnels.Because("this account has too many connections open at once")
	ShareTaken     = TooManyTunnels.Because("the gateway is full, and this account has its share of the connections")
	TooFast        = &Refusal{Status: 429, Code: CodeTargetRateLimited, ProxyError: "connection_limit_reached",
		SOCKS:    socks5.NotAllowed,
		Message:  "this account makes too many new connections to this target a minute",
		HowToFix: "wait for the seconds in Retry-After, and keep connections open instead of making new ones"}
	TooFastShared = TooFast.Because("this account makes too many new connections a minute to the address of this " +
		"target, which names share, or to its network")
	TooManyStarts = &Refusal{Status: 429, Code: CodeConnectionRateLimited, ProxyError: "connection_limit_reached",
		SOCKS:    socks5.NotAllowed,
		Message:  "this account makes too many new connections a second",
		HowToFix: "wait for the seconds in Retry-After, and keep connections open instead of making new ones"}
	TooManyTargets = &Refusal{Status: 429, Code: CodeConnectionRateLimited, ProxyError: "connection_limit_reached",
		SOCKS:    socks5.NotAllowed,
		Message:  "this account connects to too many different targets a minute",
		HowToFix: "wait for the seconds in Retry-After, and visit fewer domains and addresses a minute"}
	StorageLimit = &Refusal{Status: 429, Code: CodeStorageLimit, ProxyError: "connection_limit_reached",
		SOCKS:      socks5.NotAllowed,
		Message:    "the service stores no more records for this account on trial at the moment",
		HowToFix:   "wait for the next UTC day, or recharge",
		RetryAfter: time.Minute}
	SessionNotReady = &Refusal{Status: 503, Code: CodeSessionNotReady, ProxyError: "destination_unavailable",
		SOCKS:      socks5.GeneralFailure,
		Message:    "this session is still being created",
		HowToFix:   "wait until its status is active",
		RetryAfter: time.Second}
	NoCapacity = &Refusal{Status: 503, Code: CodeNoCapacity, ProxyError: "proxy_internal_response",
		SOCKS:      socks5.GeneralFailure,
		Message:    "no traffic can be given to this connection right now",
		HowToFix:   "try again in a second",
		RetryAfter: time.Second}
	Unreachable = &Refusal{Status: 502, Code: CodeTargetUnreachable, ProxyError: "destination_ip_unroutable",
		SOCKS:    socks5.HostUnreachable,
		Message:  "the target cannot be reached from this exit",
		HowToFix: diagnose.FixRoute + "if it is right, rotate the session or try again later",
		Evidence: health.HTTPError}
	ConnectionRefused = &Refusal{Status: 502, Code: CodeTargetUnreachable, ProxyError: "connection_refused",
		SOCKS:    socks5.ConnectionRefused,
		Message:  "the target refused the connection",
		HowToFix: diagnose.FixRefused + "if they are right, rotate the session or try again later",
		Evidence: health.HTTPError}
	ConnectTimeout = &Refusal{Status: 504, Code: CodeTargetTimeout, ProxyError: "connection_timeout",
		SOCKS:    socks5.TTLExpired,
		Message:  "the target did not answer in time",
		HowToFix: "try again; if it stays silent, rotate the session",
		Evidence: health.Timeout}
	ConnectionReset = &Refusal{Status: 502, Code: CodeTargetUnreachable, ProxyError: "connection_terminated",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the target ended the connection before it answered",
		HowToFix: diagnose.FixReset + "rotate the session; if the port has TLS, use https://",
		Evidence: health.HTTPError}
	ResponseTimeout = &Refusal{Status: 504, Code: CodeTargetTimeout, ProxyError: "http_response_timeout",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the target received the request and did not answer in time",
		HowToFix: "try again; if it stays silent, rotate the session",
		Evidence: health.Timeout}
	NameNotFound = &Refusal{Status: 502, Code: CodeTargetUnreachable, ProxyError: "dns_error",
		SOCKS:   socks5.HostUnreachable,
		Message: "the target's name has no address", HowToFix: diagnose.FixName}
	NameTimeout = &Refusal{Status: 504, Code: CodeTargetTimeout, ProxyError: "dns_timeout",
		SOCKS:   socks5.TTLExpired,
		Message: "the target's name could not be looked up in time", HowToFix: diagnose.FixNameSilent + "did not answer"}
	OutOfSockets = NoCapacity.Because("the gateway is out of sockets for this exit and target")
)

// MalformedRequest returns the refusal of a request that http1 rejected.
func MalformedRequest(e *http1.Error) *Refusal {
	r := &Refusal{Status: e.Status, Code: CodeBadRequest, Message: e.Reason, ProxyError: e.Type,
		HowToFix: "send an HTTP/1.1 proxy request: CONNECT host:port, or an absolute http:// URI"}
	if e.Status == http.StatusRequestHeaderFieldsTooLarge {
		r.Code, r.HowToFix = CodeHeadTooLarge, "send at most 32 KiB and 128 header fields"
	}
	return r
}

// MalformedBody returns the refusal of a request whose body http1 rejected while it was sent on. It indicates nothing
// about exit and target.
func MalformedBody(e *http1.Error) *Refusal {
	r := MalformedRequest(e)
	r.HowToFix = "send the body with a Content-Length, or in chunks as RFC 9112 section 7.1 has them"
	return r
}

// MalformedResponse returns the refusal of a target's response that http1 rejected.
func MalformedResponse(e *http1.Error) *Refusal {
	return &Refusal{Status: http.StatusBadGateway, Code: CodeTargetUnreachable, Message: e.Reason, ProxyError: e.Type,
		HowToFix: diagnose.FixMalformed + "use CONNECT or another target", Evidence: health.HTTPError}
}

// From returns the refusal in err, NoCapacity if there is none.
func From(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	return NoCapacity
}
