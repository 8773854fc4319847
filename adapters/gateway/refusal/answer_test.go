package refusal

import (
	"testing"
	"time"

	"agentproxy/adapters/gateway/http1"
	"agentproxy/domain/procurement"
)

// The answers are those that providers document or were captured.
func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	proxy := &procurement.Endpoint{User: "traffic-threads", Password: "s3cret-limit"}
	for _, tc := range []struct {
		status    int
		text      string
		why       []string
		body      string
		code      Code
		retryable bool
	}{
		{407, "Proxy Authentication Required", nil, "", CodeUpstreamAuth, false},
		{407, "TRAFFIC_EXHAUSTED", nil, "", CodeUpstreamPayment, false},
		{407, "No", nil, "TRAFFIC_EXHAUSTED", CodeUpstreamPayment, false},
		{407, "THREADS_EXHAUSTED", nil, "", CodeUpstreamBusy, true},
		{407, "No", nil, "THREADS_EXHAUSTED: too many", CodeUpstreamBusy, true},
		{407, "No", []string{"too many concurrent connections"}, "", CodeUpstreamBusy, true},
		{407, "No", nil, "E_RATE_LIMITED", CodeUpstreamBusy, true},
		{407, "USER_BLOCKED", nil, "", CodeUpstreamAuth, false},
		{407, "No", []string{"traffic limit reached"}, "", CodeUpstreamPayment, false},
		{407, "No", nil, "E_CAP_EXCEEDED: cap reached", CodeUpstreamPayment, false},
		{407, "No", nil, "E_BALANCE_EXHAUSTED", CodeUpstreamPayment, false},
		{407, "No", nil, "E_AUTH_INVALID: captcha capacity", CodeUpstreamAuth, false},
		{407, "unknown user traffic-threads:s3cret-limit", nil, "", CodeUpstreamAuth, false}, // its credential is no reason
		{407, "No", nil, "<html>no traffic left</html>", CodeUpstreamAuth, false},            // a page is no reason
		{401, "Auth Failed", []string{"client_10050", "ip_blacklisted: 192.0.2.1"}, "", CodeUpstreamAuth, false},
		{402, "Payment Required", nil, "", CodeUpstreamPayment, false},
		{402, "Residential Failed (bad_endpoint)", nil, "", CodeUpstreamRefused, false},
		{402, "Failed", []string{"policy_20140", "Forbidden: robots"}, "", CodeUpstreamRefused, false},
		{502, "Failed", []string{"policy-20050"}, "", CodeUpstreamRefused, false},
		{502, "Failed", []string{"client-10060", "traffic limit"}, "", CodeUpstreamFailed, true},
		{403, "Forbidden", nil, "", CodeUpstreamRefused, false},
		{429, "Too Many Requests", nil, "", CodeUpstreamBusy, true},
		{503, "Service Unavailable", nil, "", CodeUpstreamFailed, true},
		{504, "Gateway Timeout", nil, "", CodeUpstreamTimeout, true},
	} {
		r := FromAnswer(&http1.Answer{Status: tc.status, Text: tc.text, Why: tc.why}, []byte(tc.body), false, proxy, time.Time{})
		if r.Code != tc.code || r.Retryable() != tc.retryable {
			t.Errorf("%d %s %q %q: %s, retryable %v", tc.status, tc.text, tc.why, tc.body, r.Code, r.Retryable())
		}
	}
}
