package metering_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"agentproxy/app/metering"
	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// edge is the gateway of a replica whose own clock is wrong. It relays what it is granted.
type edge struct {
	t         *testing.T
	traffic   *metering.Service
	clock     *fake.Clock
	name, id  string
	n, lost   int
	granted   int64
	lasts     time.Duration
	used, all int64 // by this lease, and by all
}

func newEdge(t *testing.T, w *apptest.World, name, id string, skew time.Duration) *edge {
	e := &edge{t: t, clock: fake.NewClock(), name: name, id: id}
	e.clock.Set(w.Clock.Now().Add(skew))
	e.traffic = metering.New(ports.Base{Store: w.Store, Clock: e.clock, IDs: w.IDs, Log: slog.New(slog.DiscardHandler)}, w.Sessions, w.Transitions,
		w.Fulfilment, w.Hub)
	return e
}

// relay moves at most some bytes of what the lease still allows.
func (e *edge) relay(most int64) {
	n := min(most, e.granted-e.used)
	e.used, e.all = e.used+n, e.all+n
}

// report renews the lease, and opens another one if it is lost.
func (e *edge) report(want int64) traffic.Outcome {
	e.t.Helper()
	grants, err := e.traffic.Renew(context.Background(), e.name, []traffic.LeaseRequest{{SessionID: e.id,
		Lease: fmt.Sprint(e.name, e.n), Down: e.used, Want: want, Lasts: e.lasts}})
	apptest.OK(e.t, err)
	e.granted = grants[0].Granted
	if grants[0].Outcome == traffic.Lost {
		e.n, e.lost, e.granted, e.used = e.n+1, e.lost+1, 0, 0
		return e.report(want)
	}
	return grants[0].Outcome
}

// An outage of the database takes longer than a usual failover. The gateway relays what it was granted, no process takes
// the lease back first, and every byte is metered.
func TestALeaseOutlastsAnOutageOfTheDatabase(t *testing.T) {
	t.Parallel()
	for _, outage := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.RegisterFunded(100)
			f := apptest.Form(apptest.Local)
			f.Bytes = apptest.Gigabytes("10")
			id := buyForm(t, w, agent, f).ID
			e := newEdge(t, w, "edge", id, 0)
			e.lasts = traffic.UsualLasts
			e.report(64 << 20)
			for range outage / time.Second {
				w.Clock.Advance(time.Second)
				e.clock.Advance(time.Second)
				e.relay(4 << 20)
			}
			apptest.OK(t, w.Tasks.Reclaim(t.Context())) // before the gateway
			e.report(64 << 20)
			if used, want := w.Read(agent, id).Usage.Used(), min(64<<20, int64(outage/time.Second)*(4<<20)); used != want || e.all != want || e.lost != 0 {
				t.Errorf("relayed %d bytes of %d, metered %d, lost %d leases", e.all, want, used, e.lost)
			}
			w.Clock.Advance(traffic.UsualLasts + traffic.ReclaimAfter)
			apptest.OK(t, w.Tasks.Reclaim(t.Context()))
			if u := w.Read(agent, id).Usage; u.Leased != 0 {
				t.Errorf("a gateway that is gone keeps %d bytes", u.Leased)
			}
		})
	}
}

// skews are how wrong the clocks of replicas are in the tests.
var skews = []time.Duration{0, -14 * time.Second, -16 * time.Second, -20 * time.Second, 20 * time.Second,
	-10 * time.Minute, 10 * time.Minute, -24 * time.Hour, 24 * time.Hour}

func TestAReplicaWithAWrongClockMetersEverything(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.RegisterFunded(100)
			f := apptest.Form(apptest.Local)
			f.Bytes = apptest.Gigabytes("10")
			id := buyForm(t, w, agent, f).ID
			e := newEdge(t, w, "edge", id, skew)
			for range 60 {
				w.Clock.Advance(time.Second)
				e.clock.Advance(time.Second)
				e.relay(4 << 20)
				apptest.OK(t, w.Tasks.Reclaim(t.Context()))
				e.report(8 << 20)
			}
			if used := w.Read(agent, id).Usage.Used(); used != e.all || used != 59*(4<<20) || e.lost != 0 {
				t.Errorf("relayed %d bytes, metered %d, lost %d leases", e.all, used, e.lost)
			}
		})
	}
}

// A gateway stops by its own monotonic clock before its lease is reclaimed, and no sooner is the lease
// another's: two of them, one with a wrong clock and one that stalls, relay the limit exactly.
func TestAReplicaWithAWrongClockNeverExceedsTheLimit(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			id := w.BuySmall(agent).ID
			wrong, right := newEdge(t, w, "wrong", id, skew), newEdge(t, w, "right", id, 0)
			wrong.report(traffic.MaxLease)
			pass := func(d time.Duration) {
				t.Helper()
				w.Clock.Advance(d)
				wrong.clock.Advance(d)
				right.clock.Advance(d)
				apptest.OK(t, w.Tasks.Reclaim(t.Context()))
			}
			// The wrong one cannot report for as long as it may relay.
			for range int(traffic.StopAfter / time.Second) {
				pass(time.Second)
				right.relay(1 << 20)
				right.report(traffic.MaxLease)
			}
			wrong.relay(traffic.MaxLease)
			if u := w.Read(agent, id).Usage; u.Leased == 0 {
				t.Error("its lease was taken while it relayed")
			}
			for range 1000 {
				pass(100 * time.Millisecond)
				right.relay(traffic.MaxLease)
				wrong.relay(traffic.MaxLease)
				a, b := wrong.report(traffic.MaxLease), right.report(traffic.MaxLease)
				if a == traffic.Exhausted && b == traffic.Exhausted {
					break
				}
			}
			if used := w.Read(agent, id).Usage.Used(); used != 100_000_000 || wrong.all+right.all != used || wrong.lost+right.lost != 0 {
				t.Errorf("relayed %d and %d bytes, metered %d, lost %d leases", wrong.all, right.all, used, wrong.lost+right.lost)
			}
		})
	}
}

// buyForm buys what a form asks for.
func buyForm(t *testing.T, w *apptest.World, agent string, f session.CreateRequest) sessions.View {
	t.Helper()
	d, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(t, err)
	return d.View
}
