package metering_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentproxy/app/metering"
	"agentproxy/app/sessions"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// report stores what leases of a replica have used, in its first part.
func report(w *apptest.World, replica string, reports ...traffic.Report) {
	w.T.Helper()
	apptest.OK(w.T, w.Traffic.Report(context.Background(), replica, []traffic.ReportPart{{Reports: reports}}))
}

// Usage that was reported between renewals is booked before it is read: once, by any replica, and without another
// sign of life of its gateway.
func TestReportedUsageIsBookedWhenItIsRead(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent, other := w.RegisterFunded(100), w.RegisterFunded(100)
	id := w.Buy(agent, apptest.Local).ID
	g := w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Want: 1 << 20, Lasts: traffic.UsualLasts + traffic.FoldAfter})
	if !g.Calm || g.AgentID != agent {
		t.Fatalf("granted %+v", g)
	}
	w.Clock.Advance(2 * time.Second)
	before := w.Dump()
	apptest.OK(t, w.Traffic.Book(t.Context(), agent))
	apptest.Equal(t, "what nothing to book wrote", w.Dump(), before)

	r := traffic.Report{AgentID: agent, SessionID: id, Lease: "a", Up: 1000, Down: 200_000, Connections: 2}
	report(w, "replica", r)
	before = w.Dump()
	apptest.OK(t, w.Traffic.Book(t.Context(), other))
	apptest.Equal(t, "what another agent wrote", w.Dump(), before)
	apptest.OK(t, w.Traffic.Book(t.Context(), agent))
	u := w.Read(agent, id).Usage
	if u.Up != 1000 || u.Down != 200_000 || u.Connections != 2 || u.Leased != 1<<20-201_000 || !u.UpdatedAt.Equal(w.Clock.Now()) {
		t.Errorf("booked %+v", u)
	}
	w.Audit()
	before = w.Dump()
	apptest.OK(t, w.Traffic.Book(t.Context(), agent))
	second := newEdge(t, w, "second", id, 0)
	second.clock.Set(w.Clock.Now())
	apptest.OK(t, second.traffic.Book(t.Context(), agent)) // does not know that it is booked
	apptest.Equal(t, "what was booked twice", w.Dump(), before)

	g = w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: "a", Up: 2000, Down: 300_000, Connections: 3, Want: 1 << 20})
	apptest.Equal(t, "granted in all", g.Granted, 302_000+1<<20)
	r.Up++ // came late
	report(w, "replica", r)
	w.Clock.Advance(time.Second)
	apptest.OK(t, w.Traffic.Book(t.Context(), agent))
	u = w.Read(agent, id).Usage
	if u.Up != 2000 || u.Down != 300_000 || u.Connections != 3 || u.Leased != 1<<20 {
		t.Errorf("renewed %+v", u)
	}
	w.Audit()
}

// The replica dies: what it reported is charged with the lease that is taken back, as late as without the report.
func TestTheReportsOfADeadReplicaAreCharged(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(100)
	v, full := w.Buy(agent, apptest.Local), w.BuySmall(agent)
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 10 << 20})
	var left int64 = 100_000_000
	for n := 0; left > 0; n++ { // all of it is leased, and used
		g := w.RenewLease(traffic.LeaseRequest{SessionID: full.ID, Lease: "b", Up: 100_000_000 - left, Want: 100_000_000})
		left = 100_000_000 - g.Granted
	}
	reports := []traffic.Report{{AgentID: agent, SessionID: v.ID, Lease: "a", Up: 7_000_000},
		{AgentID: agent, SessionID: full.ID, Lease: "b", Up: 100_000_000}}
	report(w, "replica", reports...)
	w.Clock.Advance(traffic.ReclaimAfter - time.Second)
	apptest.OK(t, w.Traffic.Book(t.Context(), w.RegisterFunded(1)))
	reports[0].Up = 8_000_000
	report(w, "replica", reports...)
	apptest.OK(t, w.Traffic.Book(t.Context(), agent)) // is no renewal
	reports[0].Up = 9_000_000
	report(w, "replica", reports...)
	w.Clock.Advance(2 * time.Second)
	notified := &apptest.ChangeRecorder{}
	w.Watch(notified)
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	u := w.Read(agent, v.ID).Usage
	apptest.Equal(t, "used", u.Used(), 9_000_000)
	apptest.Equal(t, "leased", u.Leased, 0)
	apptest.Equal(t, "used up", w.Read(agent, full.ID).Status, session.Expired)
	apptest.Equal(t, "reports", len(w.Column("SELECT replica FROM lease_reports")), 0)
	ended, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "the cost", ended.Cost, sessions.Cost{Charged: billing.TrafficCharge(9_000_000, v.Price)})
	w.Audit()
}

