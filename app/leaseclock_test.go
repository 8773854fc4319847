package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/traffic"
	"agentproxy/domain/session"
	lease "agentproxy/domain/traffic"
	"agentproxy/test/fake"
)

// edge is the gateway of a replica whose own clock is wrong. It relays what it is granted.
type edge struct {
	w         *world
	traffic   *traffic.Service
	clock     *fake.Clock
	name, id  string
	n, lost   int
	granted   int64
	used, all int64 // by this lease, and by all
}

func (w *world) edge(name, id string, skew time.Duration) *edge {
	e := &edge{w: w, clock: fake.NewClock(), name: name, id: id}
	e.clock.Set(w.clock.Now().Add(skew))
	e.traffic = traffic.New(w.store, e.clock, w.ids, w.sessions, w.life, w.access, w.Hub)
	return e
}

// relay moves at most some bytes of what the lease still allows.
func (e *edge) relay(most int64) {
	n := min(most, e.granted-e.used)
	e.used, e.all = e.used+n, e.all+n
}

// report renews the lease, and opens another one if it is lost.
func (e *edge) report(want int64) lease.Outcome {
	e.w.t.Helper()
	grants, err := e.traffic.Renew(context.Background(), e.name, []lease.Ask{{SessionID: e.id,
		Lease: fmt.Sprint(e.name, e.n), Down: e.used, Want: want}})
	ok(e.w.t, err)
	e.granted = grants[0].Granted
	if grants[0].Outcome == lease.Lost {
		e.n, e.lost, e.granted, e.used = e.n+1, e.lost+1, 0, 0
		return e.report(want)
	}
	return grants[0].Outcome
}

// skews are how wrong the clocks of replicas are in the tests.
var skews = []time.Duration{0, -14 * time.Second, -16 * time.Second, -20 * time.Second, 20 * time.Second,
	-10 * time.Minute, 10 * time.Minute, -24 * time.Hour, 24 * time.Hour}

func TestAReplicaWithAWrongClockMetersEverything(t *testing.T) {
	t.Parallel()
	for _, skew := range skews {
		t.Run(skew.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.rich(100)
			f := form(local)
			f.Bytes = gigabytes("10")
			id := w.buyForm(agent, f).ID
			e := w.edge("edge", id, skew)
			for range 60 {
				w.clock.Advance(time.Second)
				e.clock.Advance(time.Second)
				e.relay(4 << 20)
				ok(t, w.passes.Reclaim(t.Context()))
				e.report(8 << 20)
			}
			if used := w.read(agent, id).Usage.Used(); used != e.all || used != 59*(4<<20) || e.lost != 0 {
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
			w := newWorld(t)
			agent := w.register()
			id := w.small(agent).ID
			wrong, right := w.edge("wrong", id, skew), w.edge("right", id, 0)
			wrong.report(lease.MaxLease)
			pass := func(d time.Duration) {
				t.Helper()
				w.clock.Advance(d)
				wrong.clock.Advance(d)
				right.clock.Advance(d)
				ok(t, w.passes.Reclaim(t.Context()))
			}
			// The wrong one cannot report for as long as it may relay.
			for range int(lease.StopAfter / time.Second) {
				pass(time.Second)
				right.relay(1 << 20)
				right.report(lease.MaxLease)
			}
			wrong.relay(lease.MaxLease)
			if u := w.read(agent, id).Usage; u.Leased == 0 {
				t.Error("its lease was taken while it relayed")
			}
			for range 1000 {
				pass(100 * time.Millisecond)
				right.relay(lease.MaxLease)
				wrong.relay(lease.MaxLease)
				a, b := wrong.report(lease.MaxLease), right.report(lease.MaxLease)
				if a == lease.Exhausted && b == lease.Exhausted {
					break
				}
			}
			if used := w.read(agent, id).Usage.Used(); used != 100_000_000 || wrong.all+right.all != used || wrong.lost+right.lost != 0 {
				t.Errorf("relayed %d and %d bytes, metered %d, lost %d leases", wrong.all, right.all, used, wrong.lost+right.lost)
			}
		})
	}
}

// buyForm buys what a form asks for.
func (w *world) buyForm(agent string, f session.CreateRequest) sessions.View {
	w.t.Helper()
	d, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	ok(w.t, err)
	return d.View
}
