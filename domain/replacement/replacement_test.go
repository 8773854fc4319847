package replacement_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
)

var activated = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestGrounds(t *testing.T) {
	elsewhere := &exit.Measured{Known: exit.Known{Country: "LT"}, Declared: "DE"}
	disputed := &exit.Measured{Known: exit.Known{Country: "DE", Disputed: true}, Declared: "DE"}
	unknown := &exit.Measured{Declared: "DE"}
	free, paid := new(domain.Money(0)), new(domain.Dollar)
	was := func(g replacement.Ground, s replacement.Status, at time.Duration) []replacement.Replacement {
		return []replacement.Replacement{{Ground: g, Status: s, At: activated.Add(at), DecidedAt: activated.Add(at)}}
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		replacement.Case
		want replacement.Ground // empty: refused
	}{
		{"nothing is known", time.Hour, replacement.Case{}, ""},
		{"measured elsewhere", time.Hour, replacement.Case{Measured: elsewhere}, replacement.Contradicted},
		{"sources that differ are no proof", time.Hour, replacement.Case{Measured: disputed}, ""},
		{"what is not known is no proof", time.Hour, replacement.Case{Measured: unknown}, ""},
		{"measured elsewhere a day later", 24 * time.Hour, replacement.Case{Measured: elsewhere}, ""},
		{"two checks failed", time.Hour, replacement.Case{Failures: 2}, ""},
		{"three checks failed", time.Hour, replacement.Case{Failures: 3}, replacement.Unreachable},
		{"three checks failed a day later", 24 * time.Hour, replacement.Case{Failures: 3}, ""},
		{"a fault that the agent names is no ground", time.Hour, replacement.Case{Fault: procurement.Unreachable}, ""},
		{"the free one was used", 2 * time.Hour,
			replacement.Case{Measured: elsewhere, Before: was(replacement.Unreachable, replacement.Done, time.Hour)}, ""},
		{"its seller refused", 90 * time.Minute,
			replacement.Case{Measured: elsewhere, Before: was(replacement.Contradicted, replacement.Refused, time.Hour)}, ""},
		{"its seller refused an hour ago", 2 * time.Hour,
			replacement.Case{Measured: elsewhere, Before: was(replacement.Contradicted, replacement.Refused, time.Hour)}, replacement.Contradicted},
		{"its source replaces", 100 * 24 * time.Hour, replacement.Case{Price: free}, replacement.Offered},
		{"a ground comes before the price", time.Hour, replacement.Case{Price: paid, Measured: elsewhere}, replacement.Contradicted},
		{"its source replaced it 29 days ago", 30 * 24 * time.Hour,
			replacement.Case{Price: paid, Before: was(replacement.Offered, replacement.Done, 24*time.Hour)}, ""},
		{"its source replaced it 30 days ago", 31 * 24 * time.Hour,
			replacement.Case{Price: paid, Before: was(replacement.Offered, replacement.Done, 24*time.Hour)}, replacement.Offered},
		{"its source refused today", 34 * time.Hour,
			replacement.Case{Price: paid, Before: was(replacement.Offered, replacement.Refused, 24*time.Hour)}, ""},
		{"its source refused yesterday", 48 * time.Hour,
			replacement.Case{Price: paid, Before: was(replacement.Offered, replacement.Refused, 24*time.Hour)}, replacement.Offered},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.ActivatedAt = activated
			got, err := c.Ground(activated.Add(c.after))
			if got != c.want || (err == nil) != (c.want != "") || err != nil && !errors.Is(err, replacement.ErrRefused) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
			if e, is := errors.AsType[*domain.Error](err); is && (e.Details["grounds"] == nil || e.Details["failed_checks"] != c.Failures) {
				t.Errorf("the details are %v", e.Details)
			}
		})
	}
	_, err := replacement.Case{ActivatedAt: activated, Measured: elsewhere,
		Before: was(replacement.Contradicted, replacement.Pending, 0)}.Ground(activated)
	if !errors.Is(err, session.ErrNotReady) {
		t.Errorf("while one is pending: %v", err)
	}
}

func TestAReplacementIsDecidedOnce(t *testing.T) {
	addr := netip.MustParseAddr("192.0.2.1")
	for _, from := range replacement.Statuses {
		for _, by := range []netip.Addr{{}, addr} {
			r, err := replacement.Replacement{Status: from}.Decide(by, activated)
			want := map[bool]replacement.Status{true: replacement.Done, false: replacement.Refused}[by.IsValid()]
			if from != replacement.Pending {
				want = from
			}
			if r.Status != want || (err == nil) != (from == replacement.Pending) {
				t.Errorf("from %s by %v: %s, %v", from, by, r.Status, err)
			}
		}
	}
}
