package ledger_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestParseRange(t *testing.T) {
	t.Parallel()
	now := fake.Start.Add(20 * time.Minute) // 12:20 of 15 May
	day := func(n int) time.Time { return time.Date(2026, 5, n, 0, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		granularity, start, end string
		step                    time.Duration
		from, to                time.Time
	}{
		{"", "", "", session.Day, day(9), day(16)},
		{"day", "", "", session.Day, day(9), day(16)},
		{"hour", "", "", time.Hour, fake.Start.Add(time.Hour - 7*session.Day), fake.Start.Add(time.Hour)},
		{"day", "2026-05-01", "2026-05-03", session.Day, day(1), day(3)},
		{"day", "2026-05-01T13:00:00+02:00", "2026-05-03T00:00:01Z", session.Day, day(1), day(4)},
		{"hour", "2026-05-01T13:30:00+02:00", "2026-05-01T12:00:00Z", time.Hour, day(1).Add(11 * time.Hour), day(1).Add(12 * time.Hour)},
		{"day", "", "2026-05-08", session.Day, day(1), day(8)},
		{"day", "2026-02-12", "2026-05-15", session.Day, day(15).Add(-92 * session.Day), day(15)},
	} {
		r, err := ledger.ParseRange(c.granularity, c.start, c.end, now)
		if err != nil || r.Step != c.step || !r.From.Equal(c.from) || !r.To.Equal(c.to) {
			t.Errorf("%+v is %+v, %v", c, r, err)
		}
	}
	for field, c := range map[string][3]string{
		"granularity": {"minute", "", ""}, "start_date": {"", "2026-05-03", "2026-05-03"}, "end_date": {"", "2026-05-03", "tomorrow"},
		"start_date ": {"", "2026-05-04", "2026-05-03"}, "start_date  ": {"", "2026-02-11", "2026-05-15"},
		"start_date   ": {"", "2026-13-01", ""}, "start_date    ": {"", "2026-06-01", ""}, "end_date ": {"", "", "1969-01-01"},
	} {
		_, err := ledger.ParseRange(c[0], c[1], c[2], now)
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "the field", apptest.InvalidFields(err), field[:len(apptest.InvalidFields(err))])
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v, fixed := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Static)
	w.UseBytes(v.ID, "a", 100_000_000)
	w.Clock.Advance(3 * time.Hour)
	apptest.OK(t, w.Tasks.Settle(t.Context())) // books 0.04 in the hour of the traffic
	w.UseBytes(v.ID, "b", 300_000_000)
	w.UseBytes(fixed.ID, "c", 1_000)
	series := func(granularity string) []ports.Hour {
		t.Helper()
		r, err := ledger.ParseRange(granularity, "", "", w.Clock.Now())
		apptest.OK(t, err)
		buckets, err := w.Stats.Series(t.Context(), agent, r)
		apptest.OK(t, err)
		for i, b := range buckets {
			if !b.Start.Equal(r.From.Add(time.Duration(i) * r.Step)) {
				t.Fatalf("bucket %d starts at %s", i, b.Start)
			}
		}
		return buckets
	}
	hours := series("hour")
	apptest.Equal(t, "hours", len(hours), 168)
	then, now := hours[164], hours[167]
	if then.Up+then.Down != 100_000_000 || then.Charged != apptest.Dollars("1.04") || now.Up+now.Down != 300_001_000 || now.Charged != apptest.Dollars("0.12") {
		t.Errorf("then %+v, now %+v", then, now)
	}
	apptest.Equal(t, "an empty hour", hours[165].Totals, ports.Totals{})
	days := series("day")
	apptest.Equal(t, "days", len(days), 7)
	apptest.Equal(t, "charged today", days[6].Charged, apptest.Dollars("1.16"))
	apptest.Equal(t, "charged yesterday", days[5].Totals, ports.Totals{})
	past, err := w.Stats.Series(t.Context(), agent, ledger.Range{Step: session.Day, From: billing.Day(fake.Start).Add(-2 * session.Day), To: billing.Day(fake.Start)})
	apptest.OK(t, err)
	if len(past) != 2 || past[0].Totals != (ports.Totals{}) || past[1].Totals != (ports.Totals{}) {
		t.Errorf("the past has %+v", past)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	t.Run("of a burst exactly the limit is allowed", func(t *testing.T) {
		var allowed atomic.Int32
		c := accounts.Caller{AgentID: "a", PerMinute: 100}
		apptest.Concurrently(300, func(int) {
			if w.Limits.Take(c.AgentID, c.PerMinute).Allowed {
				allowed.Add(1)
			}
		})
		apptest.Equal(t, "allowed", allowed.Load(), 100)
		d := w.Limits.Take(c.AgentID, c.PerMinute)
		if d.Allowed || d.RetryAfter != time.Second || d.Limit != 100 || d.Remaining != 0 || !d.ResetAt.Equal(w.Clock.Now().Add(time.Minute)) {
			t.Errorf("decided %+v", d)
		}
		w.Clock.Advance(600 * time.Millisecond)
		apptest.Equal(t, "one more", w.Limits.Take(c.AgentID, c.PerMinute).Allowed, true)
		apptest.Equal(t, "and no more", w.Limits.Take(c.AgentID, c.PerMinute).Allowed, false)
		apptest.Equal(t, "another agent", w.Limits.Take("b", 100).Allowed, true)
		apptest.Equal(t, "without a limit", w.Limits.Take("a", 0).Allowed, true)
	})
	t.Run("registrations are counted by address, of IPv6 by network", func(t *testing.T) {
		for want, addrs := range map[string][]string{
			"one IPv4":              {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"},
			"one /64":               {"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1", "2001:db8::3"},
			"one /64 with its zone": {"fe80::1%eth0", "fe80::2%eth1", "fe80::3", "fe80::4"},
		} {
			for i, a := range addrs {
				if got, _ := w.Limits.TakeRegistration(netip.MustParseAddr(a)); got.Allowed != (i < 3) {
					t.Errorf("%s: registration %d from %s: %v", want, i+1, a, got.Allowed)
				}
			}
		}
		for _, a := range []string{"192.0.2.2", "2001:db8:0:1::1"} {
			d, _ := w.Limits.TakeRegistration(netip.MustParseAddr(a))
			apptest.Equal(t, "from "+a, d.Allowed, true)
		}
		w.Clock.Advance(time.Minute)
		d, _ := w.Limits.TakeRegistration(netip.MustParseAddr("192.0.2.1"))
		apptest.Equal(t, "a minute later", d.Allowed, true)
	})
	t.Run("ten checks a minute", func(t *testing.T) {
		for i := range 12 {
			apptest.Equal(t, "allowed", w.Limits.TakeCheck("a").Allowed, i < 10)
		}
	})
}
