package app_test

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
	"agentproxy/test/fake"
)

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	agent := w.rich(100)
	first, err := w.createWith(agent, local, key("k"))
	ok(t, err)
	t.Run("a repeated call answers the first session as it stands", func(t *testing.T) {
		w.use(first.View.ID, "l", 1000)
		before := w.dump()
		d, err := w.createWith(agent, local, key("k"))
		ok(t, err)
		if d.Outcome != ports.Created || !d.Replayed || d.View.ID != first.View.ID || d.View.Usage.Used() != 1000 {
			t.Errorf("replayed %+v", d)
		}
		same(t, "the database", w.dump(), before)
	})
	t.Run("even when it would be refused now", func(t *testing.T) {
		w.budget(agent, "", "", true)
		d, err := w.createWith(agent, local, key("k"))
		ok(t, err)
		same(t, "the session", d.View.ID, first.View.ID)
		w.budget(agent, "", "", false)
	})
	t.Run("another body is a conflict", func(t *testing.T) {
		before := w.dump()
		_, err := w.createWith(agent, local, idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
		refused(t, err, domain.ErrIdempotencyConflict)
		same(t, "retryable", err.(*domain.Error).Retryable, false)
		same(t, "the database", w.dump(), before)
	})
	t.Run("another path, another agent and another key are other calls", func(t *testing.T) {
		for _, c := range []idempotency.Call{{Key: "k", Path: "/v1/other", Hash: []byte("body")}, key("k2"), key("K")} {
			d, err := w.createWith(agent, local, c)
			ok(t, err)
			same(t, "replayed", d.Replayed, false)
		}
		d, err := w.createWith(w.register(), local, key("k"))
		ok(t, err)
		same(t, "replayed", d.Replayed, false)
	})
	t.Run("after a refusal the key is free", func(t *testing.T) {
		poor := w.register()
		f := form(local)
		f.Bytes = gigabytes("30")
		_, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: poor, Form: f, Call: key("k")})
		refused(t, err, billing.ErrInsufficientBalance)
		_, err = w.wallet.Adjust(t.Context(), poor, dollars("2"), "topped up")
		ok(t, err)
		d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: poor, Form: f, Call: key("k")})
		ok(t, err)
		same(t, "replayed", d.Replayed, false)
	})
	t.Run("a session that ended is replayed as ended", func(t *testing.T) {
		_, err := w.sessions.Terminate(t.Context(), agent, first.View.ID)
		ok(t, err)
		d, err := w.createWith(agent, local, key("k"))
		ok(t, err)
		if d.Outcome != ports.Created || d.View.Status != session.Terminated {
			t.Errorf("replayed %d %s", d.Outcome, d.View.Status)
		}
	})
	t.Run("an asynchronous call is replayed as accepted", func(t *testing.T) {
		d, err := w.createWith(agent, localLater, key("later"))
		ok(t, err)
		ok(t, w.work())
		again, err := w.createWith(agent, localLater, key("later"))
		ok(t, err)
		if again.Outcome != ports.Pending || again.View.Status != session.Active || again.View.ID != d.View.ID {
			t.Errorf("replayed %d %s", again.Outcome, again.View.Status)
		}
	})
	t.Run("it is kept for 24 hours", func(t *testing.T) {
		w.clock.Advance(24 * time.Hour)
		d, err := w.createWith(agent, local, key("k2"))
		ok(t, err)
		same(t, "replayed", d.Replayed, true)
		w.clock.Advance(time.Microsecond)
		fresh, err := w.createWith(agent, local, key("k2"))
		ok(t, err)
		if fresh.Replayed || fresh.View.ID == d.View.ID {
			t.Errorf("after a day: %+v", fresh)
		}
		d, err = w.createWith(agent, local, key("k2"))
		ok(t, err)
		same(t, "the session", d.View.ID, fresh.View.ID)
		ok(t, w.passes.Purge(t.Context()))
		same(t, "keys left", len(w.texts(`SELECT key FROM idempotency_keys`)), 1)
	})
}

// While the first call is with the provider, a second one is refused as in progress.
func TestKeyInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	hold := make(chan struct{})
	w.seller.Next(fake.Provision, fake.Step{Gate: hold})
	var wg sync.WaitGroup
	var first sessions.Done
	wg.Go(func() { first, _ = w.createWith(agent, remote, key("k")) })
	w.called(fake.Provision, 1)
	for range 2 {
		_, err := w.createWith(agent, remote, key("k"))
		refused(t, err, domain.ErrIdempotencyConflict)
		if e := err.(*domain.Error); !e.Retryable || e.RetryAfter < time.Second {
			t.Errorf("told %+v", e)
		}
		w.clock.Advance(59 * time.Second)
	}
	w.clock.Advance(-58 * time.Second)
	_, err := w.createWith(agent, remote, idempotency.Call{Key: "k", Path: "/v1/sessions", Hash: []byte("other")})
	refused(t, err, domain.ErrIdempotencyConflict)
	same(t, "retryable", err.(*domain.Error).Retryable, false)
	w.clock.Advance(time.Minute)
	d, err := w.createWith(agent, remote, key("k"))
	ok(t, err)
	if d.Outcome != ports.Pending || d.View.Status != session.Creating || !d.Replayed {
		t.Errorf("after a minute: %d %+v", d.Outcome, d.View.Session)
	}
	close(hold)
	wg.Wait()
	same(t, "the first answer", first.Outcome, ports.Created)
	d, err = w.createWith(agent, remote, key("k"))
	ok(t, err)
	if d.Outcome != ports.Created || d.View.ID != first.View.ID {
		t.Errorf("replayed %d %s", d.Outcome, d.View.ID)
	}
	w.reconciled()
}

func TestParallelCreatesWithOneKey(t *testing.T) {
	t.Parallel()
	for _, product := range []string{local, localLater, remote, static} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			var made, replayed, waiting atomic.Int32
			parallel(50, func(int) {
				d, err := w.createWith(agent, product, key("k"))
				switch {
				case errors.Is(err, domain.ErrIdempotencyConflict) && err.(*domain.Error).Retryable && product == remote:
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
				t.Errorf("made %d, replayed %d, told to wait %d", made.Load(), replayed.Load(), waiting.Load())
			}
			same(t, "sessions", len(w.texts(`SELECT id FROM sessions`)), 1)
			same(t, "holds", len(w.texts(`SELECT id FROM ledger_entries WHERE type = 'hold'`)), 1)
			w.reconciled()
		})
	}
}

func TestParallelCreatesWithMoneyForTen(t *testing.T) {
	t.Parallel()
	for _, product := range []string{static, remoteStatic, localLater} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register() // 10.00
			f := form(product)
			if product == localLater {
				f.Bytes = gigabytes("4")
			}
			var won, poor atomic.Int32
			parallel(100, func(i int) {
				_, err := w.sessions.Create(context.Background(), sessions.Create{AgentID: agent, Form: f, Call: key(fmt.Sprint(i))})
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
			same(t, "the balance", w.balance(agent), 0)
			w.reconciled()
		})
	}
}

// parallel calls fn n times at once.
func parallel(n int, fn func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	wg.Wait()
}
