package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// small buys a dynamic session of 0.1 GB at 0.40.
func (w *world) small(agent string) sessions.View {
	w.t.Helper()
	f := form(local)
	f.Bytes = gigabytes("0.1")
	d, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f})
	ok(w.t, err)
	return d.View
}

func TestRenewTraffic(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.register()
	t.Run("a repeated ask counts nothing twice", func(t *testing.T) {
		v := w.small(agent)
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1 << 20})
		ask := traffic.Ask{SessionID: v.ID, Lease: "a", Up: 1000, Down: 2000, Connections: 2, Want: 1 << 20}
		first := w.renew(ask)
		for range 3 {
			same(t, "the grant", w.renew(ask), first)
		}
		u := w.read(agent, v.ID).Usage
		if u.Up != 1000 || u.Down != 2000 || u.Connections != 2 || u.Leased != 1<<20 {
			t.Errorf("the usage is %+v", u)
		}
		ask.Up = 500 // overtaken by the later one
		w.renew(ask)
		same(t, "used", w.read(agent, v.ID).Usage.Used(), 3000)
	})
	t.Run("what the store lost is asked again", func(t *testing.T) {
		v := w.small(agent)
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1 << 20})
		ask := traffic.Ask{SessionID: v.ID, Lease: "a", Up: 1000, Want: 1 << 20}
		w.store.failUpdates(1)
		_, err := w.traffic.Renew(t.Context(), "r", []traffic.Ask{ask})
		refused(t, err, errStore)
		w.renew(ask)
		same(t, "used", w.read(agent, v.ID).Usage.Used(), 1000)
	})
	t.Run("many sessions are asked for in one call, in order", func(t *testing.T) {
		var asks []traffic.Ask
		for range 5 {
			asks = append(asks, traffic.Ask{SessionID: w.small(agent).ID, Lease: "a", Want: 1000})
		}
		grants, err := w.traffic.Renew(t.Context(), "r", asks)
		ok(t, err)
		for i, g := range grants {
			if g.SessionID != asks[i].SessionID || g.Granted != 1000 || g.Outcome != traffic.Open {
				t.Errorf("grant %d is %+v", i, g)
			}
		}
	})
	t.Run("a static session has no limit and costs nothing more", func(t *testing.T) {
		v := w.buy(agent, static)
		w.use(v.ID, "a", 5*traffic.MaxLease)
		got := w.read(agent, v.ID)
		if got.Usage.Used() != 5*traffic.MaxLease || got.Cost != v.Cost || got.Status != session.Active {
			t.Errorf("it is %+v, %+v", got.Usage, got.Cost)
		}
	})
	t.Run("a session that is creating gives nothing and keeps its money", func(t *testing.T) {
		v := w.buy(agent, localLater)
		g := w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1000})
		if g.Outcome != traffic.Waiting || g.Granted != 0 {
			t.Errorf("granted %+v", g)
		}
		same(t, "held", w.read(agent, v.ID).Cost.Held, dollars("0.25"))
		ok(t, w.work())
		same(t, "the outcome", w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1000}).Outcome, traffic.Open)
	})
	t.Run("an unknown session is not found", func(t *testing.T) {
		_, err := w.traffic.Renew(t.Context(), "r", []traffic.Ask{{SessionID: "sess_none", Lease: "a"}})
		refused(t, err, session.ErrNotFound)
	})
}

func TestTheEndOfTheTraffic(t *testing.T) {
	t.Parallel()
	t.Run("used equals the limit: expired, settled, and the watchers hear of it", func(t *testing.T) {
		t.Parallel()
		for _, want := range []int64{0, 1000} {
			w := open(t, setup{unruly: true})
			agent := w.register()
			v := w.small(agent)
			told := &witness{}
			w.Watch(told)
			g := w.drain(v.ID, "a", want)
			same(t, "the outcome", g.Outcome, traffic.Exhausted)
			got := w.read(agent, v.ID)
			if got.Status != session.Expired || got.Reason != session.TrafficExhausted || got.Usage.Used() != 100_000_000 {
				t.Errorf("it is %s %s, used %d", got.Status, got.Reason, got.Usage.Used())
			}
			same(t, "the cost", got.Cost, sessions.Cost{Charged: dollars("0.04")})
			same(t, "told", told.take(), "session "+v.ID)
			same(t, "asked again", w.renew(traffic.Ask{SessionID: v.ID, Lease: "b", Want: 1}).Outcome, traffic.Exhausted)
			_, err := w.sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			refused(t, err, session.ErrOver)
		}
	})
	t.Run("while the rest is leased elsewhere one waits", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		v := w.small(w.register())
		for i := range 40 {
			w.renew(traffic.Ask{SessionID: v.ID, Lease: fmt.Sprint(i), Want: traffic.MaxLease})
		}
		for i := range 2000 {
			if g := w.renew(traffic.Ask{SessionID: v.ID, Lease: fmt.Sprint("w", i), Want: 1 << 16}); g.Outcome == traffic.Waiting {
				return
			}
		}
		t.Error("nobody ever waited")
	})
	t.Run("a remote seller is told", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		f := form(remote)
		f.Bytes = gigabytes("0.1")
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		w.drain(d.View.ID, "a", 1)
		w.reconciled()
		same(t, "sold", len(w.seller.Live()), 0)
	})
}

// drain uses all of a session, and reports the last of it wanting so much more.
func (w *world) drain(id, lease string, want int64) traffic.Grant {
	w.t.Helper()
	g := w.renew(traffic.Ask{SessionID: id, Lease: lease, Want: traffic.MaxLease})
	for range 100 {
		next := int64(traffic.MaxLease)
		if g.Granted == 100_000_000 {
			next = want
		}
		if g = w.renew(traffic.Ask{SessionID: id, Lease: lease, Down: g.Granted, Want: next}); g.Outcome != traffic.Open {
			return g
		}
	}
	w.t.Fatalf("never drained: %+v", g)
	return g
}

// Two replicas that relay all that they are granted use exactly the limit.
func TestReplicasNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.small(agent)
	var relayed atomic.Int64
	var wg sync.WaitGroup
	for replica := range 4 {
		wg.Go(func() {
			lease, used := fmt.Sprint("r", replica), int64(0)
			for range 3000 {
				grants, err := w.traffic.Renew(context.Background(), lease, []traffic.Ask{{SessionID: v.ID, Lease: lease, Up: used,
					Want: 1 + rand.Int64N(8<<20)}})
				if err != nil {
					t.Error(err)
					return
				}
				g := grants[0]
				if g.Outcome == traffic.Exhausted || g.Outcome == traffic.Over {
					return
				}
				some := rand.Int64N(g.Granted - used + 1)
				if g.Granted-used < 1<<16 {
					some = g.Granted - used
				}
				used += some
				relayed.Add(some)
			}
			t.Error("it never ended")
		})
	}
	wg.Wait()
	got := w.read(agent, v.ID)
	if relayed.Load() != 100_000_000 || got.Usage.Used() != 100_000_000 || got.Status != session.Expired {
		t.Errorf("relayed %d, used %d, %s", relayed.Load(), got.Usage.Used(), got.Status)
	}
	same(t, "charged", got.Cost.Charged, dollars("0.04"))
}
