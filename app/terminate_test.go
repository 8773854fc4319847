package app_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

func TestTerminate(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(90)
	end := func(id string) sessions.View {
		t.Helper()
		v, err := w.sessions.Terminate(t.Context(), agent, id)
		ok(t, err)
		if v.Status != session.Terminated || v.Reason != session.AgentRequest || !v.EndedAt.Equal(w.clock.Now()) {
			t.Errorf("terminated %+v", v.Session)
		}
		return v
	}
	t.Run("while creating everything comes back", func(t *testing.T) {
		for _, product := range []string{localLater, staticLater, remoteLater} {
			v := w.buy(agent, product)
			same(t, "the cost", end(v.ID).Cost, sessions.Cost{})
			same(t, "the balance", w.balance(agent), dollars("100"))
		}
		ok(t, w.work())
	})
	t.Run("a dynamic one pays what it used, to the floor, and gets back the rest", func(t *testing.T) {
		v := w.buy(agent, local) // 0.40 a GB
		w.use(v.ID, "l", 123_456_789)
		same(t, "the cost", end(v.ID).Cost, sessions.Cost{Charged: dollars("0.049382")})
		same(t, "the balance", w.balance(agent), dollars("100")-dollars("0.049382"))
		if all := w.entries(agent); !strings.HasSuffix(all, "hold -400000, charge 0 of 49382, release 350618") {
			t.Errorf("the ledger is %s", all)
		}
	})
	t.Run("a static one gets nothing back", func(t *testing.T) {
		before := w.balance(agent)
		v := w.buy(agent, static)
		same(t, "the cost", end(v.ID).Cost, sessions.Cost{Charged: dollars("1")})
		same(t, "the balance", w.balance(agent), before-dollars("1"))
	})
	t.Run("repeated it stays as it was", func(t *testing.T) {
		v := w.buy(agent, local)
		first := end(v.ID)
		w.clock.Advance(time.Hour)
		before := w.dump()
		again, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		if !again.EndedAt.Equal(first.EndedAt) || again.Cost != first.Cost || again.Status != session.Terminated {
			t.Errorf("again: %+v", again.Session)
		}
		same(t, "the database", w.dump(), before)
	})
	t.Run("the feed and the watchers hear of it", func(t *testing.T) {
		v := w.buy(agent, local)
		told := &witness{}
		w.Watch(told)
		end(v.ID)
		same(t, "told", told.take(), "session "+v.ID)
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		if e := list.Items[0]; list.Total != 1 || e.Type != "terminated" || e.Code != "agent_request" || e.Source.String() != "service" {
			t.Errorf("the feed has %+v", e)
		}
	})
}

// With a lease out the money waits for the gateway's last word.
func TestTerminateWithALease(t *testing.T) {
	t.Parallel()
	lease := func(t *testing.T) (*world, string, sessions.View) {
		w := open(t, setup{unruly: true})
		agent := w.register()
		v := w.buy(agent, local)
		g := w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1_000_000})
		same(t, "granted", g.Granted, 1_000_000)
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Down: 400_000, Connections: 1, Want: 500_000})
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "b", Want: 1_000_000})
		ended, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		same(t, "the cost", ended.Cost, sessions.Cost{Charged: dollars("0.00016"), Held: dollars("0.39984")})
		same(t, "the balance", w.balance(agent), dollars("9.6"))
		return w, agent, ended
	}
	t.Run("the last report settles it", func(t *testing.T) {
		w, agent, v := lease(t)
		g := w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Down: 650_000, Connections: 1, Want: 500_000})
		same(t, "the outcome", g.Outcome, traffic.Over)
		same(t, "granted", g.Granted, 900_000) // as it was: nothing more, and nothing taken
		g = w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Down: 700_000, Connections: 1, Close: true})
		same(t, "the outcome", g.Outcome, traffic.Over)          // what passed until the cut counts
		same(t, "the balance", w.balance(agent), dollars("9.6")) // lease b is out
		g = w.renew(traffic.Ask{SessionID: v.ID, Lease: "b", Up: 50_000, Close: true})
		same(t, "the outcome", g.Outcome, traffic.Over)
		same(t, "the cost", w.read(agent, v.ID).Cost, sessions.Cost{Charged: dollars("0.0003")})
		same(t, "the balance", w.balance(agent), dollars("9.9997"))
		before := w.dump()
		same(t, "the outcome", w.renew(traffic.Ask{SessionID: v.ID, Lease: "b", Up: 50_000, Close: true}).Outcome, traffic.Lost)
		same(t, "the outcome", w.renew(traffic.Ask{SessionID: v.ID, Lease: "c", Want: 1}).Outcome, traffic.Over)
		same(t, "the database", w.dump(), before)
		w.clock.Advance(time.Hour)
		ok(t, w.passes.Settle(t.Context()))
		ok(t, w.passes.Reclaim(t.Context()))
		same(t, "the balance", w.balance(agent), dollars("9.9997"))
	})
	t.Run("the leases of a gateway that died are taken back", func(t *testing.T) {
		w, agent, v := lease(t)
		w.clock.Advance(traffic.ReclaimAfter - time.Millisecond)
		ok(t, w.passes.Reclaim(t.Context()))
		same(t, "the balance", w.balance(agent), dollars("9.6"))
		ok(t, w.passes.Settle(t.Context()))
		w.clock.Advance(2 * time.Millisecond)
		ok(t, w.passes.Reclaim(t.Context()))
		same(t, "the cost", w.read(agent, v.ID).Cost, sessions.Cost{Charged: dollars("0.00016")})
		same(t, "the balance", w.balance(agent), dollars("9.99984"))
		same(t, "what comes late", w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Down: 900_000, Connections: 1}).Outcome, traffic.Lost)
		same(t, "the balance", w.balance(agent), dollars("9.99984"))
		w.clock.Advance(time.Minute)
		ok(t, w.passes.Settle(t.Context()))
	})
	t.Run("the settlement comes round again while a lease is out", func(t *testing.T) {
		w, agent, v := lease(t)
		for range 3 {
			w.clock.Advance(10 * time.Second)
			w.renewAlive(v.ID)
			ok(t, w.passes.Settle(t.Context()))
			w.audit()
		}
		same(t, "the balance", w.balance(agent), dollars("9.6"))
	})
}

// renewAlive keeps the leases young without a word of the gateway.
func (w *world) renewAlive(id string) {
	w.exec(`UPDATE leases SET renewed_at = ? WHERE session_id = ?`, w.clock.Now().UnixMicro(), id)
}

func TestTerminateRaces(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	for range 10 {
		v := w.buy(agent, local)
		w.renew(traffic.Ask{SessionID: v.ID, Lease: "a", Want: 1_000_000})
		parallel(8, func(i int) {
			var err error
			switch i % 4 {
			case 0:
				_, err = w.sessions.Terminate(context.Background(), agent, v.ID)
			case 1:
				_, err = w.traffic.Renew(context.Background(), "r", []traffic.Ask{{SessionID: v.ID, Lease: "a", Up: 1000, Connections: 1, Close: true}})
			case 2:
				err = w.passes.Settle(context.Background())
			case 3:
				_, err = w.sessions.Rotate(context.Background(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
				if err != nil {
					refusedOver(t, err)
					err = nil
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
		same(t, "held", w.read(agent, v.ID).Cost.Held, 0)
	}
}

func refusedOver(t *testing.T, err error) {
	if e, is := err.(*domain.Error); !is || !e.Is(session.ErrOver) {
		t.Errorf("got %v", err)
	}
}
