package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Changed tells that a commit touched a session; "" says that any session may
// have changed. The next connection sees the new state, and open tunnels of a
// session that has ended are cut soon after. It does not wait for either.
func (g *Gateway) Changed(sessionID string) {
	if sessionID != "" {
		if e := g.routes.find(sessionID); e != nil {
			g.changed(e)
		}
		return
	}
	for _, e := range g.routes.all() {
		g.changed(e)
	}
}

func (g *Gateway) changed(e *entry) {
	e.version.Add(1)
	e.pool.mu.Lock()
	busy := e.pool.members.count > 0
	e.pool.mu.Unlock()
	if busy {
		g.refresh.want(e)
	}
}

// ended hears from the renewer that a session's traffic is used up, or that the
// session is over; why, its route tells.
func (g *Gateway) ended(sessionID string, v verdict) {
	e := g.routes.find(sessionID)
	if e == nil {
		return
	}
	e.version.Add(1)
	if v == spent {
		g.finish(e, spent)
		return
	}
	g.refresh.want(e)
}

// reread looks a session with open tunnels up and ends them if it has ended;
// false if the core did not answer.
func (g *Gateway) reread(ctx context.Context, e *entry) bool {
	r, err := g.route(ctx, e)
	var de *domain.Error
	switch {
	case errors.As(err, &de) && de.Kind == domain.NotFound:
		g.finish(e, over)
	case err != nil:
		return false
	case r.Status.Over() && r.Reason == session.TrafficExhausted:
		g.finish(e, spent)
	case r.Status.Over():
		g.finish(e, over)
	}
	return true
}

// finish ends every connection of a session: gently when its traffic is used up,
// else at once.
func (g *Gateway) finish(e *entry, v verdict) {
	e.pool.finish(v)
	why := ended
	if v == spent {
		why = exhausted
	}
	e.pool.mu.Lock()
	list := append([]*conn(nil), e.pool.members.list...)
	e.pool.mu.Unlock()
	for _, c := range list {
		c.interrupt(why)
	}
}

// refresher re-reads routes in the background, each entry once however often it
// is wanted meanwhile, until the core has answered.
type refresher struct {
	reread func(context.Context, *entry) bool
	wakeup chan struct{}
	mu     sync.Mutex
	wanted map[*entry]struct{}
}

const (
	readers     = 8
	rereadPause = 200 * time.Millisecond // after the core did not answer
)

func newRefresher(reread func(context.Context, *entry) bool) *refresher {
	return &refresher{reread: reread, wakeup: make(chan struct{}, 1), wanted: map[*entry]struct{}{}}
}

func (r *refresher) want(e *entry) {
	r.mu.Lock()
	r.wanted[e] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

func (r *refresher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wakeup:
		}
		r.mu.Lock()
		wanted := r.wanted
		r.wanted = map[*entry]struct{}{}
		r.mu.Unlock()
		failed := r.round(ctx, wanted)
		if len(failed) == 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rereadPause):
		}
		for _, e := range failed {
			r.want(e)
		}
	}
}

// round re-reads entries, several at a time, and returns those without answer.
func (r *refresher) round(ctx context.Context, wanted map[*entry]struct{}) []*entry {
	var (
		wg     sync.WaitGroup
		mu     sync.Mutex
		failed []*entry
	)
	next := make(chan *entry)
	for range min(readers, len(wanted)) {
		wg.Go(func() {
			for e := range next {
				if !r.reread(ctx, e) {
					mu.Lock()
					failed = append(failed, e)
					mu.Unlock()
				}
			}
		})
	}
	for e := range wanted {
		next <- e
	}
	close(next)
	wg.Wait()
	return failed
}
