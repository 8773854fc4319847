package app_test

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
	"agentproxy/test/fake"
)

// A renewal at a seller is paid when the seller has confirmed, and moves the end
// then.
func TestRenewAtASeller(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*world, string, sessions.View, func(string) (sessions.Done, error)) {
		w := open(t, setup{unruly: true})
		agent := w.rich(10)
		v := w.buy(agent, remoteStatic)
		return w, agent, v, func(k string) (sessions.Done, error) {
			return w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key(k)})
		}
	}
	later := func(v sessions.View) time.Time { return v.ExpiresAt.Add(30 * session.Day) }
	t.Run("confirmed at once", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		before := w.balance(agent)
		d, err := renew("k")
		ok(t, err)
		if d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(later(v)) || d.View.Cost.Held != 0 || d.View.Cost.Charged != dollars("2") {
			t.Errorf("renewed %d %s %+v", d.Outcome, d.View.ExpiresAt, d.View.Cost)
		}
		same(t, "the balance", w.balance(agent), before-dollars("1"))
		again, err := renew("k")
		ok(t, err)
		if again.Outcome != ports.Completed || !again.Replayed || !again.View.ExpiresAt.Equal(later(v)) {
			t.Errorf("replayed %d %+v", again.Outcome, again.View.ExpiresAt)
		}
		same(t, "renewed at the seller", w.seller.Of(v.ID)[0].Renewals, 1)
		_, err = renew("l")
		ok(t, err)
		same(t, "renewed again", w.seller.Of(v.ID)[0].Renewals, 2)
		w.reconciled()
	})
	t.Run("a dry run asks nobody", func(t *testing.T) {
		w, agent, v, _ := begin(t)
		before := w.dump()
		d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: true})
		ok(t, err)
		same(t, "the cost", d.Quote.Cost, dollars("1"))
		same(t, "the database", w.dump(), before)
		same(t, "asked", w.seller.Calls(fake.Extend), 0)
	})
	for class, want := range map[procurement.Class]*domain.Error{procurement.Temporary: ports.ErrProvider, procurement.TimedOut: ports.ErrTimeout,
		procurement.InsufficientFunds: ports.ErrProvider} {
		t.Run("refused: "+string(class), func(t *testing.T) {
			w, agent, v, renew := begin(t)
			before := w.balance(agent)
			for range 2 {
				w.seller.Next(fake.Extend, fake.Refuse(class))
				_, err := renew("k")
				refused(t, err, want)
				same(t, "the balance", w.balance(agent), before)
			}
			if now := w.read(agent, v.ID); now.Cost.Held != 0 || !now.ExpiresAt.Equal(v.ExpiresAt) || now.Status != session.Active {
				t.Errorf("the session is %+v", now.Session)
			}
			d, err := renew("k") // its key is free
			ok(t, err)
			same(t, "replayed", d.Replayed, false)
			// The key of the creation was not touched.
			same(t, "the end", w.read(agent, v.ID).ExpiresAt, later(v))
			w.reconciled()
		})
	}
	for name, step := range map[string]fake.Step{"the answer was lost": fake.LoseAnswer(), "the request was lost": fake.LoseRequest()} {
		t.Run(name, func(t *testing.T) {
			w, agent, v, renew := begin(t)
			w.clock.Advance(time.Hour)
			before := w.balance(agent)
			w.seller.Next(fake.Extend, step)
			d, err := renew("k")
			ok(t, err)
			if d.Outcome != ports.Pending || !d.View.ExpiresAt.Equal(v.ExpiresAt) || d.View.Cost.Held != dollars("1") {
				t.Errorf("renewed %d %+v", d.Outcome, d.View.Cost)
			}
			_, err = renew("other")
			refused(t, err, session.ErrNotReady)
			again, err := renew("k")
			ok(t, err)
			if again.Outcome != ports.Pending || !again.Replayed {
				t.Errorf("replayed %d", again.Outcome)
			}
			w.clock.Advance(20 * time.Minute)
			w.reconciled()
			now := w.read(agent, v.ID)
			same(t, "sent", w.seller.Calls(fake.Extend), 1)
			same(t, "held", now.Cost.Held, 0)
			if step.Work {
				same(t, "the end", now.ExpiresAt, later(v))
				same(t, "the balance", w.balance(agent), before-dollars("1"))
				return
			}
			same(t, "the end", now.ExpiresAt, v.ExpiresAt)
			same(t, "the balance", w.balance(agent), before)
			again, err = renew("k")
			ok(t, err)
			same(t, "tried again", again.Outcome, ports.Completed)
		})
	}
	t.Run("an address that the seller exchanged meanwhile proves no renewal", func(t *testing.T) {
		w, agent, _, _ := begin(t)
		f := form(remoteStatic)
		f.Quantity = new(2)
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
		ok(t, err)
		v := d.View
		before := w.balance(agent)
		w.seller.Next(fake.Extend, fake.LoseRequest())
		d, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("two")})
		ok(t, err)
		same(t, "the status", d.Outcome, ports.Pending)
		w.seller.Change(v.ID, func(p *fake.Purchase) {
			ips := slices.Clone(p.Delivery.IPs)
			ips[0].Addr = fake.StaticExit(200)
			p.Delivery.IPs = ips
		})
		w.clock.Advance(20 * time.Minute)
		w.reconciled()
		same(t, "the end", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt)
		same(t, "the balance", w.balance(agent), before)
	})
	t.Run("the session ends while nobody knows", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		before := w.balance(agent)
		w.seller.Next(fake.Extend, fake.LoseAnswer())
		_, err := renew("k")
		ok(t, err)
		_, err = w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		same(t, "the balance", w.balance(agent), before)
		w.clock.Advance(20 * time.Minute)
		w.reconciled()
		same(t, "held", w.read(agent, v.ID).Cost.Held, 0)
	})
	t.Run("the process dies after it was sent", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		w.store.failUpdates(3, 4) // 1 holds, 2 records that it is sent
		_, err := renew("k")
		refused(t, err, errStore)
		w.reconciled()
		same(t, "the end", w.read(agent, v.ID).ExpiresAt, later(v))
		same(t, "sent", w.seller.Calls(fake.Extend), 1)
	})
	t.Run("some addresses are renewed: the operator decides", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		w.seller.Next(fake.Extend, fake.LoseAnswer())
		w.seller.Always(fake.Read, fake.Step{})
		_, err := renew("k")
		ok(t, err)
		w.seller.Always(fake.Read, fake.Refuse(procurement.Temporary))
		for range 200 {
			w.clock.Advance(10 * time.Minute)
			ok(t, w.work())
		}
		o := w.order(v.ID)
		if o.Kind != procurement.Renewal || o.FrozenAt.IsZero() {
			t.Fatalf("after a day it is %+v", o)
		}
		w.seller.Always(fake.Read, fake.Step{})
		_, err = w.desk.Adopt(t.Context(), o.ID, "")
		ok(t, err)
		same(t, "the end", w.read(agent, v.ID).ExpiresAt, later(v))
		same(t, "held", w.read(agent, v.ID).Cost.Held, 0)
	})
	t.Run("a seller that cannot renew is not asked", func(t *testing.T) {
		w, _, _, renew := begin(t)
		w.seller.Can(func(c *procurement.Capabilities) { c.Renews = false })
		before := w.dump()
		_, err := renew("k")
		refused(t, err, ports.ErrProvider)
		same(t, "the database", w.dump(), before)
	})
	t.Run("many at once under one key", func(t *testing.T) {
		w, agent, v, renew := begin(t)
		parallel(10, func(int) {
			if _, err := renew("k"); err != nil {
				refusedAs(t, err, domain.ErrIdempotencyConflict)
			}
		})
		same(t, "sent", w.seller.Calls(fake.Extend), 1)
		same(t, "the end", w.read(agent, v.ID).ExpiresAt, later(v))
	})
}

// refusedAs is refused for goroutines.
func refusedAs(t *testing.T, err error, want *domain.Error) {
	t.Helper()
	if e, is := err.(*domain.Error); !is || !e.Is(want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
