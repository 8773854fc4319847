package refusal

import (
	"net/http"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/policy"
)

// Documented returns a refusal of each code, for the documentation.
func Documented() []*Refusal {
	malformed := MalformedRequest(&http1.Error{Status: http.StatusBadRequest,
		Reason: "the request is malformed, or asks for what a proxy cannot do"})
	long := MalformedRequest(&http1.Error{Status: http.StatusRequestHeaderFieldsTooLarge,
		Reason: "the head of the request is too long"})
	target := Denied(policy.Denial{Layer: policy.Operator}).Because("a policy denies this target")
	return []*Refusal{NoCredential, TooManyAuthFailures, TrafficExhausted, FairUseReached, TargetForbidden, target,
		SessionOver,
		TooManyTunnels, TooFast, TooManyStarts, StorageLimit, TLSRequired, SessionNotReady, NoCapacity,
		Unreachable.Because("the target cannot be reached"),
		ConnectTimeout, malformed, long, UpstreamAuth, UpstreamPayment, UpstreamRefused, UpstreamBusy, UpstreamFailed,
		UpstreamTimeout, UpstreamUnreachable, ClientAddress, UserNameParameter, WorkerDiffers, WorkerLimit,
		WorkerExhausted, WorkerRemoved, ExitLost}
}
