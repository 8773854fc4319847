package gateway

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain/traffic"
)

// The renewer sends at most batch asks in one call; after an error it waits
// between firstRetry and lastRetry. What could not be said about more than
// maxClosing closed leases is left to the core, which takes them back.
const (
	batch      = 1000
	firstRetry = 100 * time.Millisecond
	lastRetry  = 500 * time.Millisecond
	maxClosing = 100_000
)

// renewer reports the use of all sessions and asks for their leases, in one loop:
// only one renewal is under way at any time, so none can overtake another.
type renewer struct {
	backend Backend
	replica string
	timing  Timing
	tick    time.Duration
	log     *slog.Logger
	ended   func(session string, v verdict) // a session turned out to be spent or over
	starved atomic.Int64                    // times that somebody waited for a lease
	bytes   atomic.Int64                    // reported
	metrics *metrics

	wakeup chan struct{}
	mu     sync.Mutex
	pools  map[*pool]struct{} // with an open lease
	urgent map[*pool]struct{}

	// Of the loop alone.
	closing []traffic.Ask // last asks of leases that the pools have forgotten
	backoff time.Duration
	retry   time.Duration
}

func newRenewer(b Backend, cfg Config, log *slog.Logger) *renewer {
	return &renewer{
		backend: b, replica: cfg.Replica, timing: cfg.Timing, log: log,
		tick:   max(min(cfg.Timing.Report, cfg.Timing.IdleGive)/8, time.Millisecond),
		wakeup: make(chan struct{}, 1),
		pools:  map[*pool]struct{}{}, urgent: map[*pool]struct{}{},
	}
}

// add and remove keep the pools with an open lease; both are called under the
// pool's lock.
func (r *renewer) add(p *pool) {
	r.mu.Lock()
	r.pools[p] = struct{}{}
	r.mu.Unlock()
}

func (r *renewer) remove(p *pool) {
	r.mu.Lock()
	delete(r.pools, p)
	delete(r.urgent, p)
	r.mu.Unlock()
}

// kick has a pool renewed at once.
func (r *renewer) kick(p *pool) {
	r.mu.Lock()
	r.urgent[p] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// run renews until ctx ends.
func (r *renewer) run(ctx context.Context) {
	ticker := time.NewTicker(r.tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.round(ctx, true, false)
		case <-r.wakeup:
			r.round(ctx, false, false)
		}
	}
}

// open is how many leases are.
func (r *renewer) open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pools)
}

// close reports everything once more and gives all leases back.
func (r *renewer) close(ctx context.Context) {
	for ctx.Err() == nil {
		r.retry = 0
		r.round(ctx, true, true)
		r.mu.Lock()
		left := len(r.pools)
		r.mu.Unlock()
		if len(r.closing) == 0 && left == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(firstRetry):
		}
	}
}

// round renews what is due: of the urgent pools, or of all.
func (r *renewer) round(ctx context.Context, all, stopping bool) {
	now := mono()
	if now < r.retry {
		return // the pools stay urgent; the tick comes back to them
	}
	r.mu.Lock()
	from := r.urgent
	if all {
		from = r.pools
	}
	pools := make([]*pool, 0, len(from))
	for p := range from {
		pools = append(pools, p)
	}
	clear(r.urgent)
	r.mu.Unlock()

	asks, asking := r.closing, make([]*pool, len(r.closing), len(r.closing)+len(pools))
	for _, p := range pools {
		ask, ok := p.ask(now, stopping)
		switch {
		case !ok:
		case ask.Close:
			asks, asking = append(asks, ask), append(asking, nil)
		default:
			asks, asking = append(asks, ask), append(asking, p)
		}
	}
	r.closing = nil
	for len(asks) > 0 {
		n := min(len(asks), batch)
		r.call(ctx, asks[:n], asking[:n])
		asks, asking = asks[n:], asking[n:]
	}
}

// call makes one renewal. asking has the pool of each ask, nil for the last ask
// of a lease.
func (r *renewer) call(ctx context.Context, asks []traffic.Ask, asking []*pool) {
	sent := mono()
	ctx, cancel := context.WithTimeout(ctx, r.timing.Call)
	defer cancel()
	grants, err := r.backend.Renew(ctx, r.replica, asks)
	byLease := make(map[string]traffic.Grant, len(grants))
	for _, g := range grants {
		byLease[g.Lease] = g
	}
	if err != nil {
		if r.backoff == 0 {
			r.log.Warn("leases cannot be renewed; relaying stops when they run out", "sessions", len(asks), "err", err)
		}
		r.backoff = min(max(2*r.backoff, firstRetry), lastRetry)
		r.retry = mono() + r.backoff
	} else if r.backoff > 0 {
		r.log.Info("leases are renewed again", "sessions", len(asks))
		r.backoff = 0
	}
	for i, ask := range asks {
		grant, ok := byLease[ask.Lease]
		switch {
		case err == nil && ok && asking[i] == nil:
		case err == nil && ok:
			asking[i].apply(ask, grant, sent)
			switch grant.Outcome {
			case traffic.Exhausted:
				r.ended(ask.SessionID, spent)
			case traffic.Over:
				r.ended(ask.SessionID, over)
			}
		case asking[i] != nil:
			asking[i].failed(ask)
		case len(r.closing) < maxClosing:
			r.closing = append(r.closing, ask)
		}
	}
}
