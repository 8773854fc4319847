package traffic_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentproxy/domain/traffic"
)

var noon = time.Date(2026, 5, 15, 12, 0, 0, 0, time.UTC)

// ledger is the usage of one session and its leases, moved as a store does.
type ledger struct {
	usage  traffic.Usage
	leases map[string]traffic.Lease
}

func newLedger(limit int64) *ledger {
	return &ledger{usage: traffic.Usage{Limit: limit}, leases: map[string]traffic.Lease{}}
}

func (l *ledger) request(a traffic.LeaseRequest) (traffic.Delta, traffic.Grant) {
	d, lease, g := traffic.Renew(l.usage, l.leases[a.Lease], a, noon)
	u := &l.usage
	u.Up, u.Down, u.Connections, u.Leased = u.Up+d.Up, u.Down+d.Down, u.Connections+d.Connections, u.Leased+d.Leased
	l.leases[a.Lease] = lease
	return d, g
}

// check is what holds at any time, whatever the gateways ask.
func (l *ledger) check(t *rapid.T) {
	var unused, up, down int64
	for id, lease := range l.leases {
		if lease.Unused() < 0 {
			t.Fatalf("the lease %s used more than it was granted: %+v", id, lease)
		}
		unused, up, down = unused+lease.Unused(), up+lease.Up, down+lease.Down
	}
	u := l.usage
	if u.Leased != unused || u.Up != up || u.Down != down {
		t.Fatalf("the usage is %+v, its leases have %d unused, %d up, %d down", u, unused, up, down)
	}
	if u.Limit > 0 && u.Used()+u.Leased > u.Limit {
		t.Fatalf("%d are used and %d leased of %d", u.Used(), u.Leased, u.Limit)
	}
}

// send asks and holds the answer to its promises.
func (l *ledger) send(t *rapid.T, a traffic.LeaseRequest) traffic.Delta {
	d, g := l.request(a)
	lease := l.leases[a.Lease]
	if d.Up < 0 || d.Down < 0 || d.Connections < 0 {
		t.Fatalf("a counter went backwards: %+v", d)
	}
	if g.Granted != lease.Granted || g.Lease != a.Lease || g.SessionID != a.SessionID {
		t.Fatalf("the grant %+v is not of the lease %+v", g, lease)
	}
	wants := a.Want > 0 && !a.Close
	switch g.Outcome {
	case traffic.Open:
		if wants && lease.Unused() == 0 {
			t.Fatalf("%+v is answered open, with nothing to spend", a)
		}
	case traffic.Waiting:
		if !wants || lease.Unused() > 0 || l.usage.Exhausted() || l.usage.Left() > 0 {
			t.Fatalf("%+v has to wait, the usage is %+v", a, l.usage)
		}
	case traffic.Exhausted:
		if !wants || l.usage.Used() != l.usage.Limit {
			t.Fatalf("%+v is exhausted, the usage is %+v", a, l.usage)
		}
	default:
		t.Fatalf("%+v is answered %d", a, g.Outcome)
	}
	if a.Close && lease.Unused() != 0 {
		t.Fatalf("after the close %d are unused", lease.Unused())
	}
	return d
}

