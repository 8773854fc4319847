package ordering_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestRemoteCreate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Remote, apptest.RemoteStatic} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			d, err := w.CreateWith(agent, product, apptest.Call("k"))
			apptest.OK(t, err)
			if d.Outcome != ports.Created || d.View.Status != session.Active || len(d.View.Exits) != 1 {
				t.Errorf("created %d %+v", d.Outcome, d.View.Session)
			}
			bought := w.Seller.Of(d.View.ID)[0]
			if bought.Delivery.IPs[0].Addr != d.View.Exits[0].IP || bought.Location != d.View.Location || bought.Type != d.View.Type {
				t.Errorf("bought %+v", bought)
			}
			again, err := w.CreateWith(agent, product, apptest.Call("k"))
			apptest.OK(t, err)
			if again.Outcome != ports.Created || !again.Replayed || again.View.ID != d.View.ID {
				t.Errorf("replayed %+v", again)
			}
			w.ExpectReconciled()
			apptest.Equal(t, "orders", w.Seller.Calls(fake.Provision), 1)
		})
	}
}

// A provider that proves that nothing was bought ends the session as failed and
// gives back the money and the key.
func TestRemoteRefusal(t *testing.T) {
	t.Parallel()
	for class, want := range map[procurement.Class]*domain.Error{procurement.Temporary: ports.ErrProvider, procurement.TimedOut: ports.ErrTimeout,
		procurement.OutOfStock: catalog.ErrOutOfStock, procurement.Auth: ports.ErrProvider, procurement.InsufficientFunds: ports.ErrProvider} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			w.Seller.Next(fake.Provision, fake.Refuse(class))
			_, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
			apptest.ErrorIs(t, err, want)
			id, _ := err.(*domain.Error).Details["session_id"].(string)
			v := w.Read(agent, id)
			if v.Status != session.Failed || v.Reason != session.ProviderFailed || v.Failure.Code != want.Code || v.Cost != (sessions.Cost{}) {
				t.Errorf("the session is %+v", v.Session)
			}
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
			apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, hold -500000, release 500000")
			d, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
			apptest.OK(t, err)
			if d.Replayed || d.View.ID == id || d.Outcome != ports.Created {
				t.Errorf("the key bought %+v", d)
			}
			w.ExpectReconciled()
		})
		t.Run(string(class)+" later", func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			d, err := w.CreateWith(agent, apptest.RemoteAsync, apptest.Call("k"))
			apptest.OK(t, err)
			w.Seller.Next(fake.Provision, fake.Refuse(class))
			apptest.OK(t, w.RunOrders())
			v := w.Read(agent, d.View.ID)
			apptest.Equal(t, "the failure", v.Failure.Code, want.Code)
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
			again, err := w.CreateWith(agent, apptest.RemoteAsync, apptest.Call("k"))
			apptest.OK(t, err)
			apptest.Equal(t, "replayed", again.Replayed, false)
			w.ExpectReconciled()
		})
	}
}

// A session whose purchase has no known outcome stays creating and holds its money,
// until the provider was asked: what it has is adopted, what it has not is given
// back, and nothing is ever sent again.
func TestAmbiguousCreate(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{
		"the answer was lost": fake.LoseAnswer(), "the request was lost": fake.LoseRequest(),
		"an unknown fault": {Err: errors.New("connection reset"), Work: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			w.Seller.Next(fake.Provision, step)
			d, err := w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.OK(t, err)
			if d.Outcome != ports.Pending || d.View.Status != session.Creating || d.View.Cost.Held != apptest.Dollars("1") {
				t.Fatalf("created %d %+v", d.Outcome, d.View)
			}
			// The first call has been answered: a retry need not wait.
			again, err := w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.OK(t, err)
			if again.Outcome != ports.Pending || !again.Replayed || again.View.ID != d.View.ID {
				t.Errorf("replayed %+v", again)
			}
			w.Clock.Advance(time.Minute)
			apptest.OK(t, w.RunOrders())
			if !step.Work {
				apptest.Equal(t, "too early to decide", w.Read(agent, d.View.ID).Status, session.Creating)
				w.Clock.Advance(procurement.ListingDelay)
				apptest.OK(t, w.RunOrders())
				apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Failed)
				apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
				apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 1)
				w.ExpectReconciled()
				return
			}
			apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
			again, err = w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.OK(t, err)
			apptest.Equal(t, "the first status", again.Outcome, ports.Pending)
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9"))
			apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 1)
			w.ExpectReconciled()
		})
	}
}

// The process dies somewhere: its context ends, or its second unit is not stored.
func TestCrashAfterTheProviderDidTheWork(t *testing.T) {
	t.Parallel()
	t.Run("the activation was not stored", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		w.Store.FailUpdates(3, 4) // 1 holds, 2 records that it is sent
		_, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
		apptest.ErrorIs(t, err, apptest.ErrStore)
		_, err = w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
		apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
		e := err.(*domain.Error)
		if !e.Retryable || e.RetryAfter <= 0 || e.Details["state"] != "in_progress" {
			t.Errorf("the refusal is %+v", e)
		}
		w.Clock.Advance(time.Minute)
		d, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
		apptest.OK(t, err)
		if d.Outcome != ports.Pending || !d.Replayed || d.View.Status != session.Creating {
			t.Errorf("after a minute: %d %+v", d.Outcome, d.View.Session)
		}
		w.Clock.Advance(procurement.SendTimeout)
		apptest.OK(t, w.RunOrders()) // the process that sent it counts as dead
		w.Clock.Advance(time.Minute)
		apptest.OK(t, w.RunOrders()) // the provider is asked
		d, err = w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
		apptest.OK(t, err)
		apptest.Equal(t, "the session", d.View.Status, session.Active)
		w.ExpectReconciled()
		apptest.Equal(t, "orders of it", len(w.Seller.Sales()), 1)
	})
	t.Run("the caller left while the provider worked", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		gate, open, ctx, cancel := holdProvision(t, w)
		var d sessions.Done
		var wg sync.WaitGroup
		wg.Go(func() {
			d, _ = w.Sessions.Create(ctx, sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Remote), Call: apptest.Call("k")})
		})
		gate()
		cancel()
		open()
		wg.Wait()
		apptest.Equal(t, "the session", d.View.Status, session.Active)
		w.ExpectReconciled()
	})
	t.Run("a lost job is stored again", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.LocalAsync)
		w.Exec(`DELETE FROM test_jobs`)
		apptest.OK(t, w.Driver.Recover(t.Context(), 5*time.Minute))
		apptest.Equal(t, "jobs", len(w.OrderJobs()), 0)
		w.Clock.Advance(5*time.Minute + time.Second)
		apptest.OK(t, w.Driver.Recover(t.Context(), 5*time.Minute))
		apptest.OK(t, w.Driver.Recover(t.Context(), 0))
		apptest.Equal(t, "jobs", len(w.OrderJobs()), 2)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Active)
		w.ExpectReconciled()
	})
}

// holdProvision makes the seller wait for a call; gate returns once it is there, open
// lets it go on.
func holdProvision(t *testing.T, w *apptest.World) (gate, open func(), ctx context.Context, cancel func()) {
	hold := make(chan struct{})
	w.Seller.Next(fake.Provision, fake.Step{Gate: hold})
	ctx, cancel = context.WithCancel(t.Context())
	return func() { w.WaitForCall(fake.Provision, 1) }, func() { close(hold) }, ctx, cancel
}
