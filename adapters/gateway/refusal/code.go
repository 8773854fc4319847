package refusal

// Code is the public error code of a refusal. The zero value is none.
type Code uint8

// The codes. Their texts are part of the public API.
const (
	CodeProxyAuthRequired Code = iota + 1
	CodeTooManyAuthFailures
	CodeTrafficExhausted
	CodeFairUseReached
	CodeTargetRefused
	CodeTargetDenied
	CodeSessionExpired
	CodeTooManyTunnels
	CodeTargetRateLimited
	CodeSessionNotReady
	CodeNoCapacity
	CodeTargetUnreachable
	CodeTargetTimeout
	CodeBadRequest
	CodeHeadTooLarge
	CodeUpstreamAuth
	CodeUpstreamPayment
	CodeUpstreamRefused
	CodeUpstreamBusy
	CodeUpstreamFailed
	CodeUpstreamTimeout
	CodeUpstreamUnreachable
	CodeUserNameParameter
	CodeWorkerDiffers
	CodeWorkerLimit
	CodeWorkerExhausted
	CodeWorkerNotFound
	CodeExitLost
	CodeClientAddressRefused
	CodeConnectionRateLimited
	CodeStorageLimit
	CodeTLSRequired

	// Codes is the number of codes, none included.
	Codes = int(iota + 1)
)

var codeTexts = [Codes]string{
	CodeProxyAuthRequired:   "PROXY_AUTH_REQUIRED",
	CodeTooManyAuthFailures: "TOO_MANY_GUESSES",
	CodeTrafficExhausted:    "TRAFFIC_EXHAUSTED",
	CodeFairUseReached:      "FAIR_USE_REACHED",
	CodeTargetRefused:       "TARGET_REFUSED",
	CodeTargetDenied:        "TARGET_DENIED",
	CodeSessionExpired:      "SESSION_EXPIRED",
	CodeTooManyTunnels:      "TOO_MANY_TUNNELS",
	CodeTargetRateLimited:   "TARGET_RATE_LIMITED",
	CodeSessionNotReady:     "SESSION_NOT_READY",
	CodeNoCapacity:          "NO_CAPACITY",
	CodeTargetUnreachable:   "TARGET_UNREACHABLE",
	CodeTargetTimeout:       "TARGET_TIMEOUT",
	CodeBadRequest:          "BAD_REQUEST",
	CodeHeadTooLarge:        "HEAD_TOO_LARGE",
	CodeUpstreamAuth:        "UPSTREAM_AUTH",
	CodeUpstreamPayment:     "UPSTREAM_PAYMENT",
	CodeUpstreamRefused:     "UPSTREAM_REFUSED",
	CodeUpstreamBusy:        "UPSTREAM_BUSY",
	CodeUpstreamFailed:      "UPSTREAM_FAILED",
	CodeUpstreamTimeout:     "UPSTREAM_TIMEOUT",
	CodeUpstreamUnreachable: "UPSTREAM_UNREACHABLE",
	CodeUserNameParameter:   "USERNAME_PARAMETER_INVALID",
	CodeWorkerDiffers:       "WORKER_DIFFERS",
	CodeWorkerLimit:         "WORKER_LIMIT_REACHED",
	CodeWorkerExhausted:     "WORKER_TRAFFIC_EXHAUSTED",
	CodeWorkerNotFound:      "WORKER_NOT_FOUND",
	CodeExitLost:            "EXIT_LOST",

	CodeClientAddressRefused:  "CLIENT_ADDRESS_REFUSED",
	CodeConnectionRateLimited: "CONNECTION_RATE_LIMITED",
	CodeStorageLimit:          "STORAGE_LIMIT",
	CodeTLSRequired:           "TLS_REQUIRED",
}

// String returns the code as clients and events show it; empty for none.
func (c Code) String() string { return codeTexts[c] }