// Whatever sequence of requests, repeated requests and false requests several leases send,
// what is used and leased stays within what was bought; a request that comes again
// counts nothing; after the last close nothing is leased.
func TestLeasesNeverExceedTheTraffic(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "c"})
	size := rapid.OneOf(rapid.Int64Range(-5, 5), rapid.Int64Range(0, 1000), rapid.Int64Range(0, 2*traffic.MaxLease))
	limits := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 300_000), rapid.Int64Range(1, 1e12))
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(limits.Draw(t, "limit"))
		last := map[string]traffic.LeaseRequest{} // of each gateway
		var honest []traffic.LeaseRequest
		t.Repeat(map[string]func(*rapid.T){
			"a gateway relays and asks": func(t *rapid.T) {
				id := name.Draw(t, "lease")
				a := last[id]
				a.SessionID, a.Lease = "s", id
				used := rapid.Int64Range(0, min(l.leases[a.Lease].Unused(), math.MaxInt32)).Draw(t, "used")
				up := rapid.Int64Range(0, used).Draw(t, "up")
				a.Up, a.Down, a.Connections = a.Up+up, a.Down+used-up, a.Connections+rapid.Int64Range(0, 3).Draw(t, "connections")
				a.Want, a.Close = size.Draw(t, "want"), rapid.IntRange(0, 9).Draw(t, "close") == 0
				before := l.usage
				if d := l.send(t, a); d.Up != up || d.Down != used-up || l.usage.Used() != before.Used()+used {
					t.Fatalf("%d up and %d down were relayed, counted is %+v", up, used-up, d)
				}
				last[id], honest = a, append(honest, a)
			},
			"an ask arrives again, however late": func(t *rapid.T) {
				if len(honest) == 0 {
					t.Skip("none was sent")
				}
				a := rapid.SampledFrom(honest).Draw(t, "ask")
				if d := l.send(t, a); d.Up != 0 || d.Down != 0 || d.Connections != 0 {
					t.Fatalf("the repeated ask %+v counted %+v", a, d)
				}
			},
			"": l.check,
		})
		for _, a := range last {
			a.Close = true
			l.send(t, a)
		}
		if l.check(t); l.usage.Leased != 0 {
			t.Fatalf("every lease is closed and %d are leased", l.usage.Leased)
		}
	})
}

// A gateway that is broken, or lies, takes no more than it was granted.
func TestAFalseAskIsItsGatewaysLoss(t *testing.T) {
	any := rapid.OneOf(rapid.Int64Range(-1000, 1000), rapid.Int64Range(0, 1<<40))
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(rapid.Int64Range(1, 1<<30).Draw(t, "limit"))
		for range rapid.IntRange(1, 30).Draw(t, "asks") {
			l.send(t, traffic.LeaseRequest{SessionID: "s", Lease: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "lease"),
				Up: any.Draw(t, "up"), Down: any.Draw(t, "down"), Connections: any.Draw(t, "connections"),
				Want: any.Draw(t, "want"), Close: rapid.Bool().Draw(t, "close")})
			l.check(t)
		}
	})
}

