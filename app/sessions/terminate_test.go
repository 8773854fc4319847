package sessions_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

func TestTerminate(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(90)
	end := func(id string) sessions.View {
		t.Helper()
		before, balance := w.Dump(), w.Balance(agent)
		e, err := sessions.Endings{Service: w.Sessions}.Try(t.Context(), agent, id)
		apptest.OK(t, err)
		apptest.Equal(t, "what a dry run left", w.Dump(), before)
		v, err := w.Sessions.Terminate(t.Context(), agent, id)
		apptest.OK(t, err)
		apptest.Equal(t, "the money that came back", w.Balance(agent)-balance, e.Refunded)
		apptest.Equal(t, "the balance that was foretold", w.Balance(agent), e.BalanceAfter)
		apptest.Equal(t, "what was given up", v.Cost.Forfeited, e.Forfeited)
		if v.Status != session.Terminated || v.Reason != session.AgentRequest || !v.EndedAt.Equal(w.Clock.Now()) {
			t.Errorf("terminated %+v", v.Session)
		}
		return v
	}
	t.Run("while creating everything comes back", func(t *testing.T) {
		for _, product := range []string{apptest.LocalAsync, apptest.StaticAsync, apptest.RemoteAsync} {
			v := w.Buy(agent, product)
			apptest.Equal(t, "the cost", end(v.ID).Cost, sessions.Cost{})
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("100"))
		}
		apptest.OK(t, w.RunOrders())
	})
	t.Run("a dynamic one pays what it used, to the floor, and gets back the rest", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local) // 0.40 a GB
		w.UseBytes(v.ID, "l", 123_456_789)
		apptest.Equal(t, "the cost", end(v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("0.049382")})
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("100")-apptest.Dollars("0.049382"))
		if all := w.Entries(agent); !strings.HasSuffix(all, "hold -400000, charge 0 of 49382, release 350618") {
			t.Errorf("the ledger is %s", all)
		}
	})
	t.Run("a static one gets nothing back", func(t *testing.T) {
		before := w.Balance(agent)
		v := w.Buy(agent, apptest.Static)
		w.Clock.Advance(12 * session.Day)
		cost := sessions.Cost{Charged: apptest.Dollars("1"), Forfeited: apptest.Dollars("0.6")}
		apptest.Equal(t, "the cost", end(v.ID).Cost, cost)
		apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("1"))
		w.Clock.Advance(session.Day)
		apptest.Equal(t, "the cost later", w.Read(agent, v.ID).Cost, cost)
		e, err := sessions.Endings{Service: w.Sessions}.Try(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "what a second end would do", e.Refunded+e.Forfeited, 0)
	})
	t.Run("repeated it stays as it was", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		first := end(v.ID)
		w.Clock.Advance(time.Hour)
		before := w.Dump()
		again, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		if !again.EndedAt.Equal(first.EndedAt) || again.Cost != first.Cost || again.Status != session.Terminated {
			t.Errorf("again: %+v", again.Session)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("the feed and the watchers get it", func(t *testing.T) {
		v := w.Buy(agent, apptest.Local)
		notified := &apptest.ChangeRecorder{}
		w.Watch(notified)
		end(v.ID)
		apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		if e := list.Items[0]; list.Total != 1 || e.Type != "terminated" || e.Code != "agent_request" || e.Source.String() != "service" {
			t.Errorf("the feed has %+v", e)
		}
	})
}

// With a lease out the money waits for the gateway's last word.
func TestTerminateWithALease(t *testing.T) {
	t.Parallel()
	lease := func(t *testing.T) (*apptest.World, string, sessions.View) {
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.Register()
		v := w.Buy(agent, apptest.Local)
		g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1_000_000})
		apptest.Equal(t, "granted", g.Granted, 1_000_000)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: 400_000, Connections: 1, Want: 500_000})
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "b", Want: 1_000_000})
		ended, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the cost", ended.Cost, sessions.Cost{Charged: apptest.Dollars("0.00016"), Held: apptest.Dollars("0.39984")})
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.6"))
		return w, agent, ended
	}
	t.Run("the last report settles it", func(t *testing.T) {
		w, agent, v := lease(t)
		g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: 650_000, Connections: 1, Want: 500_000})
		apptest.Equal(t, "the outcome", g.Outcome, traffic.Over)
		apptest.Equal(t, "granted", g.Granted, 900_000) // as it was: nothing more, and nothing taken
		g = w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: 700_000, Connections: 1, Close: true})
		apptest.Equal(t, "the outcome", g.Outcome, traffic.Over)                  // what passed until the cut counts
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.6")) // lease b is out
		g = w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "b", Up: 50_000, Close: true})
		apptest.Equal(t, "the outcome", g.Outcome, traffic.Over)
		apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("0.0003")})
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.9997"))
		before := w.Dump()
		apptest.Equal(t, "the outcome", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "b", Up: 50_000, Close: true}).Outcome, traffic.Lost)
		apptest.Equal(t, "the outcome", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "c", Want: 1}).Outcome, traffic.Over)
		apptest.Equal(t, "the database", w.Dump(), before)
		w.Clock.Advance(time.Hour)
		apptest.OK(t, w.Tasks.Settle(t.Context()))
		apptest.OK(t, w.Tasks.Reclaim(t.Context()))
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.9997"))
	})
	t.Run("the leases of a gateway that died are taken back", func(t *testing.T) {
		w, agent, v := lease(t)
		w.Clock.Advance(traffic.ReclaimAfter - time.Millisecond)
		apptest.OK(t, w.Tasks.Reclaim(t.Context()))
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.6"))
		apptest.OK(t, w.Tasks.Settle(t.Context()))
		w.Clock.Advance(2 * time.Millisecond)
		apptest.OK(t, w.Tasks.Reclaim(t.Context()))
		apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("0.00016")})
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.99984"))
		apptest.Equal(t, "what comes late", w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: 900_000, Connections: 1}).Outcome, traffic.Lost)
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.99984"))
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.Tasks.Settle(t.Context()))
	})
	t.Run("the settlement comes round again while a lease is out", func(t *testing.T) {
		w, agent, v := lease(t)
		for range 3 {
			w.Clock.Advance(10 * time.Second)
			refreshLeases(w, v.ID)
			apptest.OK(t, w.Tasks.Settle(t.Context()))
			w.Audit()
		}
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9.6"))
	})
}

// refreshLeases keeps the leases young without a word of the gateway.
func refreshLeases(w *apptest.World, id string) {
	w.Exec(`UPDATE leases SET renewed_at = ? WHERE session_id = ?`, w.Clock.Now().UnixMicro(), id)
}

func TestTerminateRaces(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	for range 10 {
		v := w.Buy(agent, apptest.Local)
		w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 1_000_000})
		apptest.Concurrently(8, func(i int) {
			var err error
			switch i % 4 {
			case 0:
				_, err = w.Sessions.Terminate(context.Background(), agent, v.ID)
			case 1:
				_, err = w.Traffic.Renew(context.Background(), "r", []traffic.LeaseRequest{{SessionID: v.ID, Lease: "a", Up: 1000, Connections: 1, Close: true}})
			case 2:
				err = w.Tasks.Settle(context.Background())
			case 3:
				_, err = w.Sessions.Rotate(context.Background(), sessions.Rotate{AgentID: agent, SessionID: v.ID})
				if err != nil {
					refusedOver(t, err)
					err = nil
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, 0)
	}
}

func refusedOver(t *testing.T, err error) {
	if e, is := err.(*domain.Error); !is || !e.Is(session.ErrOver) {
		t.Errorf("got %v", err)
	}
}
