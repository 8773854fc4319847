package app_test

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
		refused(t, err, domain.ErrInvalid)
		same(t, "the field", fieldsOf(err), field[:len(fieldsOf(err))])
	}
}

func TestSeries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v, fixed := w.buy(agent, local), w.buy(agent, static)
	w.use(v.ID, "a", 100_000_000)
	w.clock.Advance(3 * time.Hour)
	ok(t, w.passes.Settle(t.Context())) // books 0.04 in this hour
	w.use(v.ID, "b", 300_000_000)
	w.use(fixed.ID, "c", 1_000)
	series := func(granularity string) []ports.Hour {
		t.Helper()
		r, err := ledger.ParseRange(granularity, "", "", w.clock.Now())
		ok(t, err)
		buckets, err := w.stats.Series(t.Context(), agent, r)
		ok(t, err)
		for i, b := range buckets {
			if !b.Start.Equal(r.From.Add(time.Duration(i) * r.Step)) {
				t.Fatalf("bucket %d starts at %s", i, b.Start)
			}
		}
		return buckets
	}
	hours := series("hour")
	same(t, "hours", len(hours), 168)
	then, now := hours[164], hours[167]
	if then.Up+then.Down != 100_000_000 || then.Charged != dollars("1") || now.Up+now.Down != 300_001_000 || now.Charged != dollars("0.16") {
		t.Errorf("then %+v, now %+v", then, now)
	}
	same(t, "an empty hour", hours[165].Totals, ports.Totals{})
	days := series("day")
	same(t, "days", len(days), 7)
	same(t, "charged today", days[6].Charged, dollars("1.16"))
	same(t, "charged yesterday", days[5].Totals, ports.Totals{})
	past, err := w.stats.Series(t.Context(), agent, ledger.Range{Step: session.Day, From: billing.Day(fake.Start).Add(-2 * session.Day), To: billing.Day(fake.Start)})
	ok(t, err)
	if len(past) != 2 || past[0].Totals != (ports.Totals{}) || past[1].Totals != (ports.Totals{}) {
		t.Errorf("the past has %+v", past)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	t.Run("of a burst exactly the limit is allowed", func(t *testing.T) {
		var allowed atomic.Int32
		c := accounts.Caller{AgentID: "a", PerMinute: 100}
		parallel(300, func(int) {
			if w.limits.Take(c.AgentID, c.PerMinute).Allowed {
				allowed.Add(1)
			}
		})
		same(t, "allowed", allowed.Load(), 100)
		d := w.limits.Take(c.AgentID, c.PerMinute)
		if d.Allowed || d.RetryAfter != time.Second || d.Limit != 100 || d.Remaining != 0 || !d.ResetAt.Equal(w.clock.Now().Add(time.Minute)) {
			t.Errorf("decided %+v", d)
		}
		w.clock.Advance(600 * time.Millisecond)
		same(t, "one more", w.limits.Take(c.AgentID, c.PerMinute).Allowed, true)
		same(t, "and no more", w.limits.Take(c.AgentID, c.PerMinute).Allowed, false)
		same(t, "another agent", w.limits.Take("b", 100).Allowed, true)
		same(t, "without a limit", w.limits.Take("a", 0).Allowed, true)
	})
	t.Run("registrations are counted by address, of IPv6 by network", func(t *testing.T) {
		for want, addrs := range map[string][]string{
			"one IPv4":              {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1"},
			"one /64":               {"2001:db8::1", "2001:db8::2", "2001:db8::ffff:1", "2001:db8::3"},
			"one /64 with its zone": {"fe80::1%eth0", "fe80::2%eth1", "fe80::3", "fe80::4"},
		} {
			for i, a := range addrs {
				if got := w.limits.TakeRegistration(netip.MustParseAddr(a)).Allowed; got != (i < 3) {
					t.Errorf("%s: registration %d from %s: %v", want, i+1, a, got)
				}
			}
		}
		for _, a := range []string{"192.0.2.2", "2001:db8:0:1::1"} {
			same(t, "from "+a, w.limits.TakeRegistration(netip.MustParseAddr(a)).Allowed, true)
		}
		w.clock.Advance(time.Minute)
		same(t, "a minute later", w.limits.TakeRegistration(netip.MustParseAddr("192.0.2.1")).Allowed, true)
	})
	t.Run("ten checks a minute", func(t *testing.T) {
		for i := range 12 {
			same(t, "allowed", w.limits.TakeCheck("a").Allowed, i < 10)
		}
	})
}
