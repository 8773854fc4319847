package lease

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

// calmCore grants leases of unlimited sessions, each of which is calm.
type calmCore struct {
	mu       sync.Mutex
	leases   map[string]traffic.Lease
	parts    map[int][]traffic.Report
	renewals map[string]int // by session
	stored   int            // parts
	down     bool
	restless bool // no lease is calm
}

func (c *calmCore) Renew(_ context.Context, _ string, requests []traffic.LeaseRequest) (grants []traffic.Grant, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, context.DeadlineExceeded
	}
	for _, request := range requests {
		_, l, g := traffic.Renew(traffic.Usage{}, c.leases[request.Lease], request, time.Unix(1, 0))
		l.Lasts, l.SessionID = request.Lasts, request.SessionID
		c.leases[request.Lease] = l
		c.renewals[request.SessionID]++
		g.Calm, g.AgentID = !c.restless, "agt"
		if grants = append(grants, g); request.Close {
			delete(c.leases, request.Lease)
		}
	}
	return grants, nil
}

func (c *calmCore) Report(_ context.Context, _ string, parts []traffic.ReportPart) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return context.DeadlineExceeded
	}
	for _, p := range parts {
		c.stored++
		if c.parts[p.No] = p.Reports; len(p.Reports) == 0 {
			delete(c.parts, p.No)
		}
	}
	return nil
}

// known returns what is known of each open lease: what it was renewed with, or reported later.
func (c *calmCore) known() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := map[string]int64{}
	for id, l := range c.leases {
		known[id] = l.Up + l.Down
	}
	for _, part := range c.parts {
		for _, r := range part {
			if used, open := known[r.Lease]; open {
				known[r.Lease] = max(used, r.Up+r.Down)
			}
		}
	}
	return known
}

// calmly starts a renewer over a core in a bubble, until the test ends.
func calmly(t *testing.T, core *calmCore) (r *Renewer, stop func()) {
	core.leases, core.parts, core.renewals = map[string]traffic.Lease{}, map[int][]traffic.Report{}, map[string]int{}
	r = NewRenewer(core, Config{Replica: "r", Report: time.Second, Heartbeat: 4 * time.Second, IdleGive: time.Second,
		StopAfter: 75 * time.Second, Fold: traffic.FoldAfter, Call: time.Second}, counters(), func(string, Verdict) {},
		slog.New(slog.DiscardHandler))
	time.Sleep(-monotime.Now()) // a bubble begins before the program
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { r.Run(ctx); close(ended) }()
	return r, func() { cancel(); <-ended; r.Close(t.Context()) }
}

// stream is a connection that relays at a rate.
type stream struct {
	pool Pool
	m    Member
}

func startStream(t *testing.T, r *Renewer, session string) *stream {
	t.Helper()
	s := &stream{m: MemberOf(idleConn{})}
	r.Init(&s.pool, session)
	if v := s.pool.Admit(&s.m, nil, one, time.Second); v != Granted {
		t.Fatal(v)
	}
	return s
}

// relay moves bytes, and waits for a grant of them.
func (s *stream) relay(t *testing.T, bytes int64) {
	t.Helper()
	a := s.pool.Account(&s.m)
	for bytes > 0 {
		n, epoch, v := a.Reserve(bytes)
		if v == Blocked {
			v = a.Await(func() bool { return false })
		}
		if v != Granted {
			t.Fatal(v)
		}
		if n > 0 {
			a.Settle(epoch, n, 0, n)
			bytes -= n
		}
	}
}

// Calm leases are renewed every Fold, or when most of them is used, and what they use is known within about a second:
// of 40 sessions two parts are stored a second.
func TestCalmLeasesAreReportedBetweenRenewals(t *testing.T) {
	t.Parallel()
	const sessions, seconds = 40, 60
	for rate, most := range map[int64]int{10_000: 2 + seconds/15, 1_000_000: 5 + seconds/5} {
		synctest.Test(t, func(t *testing.T) {
			core := &calmCore{}
			r, stop := calmly(t, core)
			var streams []*stream
			for i := range sessions {
				streams = append(streams, startStream(t, r, string(rune('a'+i))))
			}
			var used, before int64 // of each, and a second and three ticks before
			for n := range seconds * 10 {
				for _, s := range streams {
					s.relay(t, rate/10)
				}
				if used += rate / 10; n >= 14 {
					before += rate / 10
				}
				time.Sleep(100 * time.Millisecond)
				for lease, known := range core.known() {
					if known < before || known > used {
						t.Fatalf("of %d bytes of %s %d are known, and %d were used 1.4 s before", used, lease, known, before)
					}
				}
			}
			synctest.Wait()
			core.mu.Lock()
			for session, n := range core.renewals {
				if n > most {
					t.Errorf("%d renewals of session %s in %d seconds at %d bytes a second, want at most %d", n, session, seconds, rate, most)
				}
			}
			if core.stored > 2*(seconds+1) {
				t.Errorf("%d parts are stored in %d seconds", core.stored, seconds)
			}
			for _, l := range core.leases {
				if l.Lasts != 75*time.Second+traffic.FoldAfter {
					t.Errorf("a lease lasts %s", l.Lasts)
				}
			}
			core.mu.Unlock()
			for _, s := range streams {
				s.pool.Leave(&s.m)
			}
			stop()
			if len(core.leases)+len(core.parts) > 0 {
				t.Errorf("after the end there are %d leases, %d parts", len(core.leases), len(core.parts))
			}
		})
	}
}

