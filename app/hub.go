// Package app holds the use cases: what agents and operators may ask for, each
// as one unit of work or as two around a remote call, and the passes that do in
// the background what nobody asks for.
package app

import (
	"context"
	"errors"
	"sync"
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

	polling sync.Mutex // one poll at a time; it guards what follows
	heard   ports.Cursor
	primed  bool
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
// changes holds here within a second. A store that can tell of changes wakes it
// before.
const PollEvery = 250 * time.Millisecond

const (
	changesAtOnce = 1000
	keepChanges   = 10 * time.Minute
)

// Poll tells the watchers what other processes changed since the last call. A
// poll that fails tells them that anything may have changed when it works again.
func (h *Hub) Poll(ctx context.Context) error {
	h.polling.Lock()
	defer h.polling.Unlock()
	var changes []ports.Change
	var heard ports.Cursor
	err := h.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if h.primed {
			changes, heard, err = tx.Changes().Since(ctx, h.heard, changesAtOnce)
		} else {
			heard, err = tx.Changes().Last(ctx)
		}
		return err
	})
	missed := errors.Is(err, ports.ErrMissed) || err == nil && !h.primed
	if err != nil && !missed {
		h.primed = false
		return err
	}
	h.heard, h.primed = heard, true
	if missed {
		h.AgentChanged("")
		h.SessionChanged("")
		return nil
	}
	for _, c := range changes {
		if c.Agent != "" {
			h.AgentChanged(c.Agent)
		}
		if c.Session != "" {
			h.SessionChanged(c.Session)
		}
	}
	return nil
}

// Purge forgets changes that every process has heard of long ago.
func (h *Hub) Purge(ctx context.Context) error {
	return h.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return tx.Changes().Purge(ctx, h.clock.Now().Add(-keepChanges))
	})
}
