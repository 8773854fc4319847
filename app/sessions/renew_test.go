package sessions_test

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
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestRenew(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(10)
	f := apptest.Form(apptest.Static)
	f.Quantity = new(2)
	d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(t, err)
	v := d.View
	ends := v.ExpiresAt
	renew := func(days string, c idempotency.Call) (sessions.Done, error) {
		return w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Days: days, Call: c})
	}
	t.Run("it extends from where it would have ended, at the price of the days", func(t *testing.T) {
		notified := &apptest.ChangeRecorder{}
		w.Watch(notified)
		w.Clock.Advance(5 * session.Day)
		before := w.Balance(agent)
		d, err := renew("", apptest.Call("k"))
		apptest.OK(t, err)
		ends = ends.Add(30 * session.Day)
		if d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(ends) || d.View.Cost.Charged != apptest.Dollars("4") || d.View.Cost.Held != 0 {
			t.Errorf("renewed %+v", d.View)
		}
		apptest.Equal(t, "the balance", w.Balance(agent), before-apptest.Dollars("2"))
		apptest.Equal(t, "notified", notified.Take(), "session "+v.ID)
		d, err = renew("90", idempotency.Call{})
		apptest.OK(t, err)
		ends = ends.Add(90 * session.Day)
		if !d.View.ExpiresAt.Equal(ends) || d.View.Cost.Charged != apptest.Dollars("9.4") || !w.Read(agent, v.ID).ExpiresAt.Equal(ends) {
			t.Errorf("renewed %+v", d.View)
		}
		list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		apptest.Equal(t, "the feed", list.Items[0].Type, "renewed")
	})
	t.Run("repeated under its key it changes nothing", func(t *testing.T) {
		before := w.Dump()
		d, err := renew("", apptest.Call("k"))
		apptest.OK(t, err)
		if !d.Replayed || d.Outcome != ports.Completed || !d.View.ExpiresAt.Equal(ends) {
			t.Errorf("replayed %+v", d)
		}
		_, err = renew("90", idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
		apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("days that the product does not list are refused", func(t *testing.T) {
		for _, days := range []string{"31", "0", "-30", "30.5", "x", "1e9"} {
			_, err := renew(days, apptest.Call("bad"))
			apptest.ErrorIs(t, err, domain.ErrInvalid)
		}
		d, err := renew("3e1", idempotency.Call{})
		apptest.OK(t, err)
		ends = ends.Add(30 * session.Day)
		apptest.Equal(t, "its end", d.View.ExpiresAt, ends)
	})
	t.Run("without the money nothing happens, and the key is free", func(t *testing.T) {
		w.Clock.Advance(time.Hour)
		_, err := w.Wallet.Adjust(t.Context(), agent, -w.Balance(agent), "spent elsewhere")
		apptest.OK(t, err)
		before := w.Dump()
		for _, dry := range []bool{false, true} {
			_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("poor"), DryRun: dry})
			apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
		_, err = w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("4"), "topped up")
		apptest.OK(t, err)
		_, err = renew("", apptest.Call("poor"))
		apptest.OK(t, err)
		ends = ends.Add(30 * session.Day)
		w.SetBudget(agent, "", "", true)
		_, err = renew("", apptest.Call("paused"))
		apptest.ErrorIs(t, err, billing.ErrBudgetExceeded)
		w.SetBudget(agent, "", "", false)
	})
	t.Run("when its time is up it is over, whether the pass was there or not", func(t *testing.T) {
		w.Clock.Set(ends)
		before := w.Dump()
		for _, dry := range []bool{false, true} {
			_, err = w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, DryRun: dry})
			apptest.ErrorIs(t, err, session.ErrOver)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
		apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
		_, err = renew("", idempotency.Call{})
		apptest.ErrorIs(t, err, session.ErrOver)
	})
}

func TestRenewIsRefused(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	dynamic, over := w.Buy(agent, apptest.Local), w.Buy(agent, apptest.Local)
	creating := w.Buy(agent, apptest.StaticAsync)
	_, err := w.Sessions.Terminate(t.Context(), agent, over.ID)
	apptest.OK(t, err)
	before := w.Dump()
	for id, want := range map[string]error{dynamic.ID: domain.ErrInvalid, over.ID: domain.ErrInvalid, creating.ID: session.ErrNotReady,
		"sess_none": session.ErrNotFound} {
		for _, dry := range []bool{false, true} {
			_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: id, Call: apptest.Call("k"), DryRun: dry})
			apptest.ErrorIs(t, err, want)
		}
	}
	apptest.Equal(t, "the database", w.Dump(), before)
	apptest.Equal(t, "extended by the seller", w.Seller.Calls(fake.Extend), 0)
}

// A renewal is charged at the price of the day, whatever the session was bought
// for.
func TestRenewAtTodaysPrice(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(100)
	w.Seller.SetInProcess(true)
	v := w.Buy(agent, apptest.RemoteStatic)
	dearer := apptest.SellerProducts()
	for i := range dearer {
		if dearer[i].Type == session.Static {
			dearer[i].Durations = []catalog.Duration{{Days: 30, Price: apptest.Dollars("3")}}
		}
	}
	replaceCatalog(w, dearer)
	d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "charged", d.View.Cost.Charged, apptest.Dollars("4"))
	t.Run("a seller that refuses to extend is not paid", func(t *testing.T) {
		before := w.Dump()
		w.Seller.Always(fake.Extend, fake.Refuse(procurement.Temporary))
		_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
		apptest.ErrorIs(t, err, ports.ErrProvider)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
}

func TestParallelRenewals(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.Buy(agent, apptest.Static)
	apptest.Concurrently(20, func(i int) {
		_, err := w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
		if err != nil {
			t.Error(err)
		}
	})
	apptest.Equal(t, "its end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	var won atomic.Int32
	apptest.Concurrently(20, func(i int) {
		_, err := w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call(fmt.Sprint(i))})
		if err == nil {
			won.Add(1)
		}
	})
	apptest.Equal(t, "renewed with 8.00", won.Load(), 8)
	apptest.Equal(t, "its end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(9*30*session.Day))
}

// replaceCatalog gives the seller, with its books, another catalogue.
func replaceCatalog(w *apptest.World, to []catalog.Product) {
	w.T.Helper()
	w.Wire(apptest.Options{SellerProducts: to}, w.Clock, w.IDs)
}
