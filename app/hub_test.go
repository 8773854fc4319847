package app_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/account"
	"agentproxy/ports"
)

// What another process does to the same file holds here after the next poll.
func TestChangesOfAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := open(t, setup{path: w.path})
	r := w.credentials()
	tok, err := w.token(r)
	ok(t, err)
	told := &witness{}
	w.Watch(told)
	ok(t, w.Poll(t.Context()))
	same(t, "told first", told.take(), "agent any, session any")
	ok(t, w.Poll(t.Context()))
	same(t, "told without a change", told.take(), "")

	v := w.buy(r.Agent.ID, local)
	_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
	ok(t, err)
	ok(t, other.accounts.Disable(t.Context(), r.Agent.ID, "abuse"))
	_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
	ok(t, err) // not polled yet
	ok(t, w.Poll(t.Context()))
	same(t, "told", told.take(), "agent "+r.Agent.ID+", session "+v.ID)
	_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
	refused(t, err, account.ErrDisabled)

	ok(t, other.accounts.Enable(t.Context(), r.Agent.ID))
	_, _, err = other.accounts.RotateSecret(t.Context(), r.Agent.ID)
	ok(t, err)
	ok(t, w.Poll(t.Context()))
	_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
	ok(t, err)
	_, err = w.accounts.AuthenticateToken(t.Context(), tok.Text)
	refused(t, err, account.ErrExpiredToken)

	t.Run("many changes, or such as were purged while it slept, are any change", func(t *testing.T) {
		told.take()
		for range 3 {
			ok(t, other.accounts.SetRateLimit(t.Context(), r.Agent.ID, 7))
		}
		w.clock.Advance(time.Hour)
		other.clock.Advance(time.Hour)
		ok(t, other.accounts.SetRateLimit(t.Context(), r.Agent.ID, 8))
		ok(t, other.Purge(t.Context()))
		ok(t, w.Poll(t.Context()))
		same(t, "told", told.take(), "agent any, session any")
		ok(t, w.Poll(t.Context())) // finds its place again
		told.take()
		ok(t, other.accounts.SetRateLimit(t.Context(), r.Agent.ID, 9))
		ok(t, w.Poll(t.Context()))
		same(t, "told", told.take(), "agent "+r.Agent.ID)
		for range 1001 {
			w.exec(`INSERT INTO changes (agent_id, session_id, at) VALUES ('a', '', ?)`, w.clock.Now().UnixMicro())
		}
		ok(t, w.Poll(t.Context()))
		same(t, "told", told.take(), "agent any, session any")
	})
	t.Run("after a poll that failed, anything may have changed", func(t *testing.T) {
		ok(t, w.Poll(t.Context()))
		told.take()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if w.Poll(gone) == nil {
			t.Error("the poll did not fail")
		}
		same(t, "told", told.take(), "")
		ok(t, w.Poll(t.Context()))
		same(t, "told", told.take(), "agent any, session any")
	})
}

// A read that was under way when the agent changed is not what later callers get.
func TestAReadUnderWayIsNotCached(t *testing.T) {
	t.Parallel()
	for _, any := range []bool{false, true} {
		w := newWorld(t)
		r := w.credentials()
		began, goOn := make(chan bool), make(chan bool)
		_, err := w.accounts.AuthenticateKey(t.Context(), r.APIKey) // the id of the key is known from here
		ok(t, err)
		w.AgentChanged("")
		stale := &slowView{Store: w.store.Store, began: began, goOn: goOn}
		w.store.Store = stale
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = w.accounts.AuthenticateKey(t.Context(), r.APIKey) })
		<-began // it has read the agent as active
		w.store.Store = w.db
		ok(t, w.accounts.Disable(t.Context(), r.Agent.ID, "abuse"))
		if any {
			w.AgentChanged("")
		}
		_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		refused(t, err, account.ErrDisabled)
		close(goOn)
		wg.Wait()
		_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		refused(t, err, account.ErrDisabled)
	}
}

// slowView is a store whose views end late.
type slowView struct {
	ports.Store
	began, goOn chan bool
}

func (s *slowView) View(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	err := s.Store.View(ctx, fn)
	s.began <- true
	<-s.goOn
	return err
}

// witness records what the hub notifies.
type witness struct {
	mu   sync.Mutex
	told []string
}

func (w *witness) AgentChanged(id string)   { w.add("agent", id) }
func (w *witness) SessionChanged(id string) { w.add("session", id) }

func (w *witness) add(what, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "" {
		id = "any"
	}
	w.told = append(w.told, what+" "+id)
}

func (w *witness) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := strings.Join(w.told, ", ")
	w.told = nil
	return told
}
