// Package changes announces changes of agents and sessions to what keeps them in
// memory, in this process and in others.
package changes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/ports"
)

// Hub notifies watchers, which keep agents or sessions in memory, of changes: at
// once of those of this process, and by Poll of those of others.
type Hub struct {
	store ports.Unit[repos]
	clock ports.Clock

	mu       sync.RWMutex
	watchers []ports.Watcher
	feeds    []ports.FeedWatcher

	polling sync.Mutex // one poll at a time; it guards what follows
	cursor  ports.Cursor
	primed  bool

	begun, polled atomic.Int64 // when the first poll began, and the last one that succeeded, in microseconds
	since         atomic.Int64 // when the first of those began that have succeeded one after the other
}

// New returns a hub without watchers.
func New(store ports.Store, clock ports.Clock) *Hub { return &Hub{store: narrow(store), clock: clock} }

// Watch adds a watcher for the life of the process.
func (h *Hub) Watch(w ports.Watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.watchers = append(h.watchers, w)
}

// WatchFeeds adds a watcher of events, for the life of the process. It is notified by Poll, of those of this process
// too.
func (h *Hub) WatchFeeds(w ports.FeedWatcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.feeds = append(h.feeds, w)
}

func (h *Hub) feedGrew(id string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, w := range h.feeds {
		w.FeedGrew(id)
	}
}

// AgentChanged notifies the watchers that an agent changed; "" is any.
func (h *Hub) AgentChanged(id string) {
	for _, w := range h.all() {
		w.AgentChanged(id)
	}
}

// SessionChanged notifies the watchers that a session changed; "" is any.
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

// PollEvery is how often Poll is to be called, so that a change of another process
// is seen within a second. A store that signals changes triggers it earlier.
const PollEvery = 250 * time.Millisecond

const (
	changesLimit = 4000
	keepChanges  = 10 * time.Minute
	purgeSize    = 500
)

// behindAfter is how long ago the last poll may have succeeded for a change to be known within a
// second.
const behindAfter = time.Second

// Stale reports whether changes of the last second may be unknown, as while the database is away.
// It is false until the first Poll: no other process is followed then.
func (h *Hub) Stale() bool {
	polled := max(h.begun.Load(), h.polled.Load())
	return polled > 0 && h.clock.Now().UnixMicro()-polled > behindAfter.Microseconds()
}

// Steady reports whether the database has answered without a gap for a time. It is true until the first Poll.
// After an outage of the database whatever is renewed in it looks old, until its owners had the time to renew it.
func (h *Hub) Steady(within time.Duration) bool {
	return h.begun.Load() == 0 || h.since.Load() > 0 && !h.Stale() &&
		h.clock.Now().UnixMicro()-h.since.Load() >= within.Microseconds()
}

// Poll notifies the watchers of what other processes changed since the last call.
// After one that failed it notifies them that anything may have changed.
func (h *Hub) Poll(ctx context.Context) error {
	h.polling.Lock()
	defer h.polling.Unlock()
	began := h.clock.Now().UnixMicro()
	h.begun.CompareAndSwap(0, began)
	var changes []ports.Change
	var cursor ports.Cursor
	err := h.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		if h.primed {
			changes, cursor, err = tx.Changes().Since(ctx, h.cursor, changesLimit)
		} else {
			cursor, err = tx.Changes().Last(ctx)
		}
		return err
	})
	missed := errors.Is(err, ports.ErrMissed) || err == nil && !h.primed
	if err != nil && !missed {
		h.primed = false
		h.since.Store(0)
		return err
	}
	if h.since.Load() == 0 || began-h.polled.Load() > behindAfter.Microseconds() {
		h.since.Store(began)
	}
	h.cursor, h.primed = cursor, true
	defer h.polled.Store(began) // after the watchers were notified
	if missed {
		h.AgentChanged("")
		h.SessionChanged("")
		h.feedGrew("")
		return nil
	}
	for _, c := range changes {
		if c.Agent != "" {
			h.AgentChanged(c.Agent)
		}
		if c.Session != "" {
			h.SessionChanged(c.Session)
		}
		if c.Feed != "" {
			h.feedGrew(c.Feed)
		}
	}
	return nil
}

// Purge removes changes that every process has polled long ago, purgeSize in a unit, so that others
// do not wait for long.
func (h *Hub) Purge(ctx context.Context) error {
	before := h.clock.Now().Add(-keepChanges)
	for {
		var n int
		err := h.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			n, err = tx.Changes().Purge(ctx, before, purgeSize)
			return err
		})
		if err != nil || n < purgeSize {
			return err
		}
	}
}
