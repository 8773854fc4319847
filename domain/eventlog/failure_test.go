package eventlog_test

import (
	"strings"
	"testing"

	"agentproxy/domain/eventlog"
)

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		claim  string
		event  eventlog.Event
		failed bool
		advice string
	}{
		{"a tunnel that ended as it should", eventlog.Event{Type: "tunnel", StatusCode: 200}, false, ""},
		{"one that was cut", eventlog.Event{Type: "tunnel", StatusCode: 200, Code: "TRAFFIC_EXHAUSTED", HowToFix: "buy more"}, true, "buy more"},
		{"a request that the target refused", eventlog.Event{Type: "request", StatusCode: 403}, true, "rotate"},
		{"one that it answered", eventlog.Event{Type: "request", StatusCode: 301}, false, ""},
		{"a refusal of the gateway", eventlog.Event{Type: "refused", Code: "TARGET_DENIED", HowToFix: "use another host"}, true, "another host"},
		{"what a policy only reports", eventlog.Event{Type: "would_refuse", Code: "TARGET_DENIED"}, false, ""},
		{"a report of success", eventlog.Event{Source: eventlog.Agent, Type: "success", StatusCode: 200}, false, ""},
		{"a report of a captcha", eventlog.Event{Source: eventlog.Agent, Type: "captcha"}, true, "rotate"},
		{"a report of too many requests", eventlog.Event{Source: eventlog.Agent, Type: "http_error", StatusCode: 429}, true, "fewer"},
		{"a report of a timeout", eventlog.Event{Source: eventlog.Agent, Type: "timeout"}, true, "try again"},
		{"a report of its own", eventlog.Event{Source: eventlog.Agent, Type: "custom", StatusCode: 500}, false, ""},
		{"a purchase that failed", eventlog.Event{Source: eventlog.Service, Type: eventlog.Failed, Code: "NO_STOCK"}, true, "new session"},
		{"a rotation, whose code is its reason", eventlog.Event{Source: eventlog.Service, Type: eventlog.Rotated, Code: "http_403"}, false, ""},
	} {
		if got := c.event.IsFailure(); got != c.failed {
			t.Errorf("%s is a failure: %v", c.claim, got)
		}
		if c.failed && !strings.Contains(c.event.Advice(), c.advice) {
			t.Errorf("%s: %q", c.claim, c.event.Advice())
		}
	}
}
