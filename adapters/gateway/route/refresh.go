package route

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/adapters/gateway/lease"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Changed notifies the cache that a commit touched a session; "" means that any
// session may have changed. The next connection reads the new state, and open
// connections of a session that has ended are interrupted soon after. It does not
// block.
func (c *Cache) Changed(sessionID string) {
	if sessionID != "" {
		if e := c.entryOf(sessionID); e != nil {
			c.changed(e)
		}
		return
	}
	for _, e := range c.all() {
		c.changed(e)
	}
}

func (c *Cache) changed(e *Entry) {
	e.Invalidate()
	if e.Pool.Busy() {
		c.refresh.request(e)
	}
}

// Ended notifies the cache that the core grants a session no more traffic. Why a
// session is closed is part of its route.
func (c *Cache) Ended(sessionID string, v lease.Verdict) {
	e := c.entryOf(sessionID)
	if e == nil {
		return
	}
	e.Invalidate()
	if v == lease.Exhausted {
		e.Pool.End(lease.Exhausted)
		return
	}
	c.refresh.request(e)
}

// reread reads the route of a session with open connections and interrupts them if
// the session has ended. It returns false if the core did not answer.
func (c *Cache) reread(ctx context.Context, e *Entry) bool {
	r, err := c.Route(ctx, e)
	de, _ := errors.AsType[*domain.Error](err)
	switch {
	case de != nil && de.Kind == domain.NotFound:
		e.Pool.End(lease.Closed)
	case err != nil:
		return false
	case r.Status.Over() && r.Reason == session.TrafficExhausted:
		e.Pool.End(lease.Exhausted)
	case r.Status.Over():
		e.Pool.End(lease.Closed)
	default:
		return c.cutRemoved(ctx, e)
	}
	return true
}

const (
	refreshWorkers = 8
	refreshRetry   = 200 * time.Millisecond // after the core did not answer
)

// refresher collects the entries to read again, each once however often it is
// requested, until the core has answered.
type refresher struct {
	wakeup  chan struct{}
	mu      sync.Mutex
	pending map[*Entry]struct{}
}

func newRefresher() refresher {
	return refresher{wakeup: make(chan struct{}, 1), pending: map[*Entry]struct{}{}}
}

func (r *refresher) request(e *Entry) {
	r.mu.Lock()
	r.pending[e] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// takePending returns the pending entries and forgets them.
func (r *refresher) takePending() map[*Entry]struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	pending := r.pending
	r.pending = map[*Entry]struct{}{}
	return pending
}

// Run reads changed routes again until ctx ends.
func (c *Cache) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.refresh.wakeup:
		}
		failed := c.rereadAll(ctx, c.refresh.takePending())
		if len(failed) == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(refreshRetry):
		}
		for _, e := range failed {
			c.refresh.request(e)
		}
	}
}

// rereadAll reads entries again, several at a time, and returns those for which the
// core did not answer.
func (c *Cache) rereadAll(ctx context.Context, pending map[*Entry]struct{}) []*Entry {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []*Entry
	)
	next := make(chan *Entry)
	for range min(refreshWorkers, len(pending)) {
		wg.Go(func() {
			for e := range next {
				if !c.reread(ctx, e) {
					mu.Lock()
					failed = append(failed, e)
					mu.Unlock()
				}
			}
		})
	}
	for e := range pending {
		next <- e
	}
	close(next)
	wg.Wait()
	return failed
}
