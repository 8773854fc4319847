// Package app holds the use cases: what agents and operators may ask for, each
// as one unit of work or as two around a remote call, and the passes that do in
// the background what nobody asks for.
package app

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/ports"
)

// Hub tells everything that keeps agents or sessions in memory what changed: at
// once for changes of this process, and by Poll for those of others.
type Hub struct {
	store ports.Store
	clock ports.Clock

	mu       sync.RWMutex
	watchers []ports.Watcher

	seen   atomic.Int64
	primed atomic.Bool
}

// NewHub makes a hub without watchers.
func NewHub(store ports.Store, clock ports.Clock) *Hub { return &Hub{store: store, clock: clock} }

// Watch adds a watcher for the life of the process.
func (h *Hub) Watch(w ports.Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers = append(h.watchers, w)
}

// AgentChanged tells the watchers that an agent changed; "" is any.
func (h *Hub) AgentChanged(id string) {
	for _, w := range h.all() {
		w.AgentChanged(id)
	}
}

// SessionChanged tells the watchers that a session changed; "" is any.
func (h *Hub) SessionChanged(id string) {
	for _, w := range h.all() {
		w.SessionChanged(id)
	}
}

func (h *Hub) all() []ports.Watcher {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.watchers
}

// PollEvery is how often Poll is to be called, so that what another process
// changes holds here within a second.
const PollEvery = 250 * time.Millisecond

const (
	changesAtOnce = 1000
	keepChanges   = 10 * time.Minute
)

// Poll tells the watchers what other processes changed since the last call. A
// poll that fails tells them that anything may have changed when it works again.
func (h *Hub) Poll(ctx context.Context) error {
	var changes []ports.Change
	err := h.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if !h.primed.Load() {
			last, err := tx.Changes().Last(ctx)
			h.seen.Store(last)
			return err
		}
		changes, err = tx.Changes().Since(ctx, h.seen.Load(), changesAtOnce)
		return err
	})
	if err != nil {
		h.primed.Store(false)
		return err
	}
	// Numbers have no gap: when the next one is missing, it was purged while this
	// process slept.
	missed := len(changes) == changesAtOnce || len(changes) > 0 && changes[0].Seq != h.seen.Load()+1
	if !h.primed.Swap(true) || missed {
		h.AgentChanged("")
		h.SessionChanged("")
		if missed {
			h.primed.Store(false)
		}
		return nil
	}
	for _, c := range changes {
		if c.Agent != "" {
			h.AgentChanged(c.Agent)
		}
		if c.Session != "" {
			h.SessionChanged(c.Session)
		}
		h.seen.Store(c.Seq)
	}
	return nil
}

// Purge forgets changes that every process has heard of long ago.
func (h *Hub) Purge(ctx context.Context) error {
	return h.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Changes().Purge(ctx, h.clock.Now().Add(-keepChanges))
	})
}
