package app_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// key is a call under an Idempotency-Key.
func key(k string) idempotency.Call {
	return idempotency.Call{Key: k, Path: "/v1/sessions", Hash: []byte("body")}
}

func (w *world) createWith(agent, product string, c idempotency.Call) (sessions.Done, error) {
	return w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: form(product), Call: c})
}

// reconciled demands that the seller's books have what the sessions have: once
// every job is done nothing is bought that no live session uses.
func (w *world) reconciled() {
	w.t.Helper()
	for range 6 {
		w.clock.Advance(time.Minute)
		if err := w.work(); err != nil {
			w.t.Error(err)
		}
	}
	if jobs := w.pending(); len(jobs) > 0 {
		w.t.Errorf("jobs are left: %+v", jobs)
	}
	if creating := w.texts(`SELECT id FROM upstream_orders WHERE status IN ('planned', 'sent', 'unknown')`); len(creating) > 0 {
		w.t.Errorf("orders without an outcome: %v", creating)
	}
	if due := w.texts(`SELECT id FROM upstream_orders WHERE closed_at > 0 AND next_at > 0`); len(due) > 0 {
		w.t.Errorf("due for ever: %v", due)
	}
	live := w.texts(`SELECT id FROM sessions WHERE provider = 'remote' AND status = 'active' ORDER BY id`)
	if sold := w.seller.Live(); !slices.Equal(sold, live) {
		w.t.Errorf("sold are %v, active %v", sold, live)
	}
	if creating := w.texts(`SELECT id FROM sessions WHERE status = 'creating'`); len(creating) > 0 {
		w.t.Errorf("creating for ever: %v", creating)
	}
}

func TestRemoteCreate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{remote, remoteStatic} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			d, err := w.createWith(agent, product, key("k"))
			ok(t, err)
			if d.Outcome != ports.Created || d.View.Status != session.Active || len(d.View.Exits) != 1 {
				t.Errorf("created %d %+v", d.Outcome, d.View.Session)
			}
			bought := w.seller.Of(d.View.ID)[0]
			if bought.Delivery.IPs[0].Addr != d.View.Exits[0].IP || bought.Location != d.View.Location || bought.Type != d.View.Type {
				t.Errorf("bought %+v", bought)
			}
			again, err := w.createWith(agent, product, key("k"))
			ok(t, err)
			if again.Outcome != ports.Created || !again.Replayed || again.View.ID != d.View.ID {
				t.Errorf("replayed %+v", again)
			}
			w.reconciled()
			same(t, "orders", w.seller.Calls(fake.Provision), 1)
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
			w := open(t, setup{unruly: true})
			agent := w.register()
			w.seller.Next(fake.Provision, fake.Refuse(class))
			_, err := w.createWith(agent, remote, key("k"))
			refused(t, err, want)
			id, _ := err.(*domain.Error).Details["session_id"].(string)
			v := w.read(agent, id)
			if v.Status != session.Failed || v.Reason != session.ProviderFailed || v.Failure.Code != want.Code || v.Cost != (sessions.Cost{}) {
				t.Errorf("the session is %+v", v.Session)
			}
			same(t, "the balance", w.balance(agent), dollars("10"))
			same(t, "the ledger", w.entries(agent), "trial_grant 10000000, hold -500000, release 500000")
			d, err := w.createWith(agent, remote, key("k"))
			ok(t, err)
			if d.Replayed || d.View.ID == id || d.Outcome != ports.Created {
				t.Errorf("the key bought %+v", d)
			}
			w.reconciled()
		})
		t.Run(string(class)+" later", func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			d, err := w.createWith(agent, remoteLater, key("k"))
			ok(t, err)
			w.seller.Next(fake.Provision, fake.Refuse(class))
			ok(t, w.work())
			v := w.read(agent, d.View.ID)
			same(t, "the failure", v.Failure.Code, want.Code)
			same(t, "the balance", w.balance(agent), dollars("10"))
			again, err := w.createWith(agent, remoteLater, key("k"))
			ok(t, err)
			same(t, "replayed", again.Replayed, false)
			w.reconciled()
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
		"a fault that nobody knows": {Err: errors.New("connection reset"), Work: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{unruly: true})
			agent := w.register()
			w.seller.Next(fake.Provision, step)
			d, err := w.createWith(agent, remoteStatic, key("k"))
			ok(t, err)
			if d.Outcome != ports.Pending || d.View.Status != session.Creating || d.View.Cost.Held != dollars("1") {
				t.Fatalf("created %d %+v", d.Outcome, d.View)
			}
			// The first call has been answered: a retry need not wait.
			again, err := w.createWith(agent, remoteStatic, key("k"))
			ok(t, err)
			if again.Outcome != ports.Pending || !again.Replayed || again.View.ID != d.View.ID {
				t.Errorf("replayed %+v", again)
			}
			w.clock.Advance(time.Minute)
			ok(t, w.work())
			if !step.Work {
				same(t, "too early to tell", w.read(agent, d.View.ID).Status, session.Creating)
				w.clock.Advance(2 * time.Minute)
				ok(t, w.work())
				same(t, "the session", w.read(agent, d.View.ID).Status, session.Failed)
				same(t, "the balance", w.balance(agent), dollars("10"))
				same(t, "sent", w.seller.Calls(fake.Provision), 1)
				w.reconciled()
				return
			}
			same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
			again, err = w.createWith(agent, remoteStatic, key("k"))
			ok(t, err)
			same(t, "the first status", again.Outcome, ports.Pending)
			same(t, "the balance", w.balance(agent), dollars("9"))
			same(t, "sent", w.seller.Calls(fake.Provision), 1)
			w.reconciled()
		})
	}
}

