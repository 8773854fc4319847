package app_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(10)
	f := form(static)
	f.Quantity = new(2)
	d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	ok(t, err)
	v := d.View
	ends := v.ExpiresAt
	renew := func(days string, c idempotency.Call) (sessions.Done, error) {
		return w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Days: days, Call: c})
	}
	t.Run("it extends from where it would have ended, at the price of the days", func(t *testing.T) {
		told := &witness{}
		w.Watch(told)
		w.clock.Advance(5 * session.Day)
		before := w.balance(agent)
		d, err := renew("", key("k"))
		ok(t, err)
		ends = ends.Add(30 * session.Day)
		if d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(ends) || d.View.Cost.Charged != dollars("4") || d.View.Cost.Held != 0 {
			t.Errorf("renewed %+v", d.View)
		}
		same(t, "the balance", w.balance(agent), before-dollars("2"))
		same(t, "told", told.take(), "session "+v.ID)
		d, err = renew("90", idempotency.Call{})
		ok(t, err)
		ends = ends.Add(90 * session.Day)
		if !d.View.ExpiresAt.Equal(ends) || d.View.Cost.Charged != dollars("9.4") || !w.read(agent, v.ID).ExpiresAt.Equal(ends) {
			t.Errorf("renewed %+v", d.View)
		}
		list, err := w.sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		ok(t, err)
		same(t, "the feed", list.Items[0].Type, "renewed")
	})
	t.Run("repeated under its key it changes nothing", func(t *testing.T) {
		before := w.dump()
		d, err := renew("", key("k"))
		ok(t, err)
		if !d.Replayed || d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(ends) {
			t.Errorf("replayed %+v", d)
		}
		_, err = renew("90", idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
		refused(t, err, domain.ErrIdempotencyConflict)
		same(t, "the database", w.dump(), before)
	})
	t.Run("days that the product does not list are refused", func(t *testing.T) {
		for _, days := range []string{"31", "0", "-30", "30.5", "x", "1e9"} {
			_, err := renew(days, key("bad"))
			refused(t, err, domain.ErrInvalid)
		}
		d, err := renew("3e1", idempotency.Call{})
		ok(t, err)
		ends = ends.Add(30 * session.Day)
		same(t, "its end", d.View.ExpiresAt, ends)
	})
	t.Run("without the money nothing happens, and the key is free", func(t *testing.T) {
		w.clock.Advance(time.Hour)
		_, err := w.wallet.Adjust(t.Context(), agent, -w.balance(agent), "spent elsewhere")
		ok(t, err)
		before := w.dump()
		for _, dry := range []bool{false, true} {
			_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("poor"), DryRun: dry})
			refused(t, err, billing.ErrInsufficientBalance)
		}
		same(t, "the database", w.dump(), before)
		_, err = w.wallet.Adjust(t.Context(), agent, dollars("4"), "topped up")
		ok(t, err)
		_, err = renew("", key("poor"))
		ok(t, err)
		ends = ends.Add(30 * session.Day)
		w.budget(agent, "", "", true)
		_, err = renew("", key("paused"))
		refused(t, err, billing.ErrBudgetExceeded)
		w.budget(agent, "", "", false)
	})
	t.Run("when its time is up it is over, whether the pass was there or not", func(t *testing.T) {
		w.clock.Set(ends)
		before := w.dump()
		for _, dry := range []bool{false, true} {
			_, err = w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: dry})
			refused(t, err, session.ErrOver)
		}
		same(t, "the database", w.dump(), before)
		ok(t, w.passes.ExpireSessions(t.Context()))
		_, err = renew("", idempotency.Call{})
		refused(t, err, session.ErrOver)
	})
}

func TestRenewIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	dynamic, over := w.buy(agent, local), w.buy(agent, local)
	creating := w.buy(agent, staticLater)
	_, err := w.sessions.Terminate(t.Context(), agent, over.ID)
	ok(t, err)
	before := w.dump()
	for id, want := range map[string]error{dynamic.ID: domain.ErrInvalid, over.ID: domain.ErrInvalid, creating.ID: session.ErrNotReady,
		"sess_none": session.ErrNotFound} {
		for _, dry := range []bool{false, true} {
			_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id, Call: key("k"), DryRun: dry})
			refused(t, err, want)
		}
	}
	same(t, "the database", w.dump(), before)
	same(t, "extended by the seller", w.seller.Calls(fake.Extend), 0)
}

// A renewal is charged at the price of the day, whatever the session was bought
// for.
func TestRenewAtTodaysPrice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(100)
	w.seller.SetInProcess(true)
	v := w.buy(agent, remoteStatic)
	dearer := products()
	for i := range dearer {
		if dearer[i].Type == session.Static {
			dearer[i].Durations = []catalog.Duration{{Days: 30, Price: dollars("3")}}
		}
	}
	w.reprice(dearer)
	d, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	ok(t, err)
	same(t, "charged", d.View.Cost.Charged, dollars("4"))
	t.Run("a seller that refuses to extend is not paid", func(t *testing.T) {
		before := w.dump()
		w.seller.Always(fake.Extend, fake.Refuse(procurement.Temporary))
		_, err := w.sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("k")})
		refused(t, err, ports.ErrProvider)
		same(t, "the database", w.dump(), before)
	})
}

func TestParallelRenewals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	v := w.buy(agent, static)
	parallel(20, func(i int) {
		_, err := w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("k")})
		if err != nil {
			t.Error(err)
		}
	})
	same(t, "its end", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	var won atomic.Int32
	parallel(20, func(i int) {
		_, err := w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key(fmt.Sprint(i))})
		if err == nil {
			won.Add(1)
		}
	})
	same(t, "renewed with 8.00", won.Load(), 8)
	same(t, "its end", w.read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(9*30*session.Day))
}
