package lease

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/traffic"
)

const (
	maxBatch   = 1000 // requests in one call
	minBackoff = 100 * time.Millisecond
	maxBackoff = 500 * time.Millisecond
	// maxClosing bounds the closed leases whose last report is still to be sent. The
	// core reclaims the others by itself.
	maxClosing = 100_000
)

// Core grants leases; *app/metering.Service is the implementation.
type Core interface {
	// Renew reports use and requests leases for many sessions in one unit of work.
	// Counters are cumulative: repeating a call after an error counts nothing
	// twice. The grants are in any order, one for each request.
	Renew(ctx context.Context, replica string, requests []traffic.LeaseRequest) ([]traffic.Grant, error)
	// Report stores what calm leases have used since they were renewed. A part replaces what the replica reported
	// in the part of that number.
	Report(ctx context.Context, replica string, parts []traffic.ReportPart) error
}

// Config holds the parameters of a Renewer. All durations but Fold must be positive.
type Config struct {
	Replica   string        // identifies this process in leases
	Report    time.Duration // between two reports of changed counters
	Heartbeat time.Duration // between two renewals of an open lease
	IdleGive  time.Duration // an unused lease is returned after it
	StopAfter time.Duration // relaying stops so long after the next renewal was due at the latest
	Fold      time.Duration // between two renewals of a calm lease, which is reported in between; 0: no lease is calm
	Call      time.Duration // timeout of one call of the core
}

// lasts returns how long relaying goes on after a renewal.
func (c *Config) lasts() time.Duration {
	return max(c.StopAfter, min(c.StopAfter+c.Fold, traffic.MaxLasts))
}

// Counters are the metrics of relayed bytes and of lost leases.
type Counters struct {
	Up, Down prometheus.Counter
	// Lost counts the leases that the core had reclaimed when they were renewed: what they relayed
	// since their last report is not charged.
	Lost prometheus.Counter
}

// add counts bytes that were moved, whatever becomes of their lease.
func (c Counters) add(up, down int64) {
	if up > 0 {
		c.Up.Add(float64(up))
	}
	if down > 0 {
		c.Down.Add(float64(down))
	}
}

// Renewer reports the use of all sessions and renews their leases.
type Renewer struct {
	core     Core
	cfg      Config
	tick     time.Duration
	counters Counters
	ended    func(sessionID string, v Verdict)
	log      *slog.Logger

	waits atomic.Int64 // times that a direction waited for a lease
	bytes atomic.Int64 // reported

	wakeup chan struct{}
	mu     sync.Mutex
	pools  map[*Pool]struct{} // with an open lease
	urgent map[*Pool]struct{}

	// Used by the loop only.
	closing []traffic.LeaseRequest // last requests of leases that the pools have forgotten
	reports reports
	backoff time.Duration
	retry   time.Duration
}

// NewRenewer returns a Renewer that does nothing until Run. It calls ended, which
// must not block, when an answer of the core shows that a session is exhausted or
// closed.
func NewRenewer(core Core, cfg Config, counters Counters, ended func(sessionID string, v Verdict),
	log *slog.Logger) *Renewer {
	return &Renewer{
		core: core, cfg: cfg, counters: counters, ended: ended, log: log,
		tick:   max(min(cfg.Report, cfg.IdleGive)/8, time.Millisecond),
		wakeup: make(chan struct{}, 1),
		pools:  map[*Pool]struct{}{}, urgent: map[*Pool]struct{}{},
	}
}

// Init sets up the pool of a session.
func (r *Renewer) Init(p *Pool, sessionID string) { p.renewer, p.session = r, sessionID }

// Open returns the number of open leases.
func (r *Renewer) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pools)
}

// Bytes returns how many bytes were reported to the core.
func (r *Renewer) Bytes() int64 { return r.bytes.Load() }

// Waits returns how often a direction or a new connection waited for a lease.
func (r *Renewer) Waits() int64 { return r.waits.Load() }

// add registers a pool that opened a lease. It is called under the pool's lock.
func (r *Renewer) add(p *Pool) {
	r.mu.Lock()
	r.pools[p] = struct{}{}
	r.mu.Unlock()
}