// readers notes for which agents a store is read.
type readers struct {
	ports.Store
	hangs  chan struct{}
	mu     sync.Mutex
	agents []string
}

func (s *readers) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	<-s.hangs
	s.mu.Lock()
	s.agents = append(s.agents, ports.AgentOf(ctx))
	s.mu.Unlock()
	return s.Store.Read(ctx, fn)
}

// An agent that has its share of the database does not hold up what others read, and no call waits for a database that
// hangs once it has ended.
func TestReportsAreReadForAll(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	store := &readers{Store: w.Store, hangs: make(chan struct{})}
	s := metering.New(ports.Base{Store: store, Clock: w.Clock, IDs: w.IDs, Log: slog.New(slog.DiscardHandler)}, w.Sessions, w.Transitions,
		w.Fulfilment, w.Hub)
	ctx, cancel := context.WithCancel(ports.WithAgent(t.Context(), "agt_busy"))
	cancel()
	if err := s.Book(ctx, "agt_busy"); !errors.Is(err, context.Canceled) { // which does not wait
		t.Error(err)
	}
	close(store.hangs)
	apptest.OK(t, s.Book(ports.WithAgent(t.Context(), "agt_other"), "agt_other")) // at the same moment
	store.mu.Lock()
	defer store.mu.Unlock()
	if !slices.Equal(store.agents, []string{""}) {
		t.Errorf("read for %q", store.agents)
	}
}

// replica is a gateway that renews, reports and dies.
type replica struct {
	name, lease string
	granted     int64
	used, known int64 // of the lease; known: what it renewed with or reported
}

// Two replicas relay one session, renew, report, close and die in any order, and agents read in between. No more than
// was bought is ever used, reads show what was reported, and charged is what was reported.
func TestWhatIsReportedIsWhatIsCharged(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100_000)
	deaths := 0
	rapid.Check(t, func(r *rapid.T) {
		v := w.BuySmall(agent)
		var booked int64 // of leases that are over
		replicas := []*replica{{}, {}}
		names := 0
		open := func(p *replica) {
			names++
			*p = replica{name: fmt.Sprint(v.ID, "-", names), lease: fmt.Sprint(v.ID, "-", names)}
		}
		for _, p := range replicas {
			open(p)
		}
		renew := func(p *replica, want int64, shut bool) {
			g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: p.lease, Down: p.used, Want: want, Close: shut})
			if g.Outcome == traffic.Lost {
				r.Fatalf("lost %+v", p)
			}
			p.granted, p.known = g.Granted, p.used
			if shut {
				booked += p.used
				open(p)
			}
		}
		sum := func() (n int64) {
			for _, p := range replicas {
				n += p.known
			}
			return n + booked
		}
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			p := replicas[rapid.IntRange(0, 1).Draw(r, "replica")]
			switch rapid.IntRange(0, 7).Draw(r, "what") {
			case 0, 1:
				renew(p, rapid.Int64Range(0, 40<<20).Draw(r, "want"), false)
			case 2, 3:
				p.used += rapid.Int64Range(0, max(p.granted-p.used, 0)).Draw(r, "bytes")
			case 4:
				if p.granted == 0 {
					continue // no lease is open
				}
				p.known = p.used
				report(w, p.name, traffic.Report{AgentID: agent, SessionID: v.ID, Lease: p.lease, Down: p.used})
			case 5:
				w.Clock.Advance(time.Second)
				apptest.OK(t, w.Traffic.Book(t.Context(), agent))
				if u := w.Read(agent, v.ID).Usage; u.Used() != sum() || u.Used()+u.Leased > 100_000_000 {
					r.Fatalf("reported %d, read %+v", sum(), u)
				}
			case 6:
				if p.granted > 0 {
					renew(p, 0, true)
				}
			case 7: // it dies; the other renews in time
				if p.granted == 0 {
					continue
				}
				deaths++
				booked += p.known
				open(p)
				w.Clock.Advance(traffic.ReclaimAfter / 2)
				for _, o := range replicas {
					if o.granted > 0 {
						renew(o, o.granted-o.used, false)
					}
				}
				w.Clock.Advance(traffic.ReclaimAfter/2 + time.Second)
				apptest.OK(t, w.Tasks.Reclaim(t.Context()))
			}
		}
		for _, p := range replicas {
			booked += p.known // both die
		}
		w.Clock.Advance(traffic.ReclaimAfter + time.Second)
		apptest.OK(t, w.Tasks.Reclaim(t.Context()))
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		got := w.Read(agent, v.ID)
		if got.Usage.Used() != booked || got.Cost != (sessions.Cost{Charged: billing.TrafficCharge(booked, v.Price)}) {
			r.Fatalf("used %d of %d, cost %+v", got.Usage.Used(), booked, got.Cost)
		}
	})
	if deaths == 0 {
		t.Error("no replica died")
	}
	w.Audit()
}
