package ordering_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// A renewal at a seller is paid when the seller has confirmed, and moves the end
// then.
func TestRenewAtASeller(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*apptest.World, string, sessions.View, func(string) (sessions.Done, error)) {
		w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
		agent := w.RegisterFunded(10)
		v := w.Buy(agent, apptest.RemoteStatic)
		return w, agent, v, func(k string) (sessions.Done, error) {
			return w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call(k)})
		}
	}
	later := func(v sessions.View) time.Time { return v.ExpiresAt.Add(30 * session.Day) }
	t.Run("confirmed at once", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		before := w.Balance(agent)
		d, err := renew("k")
		apptest.OK(t, err)
		if d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(later(v)) || d.View.Cost.Held != 0 || d.View.Cost.Charged != apptest.Dollars("2") {
			t.Errorf("renewed %d %s %+v", d.Outcome, d.View.ExpiresAt, d.View.Cost)
		}
		apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("1"))
		again, err := renew("k")
		apptest.OK(t, err)
		if again.Outcome != ports.Completed || !again.Replayed || !again.View.ExpiresAt.Equal(later(v)) {
			t.Errorf("replayed %d %+v", again.Outcome, again.View.ExpiresAt)
		}
		apptest.Equal(t, "renewed at the seller", w.Seller.Of(v.ID)[0].Renewals, 1)
		_, err = renew("l")
		apptest.OK(t, err)
		apptest.Equal(t, "renewed again", w.Seller.Of(v.ID)[0].Renewals, 2)
		w.ExpectReconciled()
	})
	t.Run("a dry run calls no provider", func(t *testing.T) {
		w, agent, v, _ := begin(t)
		before := w.Dump()
		d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: true})
		apptest.OK(t, err)
		apptest.Equal(t, "the cost", d.Quote.Cost, apptest.Dollars("1"))
		apptest.Equal(t, "the database", w.Dump(), before)
		apptest.Equal(t, "asked", w.Seller.Calls(fake.Extend), 0)
	})
	for class, want := range map[procurement.Class]*domain.Error{procurement.Temporary: ports.ErrProvider, procurement.TimedOut: ports.ErrTimeout,
		procurement.InsufficientFunds: ports.ErrProvider} {
		t.Run("refused: "+string(class), func(t *testing.T) {
			w, agent, v, renew := begin(t)
			before := w.Balance(agent)
			for range 2 {
				w.Seller.Next(fake.Extend, fake.Refuse(class))
				_, err := renew("k")
				apptest.ErrorIs(t, err, want)
				apptest.Equal(t, "the balance", w.Balance(agent), before)
			}
			if now := w.Read(agent, v.ID); now.Cost.Held != 0 || !now.ExpiresAt.Equal(v.ExpiresAt) || now.Status != session.Active {
				t.Errorf("the session is %+v", now.Session)
			}
			d, err := renew("k") // its key is free
			apptest.OK(t, err)
			apptest.Equal(t, "replayed", d.Replayed, false)
			// The key of the creation was not touched.
			apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, later(v))
			w.ExpectReconciled()
		})
	}
	for name, step := range map[string]fake.Step{"the answer was lost": fake.LoseAnswer(), "the request was lost": fake.LoseRequest()} {
		t.Run(name, func(t *testing.T) {
			w, agent, v, renew := begin(t)
			w.Clock.Advance(time.Hour)
			before := w.Balance(agent)
			w.Seller.Next(fake.Extend, step)
			d, err := renew("k")
			apptest.OK(t, err)
			if d.Outcome != ports.Pending || !d.View.ExpiresAt.Equal(v.ExpiresAt) || d.View.Cost.Held != apptest.Dollars("1") {
				t.Errorf("renewed %d %+v", d.Outcome, d.View.Cost)
			}
			_, err = renew("other")
			apptest.ErrorIs(t, err, session.ErrNotReady)
			again, err := renew("k")
			apptest.OK(t, err)
			if again.Outcome != ports.Pending || !again.Replayed {
				t.Errorf("replayed %d", again.Outcome)
			}
			w.Clock.Advance(20 * time.Minute)
			w.ExpectReconciled()
			now := w.Read(agent, v.ID)
			apptest.Equal(t, "sent", w.Seller.Calls(fake.Extend), 1)
			apptest.Equal(t, "held", now.Cost.Held, 0)
			if step.Work {
				apptest.Equal(t, "the end", now.ExpiresAt, later(v))
				apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("1"))
				return
			}
			apptest.Equal(t, "the end", now.ExpiresAt, v.ExpiresAt)
			apptest.Equal(t, "the balance", w.Balance(agent), before)
			again, err = renew("k")
			apptest.OK(t, err)
			apptest.Equal(t, "tried again", again.Outcome, ports.Completed)
		})
	}
	t.Run("an address that the seller exchanged meanwhile proves no renewal", func(t *testing.T) {
		w, agent, _, _ := begin(t)
		f := apptest.Form(apptest.RemoteStatic)
		f.Quantity = new(2)
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		apptest.OK(t, err)
		v := d.View
		before := w.Balance(agent)
		w.Seller.Next(fake.Extend, fake.LoseRequest())
		d, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("two")})
		apptest.OK(t, err)
		apptest.Equal(t, "the status", d.Outcome, ports.Pending)
		w.Seller.Change(v.ID, func(p *fake.Purchase) {
			ips := slices.Clone(p.Delivery.IPs)
			ips[0].Addr = fake.StaticExit(200)
			p.Delivery.IPs = ips
		})
		w.Clock.Advance(20 * time.Minute)
		w.ExpectReconciled()
		apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt)
		apptest.Equal(t, "the balance", w.Balance(agent), before)
	})
	t.Run("the session ends while the outcome is unknown", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		before := w.Balance(agent)
		w.Seller.Next(fake.Extend, fake.LoseAnswer())
		_, err := renew("k")
		apptest.OK(t, err)
		_, err = w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("1"))
		w.Clock.Advance(20 * time.Minute)
		w.ExpectReconciled()
		apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("2"), Forfeited: apptest.Dollars("2")})
		apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("1"))
	})
	t.Run("the process dies after it was sent", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		w.Store.FailUpdates(3, 4) // 1 holds, 2 records that it is sent
		_, err := renew("k")
		apptest.ErrorIs(t, err, apptest.ErrStore)
		w.ExpectReconciled()
		apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, later(v))
		apptest.Equal(t, "sent", w.Seller.Calls(fake.Extend), 1)
	})
	t.Run("some addresses are renewed: the operator decides", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		w.Seller.Next(fake.Extend, fake.LoseAnswer())
		w.Seller.Always(fake.Read, fake.Step{})
		_, err := renew("k")
		apptest.OK(t, err)
		w.Seller.Always(fake.Read, fake.Refuse(procurement.Temporary))
		for range 200 {
			w.Clock.Advance(10 * time.Minute)
			apptest.OK(t, w.RunOrders())
		}
		o := lastOrder(w, v.ID)
		if o.Kind != procurement.Renewal || o.FrozenAt.IsZero() {
			t.Fatalf("after a day it is %+v", o)
		}
		w.Seller.Always(fake.Read, fake.Step{})
		_, err = w.Desk.Adopt(t.Context(), o.ID, "")
		apptest.OK(t, err)
		apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, later(v))
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, 0)
	})
	t.Run("a seller that cannot renew is not asked", func(t *testing.T) {
		w, _, _, renew := begin(t)
		w.Seller.Can(func(c *procurement.Capabilities) { c.Renews = false })
		before := w.Dump()
		_, err := renew("k")
		apptest.ErrorIs(t, err, ports.ErrProvider)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("many at once under one key", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		apptest.Concurrently(10, func(int) {
			if _, err := renew("k"); err != nil {
				refusedAs(t, err, domain.ErrIdempotencyConflict)
			}
		})
		apptest.Equal(t, "sent", w.Seller.Calls(fake.Extend), 1)
		apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, later(v))
	})
}

// refusedAs is refused for goroutines.
func refusedAs(t *testing.T, err error, want *domain.Error) {
	t.Helper()
	if e, is := err.(*domain.Error); !is || !e.Is(want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