// A lease that is not calm is renewed as it is reported, and one that a worker uses too.
func TestOtherLeasesAreRenewedEachSecond(t *testing.T) {
	t.Parallel()
	for name, worker := range map[string]bool{"restless": false, "worker": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core := &calmCore{restless: !worker}
				r, stop := calmly(t, core)
				s := startStream(t, r, "s")
				if worker {
					s.pool.Leave(&s.m)
					if v := s.pool.Admit(&s.m, &Share{ID: 1}, one, time.Second); v != Granted {
						t.Fatal(v)
					}
				}
				for range 300 {
					s.relay(t, 1000)
					time.Sleep(100 * time.Millisecond)
				}
				core.mu.Lock()
				if n := core.renewals["s"]; n < 25 || core.stored > 0 {
					t.Errorf("%d renewals in 30 seconds, and %d parts", n, core.stored)
				}
				core.mu.Unlock()
				s.pool.Leave(&s.m)
				stop()
			})
		})
	}
}

// Reports keep their places while leases come and go, and those of leases that are over are not stored again.
func TestReportsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core := &calmCore{}
		r, stop := calmly(t, core)
		first, second, third := startStream(t, r, "1"), startStream(t, r, "2"), startStream(t, r, "3")
		move := func(streams ...*stream) string {
			for range 30 {
				for _, s := range streams {
					s.relay(t, 1000)
				}
				time.Sleep(100 * time.Millisecond)
			}
			core.mu.Lock()
			defer core.mu.Unlock()
			order := ""
			for _, report := range core.parts[0] {
				order += report.SessionID
			}
			return order
		}
		all := move(first, second, third)
		if len(all) != 3 {
			t.Fatalf("stored %q", all)
		}
		if again := move(first, second, third); again != all {
			t.Errorf("stored %q, then %q", all, again)
		}
		second.pool.Leave(&second.m)
		if left := move(first, third); len(left) != 2 || left[0] == '2' || left[1] == '2' {
			t.Errorf("after the end of 2 there are %q", left)
		}
		fourth := startStream(t, r, "4")
		if n := len(move(first, third, fourth)); n != 3 {
			t.Errorf("%d reports in the first part", n)
		}
		// The core is away: nothing is lost that was relayed, and it is known again when the core is back.
		core.mu.Lock()
		core.down = true
		core.mu.Unlock()
		move(first)
		core.mu.Lock()
		core.down = false
		core.mu.Unlock()
		move(first)
		var most int64
		for _, known := range core.known() {
			most = max(most, known)
		}
		if want := int64(5 * 30 * 1000); most < want-2000 {
			t.Errorf("%d bytes are known of about %d", most, want)
		}
		for _, s := range []*stream{first, third, fourth} {
			s.pool.Leave(&s.m)
		}
		stop()
	})
}

// After a time with many leases the reports of few are in few parts, as soon as their leases are new.
func TestReportsOfFewLeasesAreInFewParts(t *testing.T) {
	t.Parallel()
	var s reports
	pools := make([]Pool, 10*traffic.PartSize)
	open := map[*Pool]struct{}{}
	set := func(from, to int, calm bool) {
		for i := from; i < to; i++ {
			pools[i] = Pool{lease: string(rune('a' + i)), calm: calm, down: 1}
			if open[&pools[i]] = struct{}{}; !calm {
				delete(open, &pools[i])
			}
		}
	}
	stored := func() (parts, n int) {
		list, n := s.collect(open)
		for _, p := range s.parts {
			p.changed = false
		}
		return len(list), n
	}
	set(0, len(pools), true)
	if parts, n := stored(); parts != 10 || n != len(pools) {
		t.Errorf("%d reports in %d parts", n, parts)
	}
	set(0, len(pools), false)
	_, _ = stored()
	set(100, 100+traffic.PartSize+1, true)
	if parts, n := stored(); parts != 2 || n != traffic.PartSize+1 {
		t.Errorf("%d reports in %d parts", n, parts)
	}
	for _, at := range s.slots {
		if at.part > 1 {
			t.Fatalf("a report is in part %d", at.part)
		}
	}
	if parts, _ := stored(); parts != 0 {
		t.Errorf("%d parts change by themselves", parts)
	}
}
