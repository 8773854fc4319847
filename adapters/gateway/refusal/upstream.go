package refusal

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/health"
)

// The refusals that an upstream proxy causes. None is 407: the credential that an
// upstream rejects is the operator's, not the client's.
var (
	UpstreamAuth = &Refusal{Status: 502, Code: CodeUpstreamAuth, ProxyError: "proxy_configuration_error",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the provider's proxy rejected the service's credential",
		HowToFix: "create a new session; if it happens again, contact the operator", Upstream: true, Permanent: true}
	UpstreamPayment = &Refusal{Status: 502, Code: CodeUpstreamPayment, ProxyError: "proxy_configuration_error",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the provider's proxy has no traffic left for the service",
		HowToFix: "create a new session; if it happens again, contact the operator", Upstream: true, Permanent: true}
	UpstreamRefused = &Refusal{Status: 403, Code: CodeUpstreamRefused, ProxyError: "http_request_denied",
		SOCKS:    socks5.NotAllowed,
		Message:  "the provider's proxy refuses this target",
		HowToFix: "use another target, or another product for this one", Upstream: true}
	UpstreamBusy = &Refusal{Status: 503, Code: CodeUpstreamBusy, ProxyError: "connection_limit_reached",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the provider's proxy accepts no more connections at the moment",
		HowToFix: "try again after Retry-After, with fewer connections at once", Upstream: true,
		RetryAfter: minRetryAfter}
	UpstreamFailed = &Refusal{Status: 502, Code: CodeUpstreamFailed, ProxyError: "destination_unavailable",
		SOCKS:    socks5.GeneralFailure,
		Message:  "the provider's proxy did not open the connection",
		HowToFix: "rotate the session or try again", Upstream: true,
		Evidence: health.HTTPError}
	UpstreamClosed    = UpstreamFailed.Because("the provider's proxy ended the connection before it answered")
	UpstreamMalformed = UpstreamFailed.Because("the provider's proxy sent a malformed answer")
	UpstreamTimeout   = &Refusal{Status: 504, Code: CodeUpstreamTimeout, ProxyError: "connection_timeout",
		SOCKS:    socks5.TTLExpired,
		Message:  "the target was not reached through the provider's proxy in time",
		HowToFix: "try again; if it stays silent, rotate the session", Upstream: true,
		Evidence: health.Timeout}
	UpstreamUnreachable = &Refusal{Status: 502, Code: CodeUpstreamUnreachable, ProxyError: "destination_unavailable",
		SOCKS:    socks5.HostUnreachable,
		Message:  "the provider's proxy cannot be reached",
		HowToFix: "rotate the session or try again later", Upstream: true,
		Evidence: health.HTTPError}
	UpstreamUntrusted = UpstreamUnreachable.Because("the certificate of the provider's proxy is not valid for its name")
	UpstreamNoTLS     = UpstreamUnreachable.Because("the provider's proxy does not use TLS")
	UpstreamForbidden = UpstreamUnreachable.Because("the provider's proxy has an address that must not be dialled")
)

// The bounds of Retry-After, whatever an upstream requests.
const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Minute
)

// retryAfter parses seconds or a date (RFC 9110 section 10.2.3). Anything else is
// minRetryAfter.
func retryAfter(field string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, minRetryAfter), maxRetryAfter)
}

// FromSOCKS returns the refusal that the error of socks5.Connect means, nil if err
// is nil.
func FromSOCKS(err error) *Refusal {
	var reply socks5.Reply
	switch {
	case err == nil:
		return nil
	case errors.Is(err, socks5.ErrRejected), errors.Is(err, socks5.ErrCredential):
		return UpstreamAuth
	case errors.Is(err, socks5.ErrMalformed):
		return UpstreamMalformed.Note("it is not SOCKS5")
	case !errors.As(err, &reply):
		return UpstreamClosed
	}
	ref := UpstreamFailed
	switch reply {
	case socks5.NotAllowed:
		ref = UpstreamRefused
	case socks5.NetworkUnreachable, socks5.HostUnreachable:
		ref = Unreachable
	case socks5.ConnectionRefused:
		ref = ConnectionRefused
	case socks5.TTLExpired:
		ref = UpstreamTimeout
	}
	return ref.ProviderAnswer(reply.Error())
}
