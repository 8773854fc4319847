package sessions_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.RegisterFunded(100)
	first, err := w.CreateWith(agent, apptest.Local, apptest.Call("k"))
	apptest.OK(t, err)
	t.Run("a repeated call answers the first session as it is", func(t *testing.T) {
		w.UseBytes(first.View.ID, "l", 1000)
		before := w.Dump()
		d, err := w.CreateWith(agent, apptest.Local, apptest.Call("k"))
		apptest.OK(t, err)
		if d.Outcome != ports.Created || !d.Replayed || d.View.ID != first.View.ID || d.View.Usage.Used() != 1000 {
			t.Errorf("replayed %+v", d)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("even when it would be refused now", func(t *testing.T) {
		w.SetBudget(agent, "", "", true)
		d, err := w.CreateWith(agent, apptest.Local, apptest.Call("k"))
		apptest.OK(t, err)
		apptest.Equal(t, "the session", d.View.ID, first.View.ID)
		w.SetBudget(agent, "", "", false)
	})
	t.Run("another body is a conflict", func(t *testing.T) {
		before := w.Dump()
		_, err := w.CreateWith(agent, apptest.Local, idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
		apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
		apptest.Equal(t, "retryable", err.(*domain.Error).Retryable, false)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("another path, another agent and another key are other calls", func(t *testing.T) {
		for _, c := range []idempotency.Call{{Key: "k", Path: "/v1/other", Hash: []byte("body")}, apptest.Call("k2"), apptest.Call("K")} {
			d, err := w.CreateWith(agent, apptest.Local, c)
			apptest.OK(t, err)
			apptest.Equal(t, "replayed", d.Replayed, false)
		}
		d, err := w.CreateWith(w.Register(), apptest.Local, apptest.Call("k"))
		apptest.OK(t, err)
		apptest.Equal(t, "replayed", d.Replayed, false)
	})
	t.Run("after a refusal the key is free", func(t *testing.T) {
		poor := w.Register()
		f := apptest.Form(apptest.Local)
		f.Bytes = apptest.Gigabytes("30")
		_, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: poor, Form: f, Call: apptest.Call("k")})
		apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
		_, err = w.Wallet.Adjust(t.Context(), poor, apptest.Dollars("2"), "topped up")
		apptest.OK(t, err)
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: poor, Form: f, Call: apptest.Call("k")})
		apptest.OK(t, err)
		apptest.Equal(t, "replayed", d.Replayed, false)
	})
	t.Run("a session that ended is replayed as ended", func(t *testing.T) {
		_, err := w.Sessions.Terminate(t.Context(), agent, first.View.ID)
		apptest.OK(t, err)
		d, err := w.CreateWith(agent, apptest.Local, apptest.Call("k"))
		apptest.OK(t, err)
		if d.Outcome != ports.Created || d.View.Status != session.Terminated {
			t.Errorf("replayed %d %s", d.Outcome, d.View.Status)
		}
	})
	t.Run("an asynchronous call is replayed as accepted", func(t *testing.T) {
		d, err := w.CreateWith(agent, apptest.LocalAsync, apptest.Call("later"))
		apptest.OK(t, err)
		apptest.OK(t, w.RunOrders())
		again, err := w.CreateWith(agent, apptest.LocalAsync, apptest.Call("later"))
		apptest.OK(t, err)
		if again.Outcome != ports.Pending || again.View.Status != session.Active || again.View.ID != d.View.ID {
			t.Errorf("replayed %d %s", again.Outcome, again.View.Status)
		}
	})
	t.Run("it is kept for 24 hours", func(t *testing.T) {
		w.Clock.Advance(24 * time.Hour)
		d, err := w.CreateWith(agent, apptest.Local, apptest.Call("k2"))
		apptest.OK(t, err)
		apptest.Equal(t, "replayed", d.Replayed, true)
		w.Clock.Advance(time.Microsecond)
		fresh, err := w.CreateWith(agent, apptest.Local, apptest.Call("k2"))
		apptest.OK(t, err)
		if fresh.Replayed || fresh.View.ID == d.View.ID {
			t.Errorf("after a day: %+v", fresh)
		}
		d, err = w.CreateWith(agent, apptest.Local, apptest.Call("k2"))
		apptest.OK(t, err)
		apptest.Equal(t, "the session", d.View.ID, fresh.View.ID)
		apptest.OK(t, w.Tasks.Purge(t.Context()))
		apptest.Equal(t, "keys left", len(w.Column(`SELECT key FROM idempotency_keys`)), 1)
	})
}

// While the first call is with the provider, a second one is refused as in progress.
func TestKeyInFlight(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	hold := make(chan struct{})
	w.Seller.Next(fake.Provision, fake.Step{Gate: hold})
	var wg sync.WaitGroup
	var first sessions.Done
	wg.Go(func() { first, _ = w.CreateWith(agent, apptest.Remote, apptest.Call("k")) })
	w.WaitForCall(fake.Provision, 1)
	for range 2 {
		_, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
		apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
		if e := err.(*domain.Error); !e.Retryable || e.RetryAfter < time.Second {
			t.Errorf("answered %+v", e)
		}
		w.Clock.Advance(59 * time.Second)
	}
	w.Clock.Advance(-58 * time.Second)
	_, err := w.CreateWith(agent, apptest.Remote, idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
	apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
	apptest.Equal(t, "retryable", err.(*domain.Error).Retryable, false)
	w.Clock.Advance(time.Minute)
	d, err := w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
	apptest.OK(t, err)
	if d.Outcome != ports.Pending || d.View.Status != session.Creating || !d.Replayed {
		t.Errorf("after a minute: %d %+v", d.Outcome, d.View.Session)
	}
	close(hold)
	wg.Wait()
	apptest.Equal(t, "the first answer", first.Outcome, ports.Created)
	d, err = w.CreateWith(agent, apptest.Remote, apptest.Call("k"))
	apptest.OK(t, err)
	if d.Outcome != ports.Created || d.View.ID != first.View.ID {
		t.Errorf("replayed %d %s", d.Outcome, d.View.ID)
	}
	w.ExpectReconciled()
}

func TestParallelCreatesWithOneKey(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Local, apptest.LocalAsync, apptest.Remote, apptest.Static} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			var made, replayed, waiting atomic.Int32
			apptest.Concurrently(50, func(int) {
				d, err := w.CreateWith(agent, product, apptest.Call("k"))
				switch {
				case errors.Is(err, domain.ErrIdempotencyConflict) && err.(*domain.Error).Retryable && product == apptest.Remote:
					waiting.Add(1)
				case err != nil:
					t.Error(err)
				case d.Replayed:
					replayed.Add(1)
				default:
					made.Add(1)
				}
			})
			if made.Load() != 1 || replayed.Load()+waiting.Load() != 49 {
				t.Errorf("made %d, replayed %d, refused for now %d", made.Load(), replayed.Load(), waiting.Load())
			}
			apptest.Equal(t, "sessions", len(w.Column(`SELECT id FROM sessions`)), 1)
			apptest.Equal(t, "holds", len(w.Column(`SELECT id FROM ledger_entries WHERE type = 'hold'`)), 1)
			w.ExpectReconciled()
		})
	}
}

func TestParallelCreatesWithMoneyForTen(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Static, apptest.RemoteStatic, apptest.LocalAsync} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register() // 10.00
			f := apptest.Form(product)
			if product == apptest.LocalAsync {
				f.Bytes = apptest.Gigabytes("4")
			}
			var won, poor atomic.Int32
			apptest.Concurrently(100, func(i int) {
				_, err := w.Sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f, Call: apptest.Call(fmt.Sprint(i))})
				switch {
				case err == nil:
					won.Add(1)
				case errors.Is(err, billing.ErrInsufficientBalance):
					poor.Add(1)
				default:
					t.Error(err)
				}
			})
			if won.Load() != 10 || poor.Load() != 90 {
				t.Errorf("%d won, %d were too poor", won.Load(), poor.Load())
			}
			apptest.Equal(t, "the balance", w.Balance(agent), 0)
			w.ExpectReconciled()
		})
	}
}