func TestRenew(t *testing.T) {
	const kb = 1 << 10
	for _, c := range []struct {
		claim   string
		usage   traffic.Usage
		lease   traffic.Lease
		request traffic.LeaseRequest
		delta   traffic.Delta // without the time
		granted int64
		outcome traffic.Outcome
	}{
		{"the first ask is granted what it wants", traffic.Usage{Limit: 1 << 30}, traffic.Lease{}, traffic.LeaseRequest{Want: 256 * kb},
			traffic.Delta{Leased: 256 * kb}, 256 * kb, traffic.Open},
		{"use is counted and made up for", traffic.Usage{Limit: 1 << 30, Leased: 100}, traffic.Lease{Granted: 100},
			traffic.LeaseRequest{Up: 30, Down: 40, Connections: 1, Want: 100}, traffic.Delta{Up: 30, Down: 40, Connections: 1}, 170, traffic.Open},
		{"wanting less gives back", traffic.Usage{Limit: 1 << 30, Leased: 100}, traffic.Lease{Granted: 100}, traffic.LeaseRequest{Up: 30, Want: 20},
			traffic.Delta{Up: 30, Leased: -80}, 50, traffic.Open},
		{"a close gives back all, whatever it wants", traffic.Usage{Limit: 1 << 30, Leased: 100}, traffic.Lease{Granted: 100},
			traffic.LeaseRequest{Up: 30, Want: 500, Close: true}, traffic.Delta{Up: 30, Leased: -100}, 30, traffic.Open},
		{"counters that went backwards change nothing", traffic.Usage{Limit: 1 << 30, Up: 50, Leased: 50}, traffic.Lease{Granted: 100, Up: 50},
			traffic.LeaseRequest{Up: 20, Want: 50}, traffic.Delta{}, 100, traffic.Open},
		{"what was never granted is not charged", traffic.Usage{Limit: 1 << 30, Leased: 100}, traffic.Lease{Granted: 100},
			traffic.LeaseRequest{Up: 60, Down: 70}, traffic.Delta{Up: 60, Down: 40, Leased: -100}, 100, traffic.Open},
		{"near the end a lease gets a part", traffic.Usage{Limit: 1024 * kb}, traffic.Lease{}, traffic.LeaseRequest{Want: 1024 * kb},
			traffic.Delta{Leased: 256 * kb}, 256 * kb, traffic.Open},
		{"the last bytes go whole", traffic.Usage{Limit: 50 * kb}, traffic.Lease{}, traffic.LeaseRequest{Want: 1024 * kb},
			traffic.Delta{Leased: 50 * kb}, 50 * kb, traffic.Open},
		{"when the rest is leased elsewhere it waits", traffic.Usage{Limit: 1000, Up: 600, Leased: 400}, traffic.Lease{}, traffic.LeaseRequest{Want: 1},
			traffic.Delta{}, 0, traffic.Waiting},
		{"when all is used it is exhausted", traffic.Usage{Limit: 1000, Up: 900, Leased: 100}, traffic.Lease{Granted: 100}, traffic.LeaseRequest{Down: 100, Want: 1},
			traffic.Delta{Down: 100, Leased: -100}, 100, traffic.Exhausted},
		{"a request for nothing gets nothing", traffic.Usage{Limit: 1000, Up: 1000}, traffic.Lease{}, traffic.LeaseRequest{},
			traffic.Delta{}, 0, traffic.Open},
		{"no limit grants at most the largest lease", traffic.Usage{Up: 1 << 50}, traffic.Lease{}, traffic.LeaseRequest{Want: 1 << 40},
			traffic.Delta{Leased: traffic.MaxLease}, traffic.MaxLease, traffic.Open},
	} {
		t.Run(c.claim, func(t *testing.T) {
			d, lease, g := traffic.Renew(c.usage, c.lease, c.request, noon)
			if c.delta.Up+c.delta.Down+c.delta.Connections > 0 {
				c.delta.At = noon // the moment of the last use, not of the last request
			}
			if !cmp.Equal(d, c.delta) || g.Granted != c.granted || lease.Granted != c.granted || g.Outcome != c.outcome {
				t.Errorf("got %+v, %+v, %+v", d, lease, g)
			}
		})
	}
}

func TestTwoLeasesShareTheRest(t *testing.T) {
	l := newLedger(1 << 20)
	l.request(traffic.LeaseRequest{Lease: "a", Want: traffic.MaxLease})
	l.request(traffic.LeaseRequest{Lease: "b", Want: traffic.MaxLease})
	if a, b := l.leases["a"].Unused(), l.leases["b"].Unused(); b == 0 || a > 2*b {
		t.Errorf("the first got %d, the second %d", a, b)
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		claim     string
		u         traffic.Usage
		left      int64
		exhausted bool
	}{
		{"leased traffic is not left, and not used", traffic.Usage{Limit: 100, Up: 20, Down: 30, Leased: 50}, 0, false},
		{"used up", traffic.Usage{Limit: 100, Up: 60, Down: 40}, 0, true},
		{"without a limit nothing is ever used up", traffic.Usage{Up: 1 << 60}, math.MaxInt64 - 1<<60, false},
	} {
		if c.u.Left() != c.left || c.u.Exhausted() != c.exhausted {
			t.Errorf("%s: %d left, exhausted %v", c.claim, c.u.Left(), c.u.Exhausted())
		}
	}
}

func TestSizeStaysWithinWhatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, left := rapid.Int64Min(0).Draw(t, "want"), rapid.Int64().Draw(t, "left")
		got := traffic.Size(want, left)
		if got < 0 || got > want || got > traffic.MaxLease || got > max(left, 0) {
			t.Errorf("of %d left, %d wanted, %d are given", left, want, got)
		}
		if want > 0 && left > 0 && got == 0 {
			t.Errorf("of %d left, %d wanted, nothing is given", left, want)
		}
	})
}