// remove undoes add. It is called under the pool's lock.
func (r *Renewer) remove(p *Pool) {
	r.mu.Lock()
	delete(r.pools, p)
	delete(r.urgent, p)
	r.mu.Unlock()
}

// signal requests that a pool be renewed at once.
func (r *Renewer) signal(p *Pool) {
	r.mu.Lock()
	r.urgent[p] = struct{}{}
	r.mu.Unlock()
	select {
	case r.wakeup <- struct{}{}:
	default:
	}
}

// Run renews leases until ctx ends.
func (r *Renewer) Run(ctx context.Context) {
	ticker := time.NewTicker(r.tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.round(ctx, true, false)
			r.report(ctx)
		case <-r.wakeup:
			r.round(ctx, false, false)
		}
	}
}

// Close reports all use and returns all leases, retrying until ctx ends. Run must
// have returned.
func (r *Renewer) Close(ctx context.Context) {
	for ctx.Err() == nil {
		r.retry = 0
		r.round(ctx, true, true)
		if len(r.closing) == 0 && r.Open() == 0 {
			r.dropReports(ctx)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(minBackoff):
		}
	}
}

// round renews what is due: of the urgent pools, or of all.
func (r *Renewer) round(ctx context.Context, all, stopping bool) {
	now := monotime.Now()
	if now < r.retry {
		return // the pools stay urgent; a later tick renews them
	}
	r.mu.Lock()
	from := r.urgent
	if all {
		from = r.pools
	}
	pools := make([]*Pool, 0, len(from))
	for p := range from {
		pools = append(pools, p)
	}
	clear(r.urgent)
	r.mu.Unlock()

	requests, senders := r.closing, make([]*Pool, len(r.closing), len(r.closing)+len(pools))
	for _, p := range pools {
		request, ok := p.request(now, stopping)
		switch {
		case !ok:
		case request.Close:
			requests, senders = append(requests, request), append(senders, nil)
		default:
			requests, senders = append(requests, request), append(senders, p)
		}
	}
	r.closing = nil
	for len(requests) > 0 {
		n := min(len(requests), maxBatch)
		r.call(ctx, requests[:n], senders[:n])
		requests, senders = requests[n:], senders[n:]
	}
}

// call makes one renewal. senders holds the pool of each request, nil for the last request
// of a lease.
func (r *Renewer) call(ctx context.Context, requests []traffic.LeaseRequest, senders []*Pool) {
	sent := monotime.Now()
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Call)
	defer cancel()
	grants, err := r.core.Renew(ctx, r.cfg.Replica, requests)
	byLease := make(map[string]traffic.Grant, len(grants))
	for _, g := range grants {
		byLease[g.Lease] = g
	}
	r.adjustBackoff(err, len(requests))
	for i, request := range requests {
		grant, ok := byLease[request.Lease]
		if ok && err == nil && grant.Outcome == traffic.Lost {
			r.counters.Lost.Inc()
		}
		switch {
		case err == nil && ok && senders[i] == nil:
		case err == nil && ok:
			senders[i].apply(request, grant, sent)
			switch grant.Outcome {
			case traffic.Exhausted:
				r.ended(request.SessionID, Exhausted)
			case traffic.Over:
				r.ended(request.SessionID, Closed)
			}
		case senders[i] != nil:
			senders[i].failed(request)
		case len(r.closing) < maxClosing:
			r.closing = append(r.closing, request)
		}
	}
}

// adjustBackoff sets when the next renewal may be tried, and logs the first failure
// and the first success after it.
func (r *Renewer) adjustBackoff(err error, sessions int) {
	switch {
	case err != nil:
		if r.backoff == 0 {
			r.log.Warn("leases cannot be renewed; relaying stops when they expire", "sessions", sessions, "err", err)
		}
		r.backoff = min(max(2*r.backoff, minBackoff), maxBackoff)
		r.retry = monotime.Now() + r.backoff
	case r.backoff > 0:
		r.log.Info("leases are renewed again", "sessions", sessions)
		r.backoff = 0
	}
}
