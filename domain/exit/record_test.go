package exit_test

import (
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain/exit"
)

// A place that differs is listed once for each exit, and a record of a former exit is no fact about the present one.
func TestRecord(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	ip := netip.MustParseAddr("192.0.2.1")
	elsewhere := exit.Measured{IP: ip, At: at, Declared: "TH", Known: exit.Known{Country: "LT"}}
	first, second := exit.Identity(0, 0, ip), exit.Identity(0, 1, ip)
	if first == second || first == exit.Identity(0, 0, netip.Addr{}) || first == exit.Identity(7, 0, ip) {
		t.Fatal("two exits have one name")
	}
	r := exit.Record{Ref: exit.Ref{SessionID: "sess_1"}}
	for _, step := range []struct {
		what string
		of   string
		m    exit.Measured
		tell bool
	}{
		{"elsewhere", first, elsewhere, true},
		{"elsewhere again", first, elsewhere, false},
		{"as sold in between", first, exit.Measured{IP: ip, At: at, Declared: "LT", Known: exit.Known{Country: "LT"}}, false},
		{"elsewhere once more", first, elsewhere, false},
		{"unknown of another exit", second, exit.Measured{IP: ip, At: at, Declared: "TH"}, false},
		{"elsewhere, of that one", second, elsewhere, true},
	} {
		var tell bool
		if r, tell = r.Take(step.of, step.m); tell != step.tell || r.DueAt != at.Add(exit.Every) || r.SessionID != "sess_1" {
			t.Errorf("%s: listed %v, record %+v", step.what, tell, r)
		}
	}
	if r.Known(second) == nil || r.Known(first) != nil {
		t.Error("the record is not of the second exit alone")
	}
	if r = r.Miss(second, at); r.Known(second) == nil || !r.Told || r.DueAt != at.Add(exit.RetryAfter) {
		t.Errorf("after an attempt that failed: %+v", r)
	}
	if r = r.Miss("third", at); r.IP.IsValid() || r.Told || r.Known("third") != nil || r.SessionID != "sess_1" {
		t.Errorf("after an attempt at another exit that failed: %+v", r)
	}
}