func TestCrossed(t *testing.T) {
	for _, c := range []struct {
		limit, used, up, down int64
		want                  int
	}{
		{100, 0, 79, 0, 0}, {100, 79, 0, 1, 1}, {100, 80, 14, 0, 0}, {100, 80, 0, 15, 1}, {100, 0, 50, 50, 2}, {100, 95, 5, 0, 0},
		{0, 0, 100, 0, 0}, {3, 0, 2, 0, 0}, {3, 0, 3, 0, 2}, {math.MaxInt64, 0, math.MaxInt64 / 10 * 9, 0, 1},
	} {
		u := traffic.Usage{Limit: c.limit, Up: c.used}
		if got := u.ThresholdsReached(traffic.Delta{Up: c.up, Down: c.down}); len(got) != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// However the traffic is split, each percent is crossed once.
func TestEachPercentIsCrossedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, seen := traffic.Usage{Limit: rapid.Int64Range(1, 1000).Draw(t, "limit")}, map[int]int{}
		for u.Used() < u.Limit {
			d := traffic.Delta{Up: rapid.Int64Range(1, u.Limit-u.Used()).Draw(t, "up")}
			for _, p := range u.ThresholdsReached(d) {
				seen[p]++
			}
			u.Up += d.Up
		}
		for p, n := range seen {
			if n != 1 {
				t.Fatalf("%d percent was crossed %d times", p, n)
			}
		}
		if len(seen) != len(traffic.LowThresholds) {
			t.Fatalf("crossed %v", seen)
		}
	})
}

// A lease is calm while nothing becomes due before all that is leased is used, and the hour does not turn before its
// next renewal.
func TestCalm(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		u    traffic.Usage
		at   time.Time
		want bool
	}{
		{"nothing is used", traffic.Usage{Limit: 1000, Leased: 799}, noon, true},
		{"80 percent would be reached", traffic.Usage{Limit: 1000, Leased: 800}, noon, false},
		{"between the thresholds", traffic.Usage{Limit: 1000, Up: 400, Down: 400, Leased: 149}, noon, true},
		{"95 percent would be reached", traffic.Usage{Limit: 1000, Up: 400, Down: 400, Leased: 150}, noon, false},
		{"near the end", traffic.Usage{Limit: 1000, Up: 950}, noon, false},
		{"without a limit", traffic.Usage{Up: 1 << 50, Leased: 1 << 50}, noon, true},
		{"before the hour turns", traffic.Usage{}, noon.Add(time.Hour - traffic.FoldAfter - 1), true},
		{"as the hour turns", traffic.Usage{}, noon.Add(time.Hour - traffic.FoldAfter), false},
		{"the last moment of the hour", traffic.Usage{}, noon.Add(time.Hour - 1), false},
	} {
		if got := c.u.Calm(c.at); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// A usage moves within what was bought, and never below nothing.
func TestMoved(t *testing.T) {
	u := traffic.Usage{Limit: 100, Up: 10, Down: 20, Connections: 1, Leased: 30}
	at := time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)
	for _, c := range []struct {
		d    traffic.Delta
		want traffic.Usage
		ok   bool
	}{
		{traffic.Delta{Up: 5, Connections: 2, Leased: -5, At: at},
			traffic.Usage{Limit: 100, Up: 15, Down: 20, Connections: 3, Leased: 25, UpdatedAt: at}, true},
		{traffic.Delta{Leased: 40, At: at}, traffic.Usage{Limit: 100, Up: 10, Down: 20, Connections: 1, Leased: 70, UpdatedAt: at}, true},
		{traffic.Delta{Leased: 41, At: at}, traffic.Usage{}, false},
		{traffic.Delta{Down: 41, At: at}, traffic.Usage{}, false},
		{traffic.Delta{Leased: -31, At: at}, traffic.Usage{}, false},
		{traffic.Delta{Up: -11, At: at}, traffic.Usage{}, false},
		{traffic.Delta{Down: -21, At: at}, traffic.Usage{}, false},
	} {
		if got, ok := u.Moved(c.d); ok != c.ok || ok && got != c.want {
			t.Errorf("%+v moves it to %+v, %v", c.d, got, ok)
		}
	}
	if _, ok := (traffic.Usage{}).Moved(traffic.Delta{Up: 1 << 40, Leased: 1 << 40}); !ok {
		t.Error("a usage without a limit has one")
	}
}
