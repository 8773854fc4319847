package health_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/domain/health"
)

func TestReportIssuesNameTheField(t *testing.T) {
	soon, late := start.Add(5*time.Minute), start.Add(5*time.Minute+time.Second)
	for _, c := range []struct {
		claim  string
		report health.Report
		field  string // empty: no issue
	}{
		{"a type is enough", health.Report{Type: "success"}, ""},
		{"the type is required", health.Report{}, "event_type"},
		{"an unknown type is refused", health.Report{Type: "sucess"}, "event_type"},
		{"types are written in lower case", health.Report{Type: "Success"}, "event_type"},
		{"status 0 is no answer", health.Report{Type: "http_error", StatusCode: new(0)}, ""},
		{"status 99 is accepted", health.Report{Type: "http_error", StatusCode: new(99)}, ""},
		{"status 599 is the last", health.Report{Type: "http_error", StatusCode: new(599)}, ""},
		{"status 600 is refused", health.Report{Type: "http_error", StatusCode: new(600)}, "status_code"},
		{"a negative status is refused", health.Report{Type: "http_error", StatusCode: new(-1)}, "status_code"},
		{"latency 0 is accepted", health.Report{Type: "success", LatencyMS: new(0)}, ""},
		{"latency 600000 is the longest", health.Report{Type: "success", LatencyMS: new(600_000)}, ""},
		{"latency 600001 is refused", health.Report{Type: "success", LatencyMS: new(600_001)}, "latency_ms"},
		{"a negative latency is refused", health.Report{Type: "success", LatencyMS: new(-1)}, "latency_ms"},
		{"a host has 253 characters", health.Report{Type: "success", TargetHost: strings.Repeat("é", 253)}, ""},
		{"not 254", health.Report{Type: "success", TargetHost: strings.Repeat("a", 254)}, "target_host"},
		{"markup in a host is only text", health.Report{Type: "success", TargetHost: "<b>=1+1"}, ""},
		{"control characters in a host are refused", health.Report{Type: "success", TargetHost: "a\r\nb"}, "target_host"},
		{"a message has 1000 characters", health.Report{Type: "success", ErrorMessage: strings.Repeat("é", 1000)}, ""},
		{"not 1001", health.Report{Type: "success", ErrorMessage: strings.Repeat("a", 1001)}, "error_message"},
		{"a message may have lines", health.Report{Type: "success", ErrorMessage: "a\n\tb"}, ""},
		{"a NUL is refused", health.Report{Type: "success", ErrorMessage: "a\x00b"}, "error_message"},
		{"a clock may be 5 minutes ahead", health.Report{Type: "success", OccurredAt: &soon}, ""},
		{"not more", health.Report{Type: "success", OccurredAt: &late}, "occurred_at"},
		{"the past has no bound", health.Report{Type: "success", OccurredAt: new(time.Time)}, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			issues := c.report.Issues(start)
			switch {
			case c.field == "" && len(issues) > 0:
				t.Errorf("refused: %v", issues)
			case c.field != "" && (len(issues) != 1 || issues[0].Field != c.field || issues[0].Issue == ""):
				t.Errorf("%v, want one issue of %s", issues, c.field)
			}
		})
	}
	t.Run("every fault is named", func(t *testing.T) {
		all := health.Report{
			Type: "?", StatusCode: new(600), LatencyMS: new(-1), TargetHost: strings.Repeat("a", 254),
			ErrorMessage: strings.Repeat("a", 1001), OccurredAt: &late,
		}
		if n := len(all.Issues(start)); n != 6 {
			t.Errorf("%d issues, want 6", n)
		}
	})
}

func TestGoodIsScoredAndFree(t *testing.T) {
	for _, c := range []struct {
		event        health.Event
		scored, good bool
	}{
		{success, true, true}, {status(404), true, true}, {block, true, false}, {status(0), true, false},
		{custom, false, false}, {status(407), false, false},
	} {
		if c.event.Scored() != c.scored || c.event.Good() != c.good {
			t.Errorf("%s %d: scored %v good %v, want %v %v", c.event.Type, c.event.StatusCode, c.event.Scored(), c.event.Good(), c.scored, c.good)
		}
	}
}

func TestCanonicalHostMakesSpellingsEqual(t *testing.T) {
	for in, want := range map[string]string{
		"":                       "",
		"shop.test":              "shop.test",
		" Shop.TEST. ":           "shop.test",
		"shop.test:8443":         "shop.test",
		"shop.test:":             "shop.test",
		"1.2.3.4:80":             "1.2.3.4",
		"[2001:DB8::1]:443":      "2001:db8::1",
		"[2001:db8::1]":          "2001:db8::1",
		"2001:db8::1":            "2001:db8::1",
		"[broken":                "[broken",
		"a:b":                    "a:b",
		strings.Repeat("é", 127): strings.Repeat("é", 126),
	} {
		if got := health.CanonicalHost(in); got != want {
			t.Errorf("CanonicalHost(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestRotationReasons(t *testing.T) {
	for _, r := range reasons {
		if !r.Valid() {
			t.Errorf("%q is not valid", r)
		}
	}
	for _, r := range []health.RotationReason{"", "Manual", "http_500"} {
		if r.Valid() {
			t.Errorf("%q is valid", r)
		}
	}
}
