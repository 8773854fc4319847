package refusal

import (
	"net/http"

	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/diagnose"
	"agentproxy/domain/policy"
)

// denied has what the refusals of policies share.
var denied = Refusal{Status: http.StatusForbidden, Code: CodeTargetDenied, ProxyError: "http_request_denied",
	SOCKS: socks5.NotAllowed}

// Denied returns the refusal of a target by a policy. It names the rule of the session
// alone: the lists of the operator are confidential.
func Denied(d policy.Denial) *Refusal {
	r := denied
	r.Layer = string(d.Layer)
	by, denied := "", ""
	if d.Part != "" {
		by, denied = " by its "+string(d.Part), ": the "+string(d.Part)+" is denied"
	}
	switch d.Layer {
	case policy.Operator:
		r.Message = "the operator of this service denies this target" + by
		r.HowToFix = diagnose.FixDenied + denied
	case policy.Trial:
		r.Message = "an account on trial does not reach this target: its port is none of " + d.Rule
		r.HowToFix = diagnose.FixTrial + ": one of " + d.Rule + ", or any after a recharge (POST /v1/billing/recharge)"
	case policy.Product:
		r.Message = "the product of this session denies this target" + by
		r.HowToFix = diagnose.FixDenied + ", or a session of another product" + denied
	default:
		r.Rule = d.Rule
		r.Message = "the policy of this session denies this target by its rule " + d.Rule
		r.HowToFix = diagnose.FixOwnRule + d.Rule + " with PUT /v1/sessions/{session_id}/policy"
	}
	return &r
}
