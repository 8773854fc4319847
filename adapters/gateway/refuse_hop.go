package gateway

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/health"
)

// The refusals of upstream proxies, in our words. None is 407: the credential that
// an upstream does not take is ours, not the client's.
var (
	upstreamAuth = &refusal{status: 502, code: "UPSTREAM_AUTH", proxyError: "proxy_configuration_error", socks: socks5.GeneralFailure,
		message:  "the provider's proxy does not take the service's credential",
		howToFix: "create a new session; if it happens again, tell the operator", upstream: true, lasting: true}
	upstreamPayment = &refusal{status: 502, code: "UPSTREAM_PAYMENT", proxyError: "proxy_configuration_error", socks: socks5.GeneralFailure,
		message:  "the provider's proxy has no traffic left for the service",
		howToFix: "create a new session; if it happens again, tell the operator", upstream: true, lasting: true}
	upstreamRefused = &refusal{status: 403, code: "UPSTREAM_REFUSED", proxyError: "http_request_denied", socks: socks5.NotAllowed,
		message:  "the provider's proxy refuses this target",
		howToFix: "use another target, or another product for this one", upstream: true}
	upstreamBusy = &refusal{status: 503, code: "UPSTREAM_BUSY", proxyError: "connection_limit_reached", socks: socks5.GeneralFailure,
		message:  "the provider's proxy takes no more connections at the moment",
		howToFix: "try again after Retry-After, with fewer connections at once", upstream: true,
		retryAfter: minRetryAfter}
	upstreamFailed = &refusal{status: 502, code: "UPSTREAM_FAILED", proxyError: "destination_unavailable", socks: socks5.GeneralFailure,
		message:  "the provider's proxy did not open the connection",
		howToFix: "rotate the session or try again", upstream: true,
		evidence: health.HTTPError}
	upstreamGone      = upstreamFailed.because("the provider's proxy ended the connection before it answered")
	upstreamMalformed = upstreamFailed.because("the provider's proxy gave an answer that cannot be understood")
	upstreamTimeout   = &refusal{status: 504, code: "UPSTREAM_TIMEOUT", proxyError: "connection_timeout", socks: socks5.TTLExpired,
		message:  "the target was not reached through the provider's proxy in time",
		howToFix: "try again; if it stays silent, rotate the session", upstream: true,
		evidence: health.Timeout}
	upstreamUnreachable = &refusal{status: 502, code: "UPSTREAM_UNREACHABLE", proxyError: "destination_unavailable", socks: socks5.HostUnreachable,
		message:  "the provider's proxy cannot be reached",
		howToFix: "rotate the session or try again later", upstream: true,
		evidence: health.HTTPError}
	upstreamForbidden = upstreamUnreachable.because("the address of the provider's proxy is one that must not be dialled")
)

// The bounds of Retry-After, whatever an upstream asks for.
const (
	minRetryAfter = time.Second
	maxRetryAfter = time.Minute
)

// httpAnswered is the refusal that an answer to CONNECT means.
func httpAnswered(a *http1.Answer, now time.Time) *refusal {
	switch a.Status {
	case http.StatusProxyAuthRequired, http.StatusUnauthorized: // 401 is tinyproxy's, and nobody else can mean us
		return upstreamAuth
	case http.StatusPaymentRequired:
		return upstreamPayment
	case http.StatusForbidden:
		return upstreamRefused
	case http.StatusTooManyRequests:
		r := *upstreamBusy
		r.retryAfter = retryAfter(a.RetryAfter, now)
		return &r
	case http.StatusGatewayTimeout:
		return upstreamTimeout
	}
	return upstreamFailed
}

// retryAfter reads seconds or a date (RFC 9110 section 10.2.3); what is neither
// counts as the least.
func retryAfter(field string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(field, 10, 32); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(field); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, minRetryAfter), maxRetryAfter)
}

// socksAnswered is the refusal that the end of a SOCKS5 handshake means; nil if
// the tunnel is open.
func socksAnswered(err error) *refusal {
	var no socks5.Reply
	switch {
	case err == nil:
		return nil
	case errors.Is(err, socks5.ErrRejected), errors.Is(err, socks5.ErrCredential):
		return upstreamAuth
	case errors.Is(err, socks5.ErrMalformed):
		return upstreamMalformed.noting("it is not SOCKS5")
	case !errors.As(err, &no):
		return upstreamGone
	}
	ref := upstreamFailed
	switch no {
	case socks5.NotAllowed:
		ref = upstreamRefused
	case socks5.NetworkUnreachable, socks5.HostUnreachable:
		ref = targetUnreachable
	case socks5.ConnectionRefused:
		ref = targetClosed
	case socks5.TTLExpired:
		ref = upstreamTimeout
	}
	return ref.says(no.Error())
}
