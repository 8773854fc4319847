package metering_test

import (
	"context"
	"fmt"
	"github.com/google/go-cmp/cmp"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

func TestRenewTraffic(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	t.Run("a repeated ask counts nothing twice", func(t *testing.T) {
		v := w.BuySmall(agent)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1 << 20})
		request := traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: 1000, Down: 2000, Connections: 2, Want: 1 << 20}
		first := w.RenewLease(request)
		for range 3 {
			if diff := cmp.Diff(first, w.RenewLease(request)); diff != "" {
				t.Error(diff)
			}
		}
		u := w.Read(agent, v.ID).Usage
		if u.Up != 1000 || u.Down != 2000 || u.Connections != 2 || u.Leased != 1<<20 {
			t.Errorf("the usage is %+v", u)
		}
		request.Up = 500 // overtaken by the later one
		w.RenewLease(request)
		apptest.Equal(t, "used", w.Read(agent, v.ID).Usage.Used(), 3000)
	})
	t.Run("what the store lost is asked again", func(t *testing.T) {
		v := w.BuySmall(agent)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1 << 20})
		request := traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Up: 1000, Want: 1 << 20}
		w.Store.FailUpdates(1)
		_, err := w.Traffic.Renew(t.Context(), "r", []traffic.LeaseRequest{request})
		apptest.ErrorIs(t, err, apptest.ErrStore)
		w.RenewLease(request)
		apptest.Equal(t, "used", w.Read(agent, v.ID).Usage.Used(), 1000)
	})
	t.Run("many sessions are asked for in one call, in order", func(t *testing.T) {
		var requests []traffic.LeaseRequest
		for range 5 {
			requests = append(requests, traffic.LeaseRequest{SessionID: w.BuySmall(agent).ID, Lease: "a", Want: 1000})
		}
		grants, err := w.Traffic.Renew(t.Context(), "r", requests)
		apptest.OK(t, err)
		for i, g := range grants {
			if g.SessionID != requests[i].SessionID || g.Granted != 1000 || g.Outcome != traffic.Open {
				t.Errorf("grant %d is %+v", i, g)
			}
		}
	})
	t.Run("a static session has no limit and costs nothing more", func(t *testing.T) {
		v := w.Buy(agent, apptest.Static)
		w.UseBytes(v.ID, "a", 5*traffic.MaxLease)
		got := w.Read(agent, v.ID)
		if got.Usage.Used() != 5*traffic.MaxLease || got.Cost != v.Cost || got.Status != session.Active {
			t.Errorf("it is %+v, %+v", got.Usage, got.Cost)
		}
	})
	t.Run("a session that is creating gives nothing and keeps its money", func(t *testing.T) {
		v := w.Buy(agent, apptest.LocalAsync)
		g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1000})
		if g.Outcome != traffic.Waiting || g.Granted != 0 {
			t.Errorf("granted %+v", g)
		}
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.25"))
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the outcome", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1000}).Outcome, traffic.Open)
	})
}

func TestTheEndOfTheTraffic(t *testing.T) {
	t.Parallel()
	t.Run("used equals the limit: expired, settled, and the watchers are notified", func(t *testing.T) {
		t.Parallel()
		for _, want := range []int64{0, 1000} {
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			v := w.BuySmall(agent)
			notified := &apptest.ChangeRecorder{}
			w.Watch(notified)
			g := drainSession(w, v.ID, "a", want)
			apptest.Equal(t, "the outcome", g.Outcome, traffic.Exhausted)
			got := w.Read(agent, v.ID)
			if got.Status != session.Expired || got.Reason != session.TrafficExhausted || got.Usage.Used() != 100_000_000 {
				t.Errorf("it is %s %s, used %d", got.Status, got.Reason, got.Usage.Used())
			}
			apptest.Equal(t, "the cost", got.Cost, sessions.Cost{Charged: apptest.Dollars("0.04")})
			apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
			apptest.Equal(t, "asked again", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "b", Want: 1}).Outcome, traffic.Exhausted)
			_, err := w.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
			apptest.ErrorIs(t, err, session.ErrOver)
		}
	})
	t.Run("while the rest is leased elsewhere one waits", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		v := w.BuySmall(w.Register())
		for i := range 40 {
			w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: fmt.Sprint(i), Want: traffic.MaxLease})
		}
		for i := range 2000 {
			if g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: fmt.Sprint("w", i), Want: 1 << 16}); g.Outcome == traffic.Waiting {
				return
			}
		}
		t.Error("no call ever waited")
	})
	t.Run("a remote seller is called", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		f := apptest.Form(apptest.Remote)
		f.Bytes = apptest.Gigabytes("0.1")
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		drainSession(w, d.View.ID, "a", 1)
		w.ExpectReconciled()
		apptest.Equal(t, "sold", len(w.Seller.Live()), 0)
	})
}

// drainSession uses all of a session, and reports the last of it wanting so much more.
func drainSession(w *apptest.World, id, lease string, want int64) traffic.Grant {
	w.T.Helper()
	g := w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Want: traffic.MaxLease})
	for range 100 {
		next := int64(traffic.MaxLease)
		if g.Granted == 100_000_000 {
			next = want
		}
		if g = w.RenewLease(traffic.LeaseRequest{SessionID: id, Lease: lease, Down: g.Granted, Want: next}); g.Outcome != traffic.Open {
			return g
		}
	}
	w.T.Fatalf("never drained: %+v", g)
	return g
}

// Two replicas that relay all that they are granted use exactly the limit.
func TestReplicasNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.BuySmall(agent)
	var relayed atomic.Int64
	var wg sync.WaitGroup
	for replica := range 4 {
		wg.Go(func() {
			lease, used := fmt.Sprint("r", replica), int64(0)
			for moves := 0; moves < 3000; {
				grants, err := w.Traffic.Renew(context.Background(), lease, []traffic.LeaseRequest{{SessionID: v.ID, Lease: lease, Up: used,
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
				if some == 0 { // another replica has the rest
					runtime.Gosched()
					continue
				}
				used, moves = used+some, moves+1
				relayed.Add(some)
			}
			t.Error("it never ended")
		})
	}
	wg.Wait()
	got := w.Read(agent, v.ID)
	if relayed.Load() != 100_000_000 || got.Usage.Used() != 100_000_000 || got.Status != session.Expired {
		t.Errorf("relayed %d, used %d, %s", relayed.Load(), got.Usage.Used(), got.Status)
	}
	apptest.Equal(t, "charged", got.Cost.Charged, apptest.Dollars("0.04"))
}

// A route shows the gateway what the account may do, and whose exits it has.
func TestARouteHasTierAndProvider(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{})
	for agent, trial := range map[string]bool{w.Register(): true, w.RegisterFunded(10): false} {
		v := w.Buy(agent, apptest.Local)
		r, err := w.Traffic.Route(t.Context(), v.ID)
		apptest.OK(t, err)
		if r.Trial != trial || r.AgentID != agent || r.Provider != v.Provider || v.Provider == "" {
			t.Errorf("trial %v: the route is %+v", trial, r)
		}
	}
}