// The process dies somewhere: its context ends, or its second unit is not stored.
func TestCrashAfterTheProviderDidTheWork(t *testing.T) {
	t.Parallel()
	t.Run("the activation was not stored", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		w.store.failUpdates(3, 4) // 1 holds, 2 records that it is sent
		_, err := w.createWith(agent, remote, key("k"))
		refused(t, err, errStore)
		_, err = w.createWith(agent, remote, key("k"))
		refused(t, err, domain.ErrIdempotencyConflict)
		e := err.(*domain.Error)
		if !e.Retryable || e.RetryAfter <= 0 || e.Details["state"] != "in_progress" {
			t.Errorf("the refusal is %+v", e)
		}
		w.clock.Advance(time.Minute)
		d, err := w.createWith(agent, remote, key("k"))
		ok(t, err)
		if d.Outcome != ports.Pending || !d.Replayed || d.View.Status != session.Creating {
			t.Errorf("after a minute: %d %+v", d.Outcome, d.View.Session)
		}
		ok(t, w.work()) // the process that sent it counts as dead
		w.clock.Advance(time.Minute)
		ok(t, w.work()) // the provider is asked
		d, err = w.createWith(agent, remote, key("k"))
		ok(t, err)
		same(t, "the session", d.View.Status, session.Active)
		w.reconciled()
		same(t, "orders of it", len(w.seller.Sales()), 1)
	})
	t.Run("the caller left while the provider worked", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		gate, open, ctx, cancel := leave(t, w)
		var d sessions.Done
		var wg sync.WaitGroup
		wg.Go(func() {
			d, _ = w.sessions.Create(ctx, sessions.Create{AgentID: agent, Form: form(remote), Call: key("k")})
		})
		gate()
		cancel()
		open()
		wg.Wait()
		same(t, "the session", d.View.Status, session.Active)
		w.reconciled()
	})
	t.Run("a lost job is stored again", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, localLater)
		w.exec(`DELETE FROM test_jobs`)
		ok(t, w.driver.Recover(t.Context(), 5*time.Minute))
		same(t, "jobs", len(w.pending()), 0)
		w.clock.Advance(5*time.Minute + time.Second)
		ok(t, w.driver.Recover(t.Context(), 5*time.Minute))
		ok(t, w.driver.Recover(t.Context(), 0))
		same(t, "jobs", len(w.pending()), 2)
		ok(t, w.work())
		same(t, "the session", w.read(agent, v.ID).Status, session.Active)
		w.reconciled()
	})
}

// leave makes the seller wait for a call; gate returns once it is there, open
// lets it go on.
func leave(t *testing.T, w *world) (gate, open func(), ctx context.Context, cancel func()) {
	hold := make(chan struct{})
	w.seller.Next(fake.Provision, fake.Step{Gate: hold})
	ctx, cancel = context.WithCancel(t.Context())
	return func() { w.called(fake.Provision, 1) }, func() { close(hold) }, ctx, cancel
}

// called waits until the seller has been called so often.
func (w *world) called(op fake.Op, times int) {
	w.t.Helper()
	for range 5000 {
		if w.seller.Calls(op) >= times {
			return
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatalf("the seller was not called %d times", times)
}
