// Package route caches what the gateway needs to serve a session: the password, the
// route and the traffic pool. It also limits how often an address may fail to
// authenticate.
//
// An entry is added only for a credential that was found to be right, so failed
// attempts cannot fill the cache. Each session has at most one entry at a time,
// because all of its connections must share one pool: entries in use are never
// evicted, and Changed reaches every open connection of a session.
package route

import (
	"container/list"
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Source reads routes from the core; *app/metering.Service is the implementation.
type Source interface {
	// Route returns what is needed to carry a session's traffic. It returns a
	// *domain.Error of Kind NotFound for unknown ids and for sessions that ended
	// more than 30 days ago.
	Route(ctx context.Context, sessionID string) (traffic.Route, error)
	// RotateDue performs a timed rotation that is due and returns the route after
	// it, also if another replica performed it.
	RotateDue(ctx context.Context, sessionID string) (traffic.Route, error)
}

// Entry is a session whose credential was right at least once.
type Entry struct {
	ID       string
	Password string
	Pool     lease.Pool

	pins    atomic.Int32 // connections that use the entry
	version atomic.Uint64
	route   atomic.Pointer[versioned]
	fetch   sync.Mutex    // held while the core is asked
	place   *list.Element // in Cache.recent, under its lock
	rules   *policy.Rules // of the route, under the lock of the cache
}

// versioned is a route and the version of the entry for which it was read.
type versioned struct {
	traffic.Route
	version uint64
	until   time.Duration // when it is outdated, by monotime; 0: by a new version alone
}

// trialFor is how long a route of a trial is used: the end of a trial is not a change of the
// session.
const trialFor = time.Minute

// Latest returns the route that was read last, even if it is outdated, or nil.
func (e *Entry) Latest() *traffic.Route {
	if v := e.route.Load(); v != nil {
		return &v.Route
	}
	return nil
}

// Invalidate makes the next Cache.Route read the route again.
func (e *Entry) Invalidate() { e.version.Add(1) }

// Unpin undoes Cache.Pin or Cache.Add.
func (e *Entry) Unpin() { e.pins.Add(-1) }

// current returns the route, nil if it must be read again.
func (e *Entry) current() *traffic.Route {
	v := e.route.Load()
	if v == nil || v.version != e.version.Load() || v.until > 0 && monotime.Now() >= v.until {
		return nil
	}
	return &v.Route
}

// store keeps a route that was read for a version. If the entry was invalidated
// meanwhile the route is never current.
func (e *Entry) store(r traffic.Route, version uint64) *traffic.Route {
	v := &versioned{Route: r, version: version}
	if r.Trial {
		v.until = monotime.Now() + trialFor
	}
	e.route.Store(v)
	return &v.Route
}

func (e *Entry) unused() bool { return e.pins.Load() == 0 && e.Pool.Unused() }

// Cache is a bounded set of entries that evicts the least recently used. Entries in
// use stay, so it may exceed its bound by their number.
//
// It is a list instead of otter, which the module uses elsewhere, because otter
// cannot keep entries in use and would need a second map for them. Speed does not
// decide: with 100,000 entries on two cores a lookup takes 0.9 µs here and 1.8 µs in
// otter, and both are far below the cost of a tunnel.
type Cache struct {
	source  Source
	leases  *lease.Renewer
	call    time.Duration
	now     func() time.Time
	size    int
	refresh refresher
	// workerSource is asked for workers, which are in workers.
	workerSource Workers
	workers      workerCache

	mu     sync.Mutex
	byID   map[string]*Entry
	recent list.List
	// Sessions with equal rules share a set, which counts once.
	sets      map[*policy.Rules]int // entries that have it
	ruleBytes int
}

// maxRuleBytes bounds the memory of the rules of sessions that no connection uses.
const maxRuleBytes = 64 << 20

// maxSkipped is how many entries in use are passed in the search for an unused one with rules.
const maxSkipped = 1000

// NewCache returns an empty cache of size entries. call is the timeout of one call
// of source, now the wall clock by which rotations are due.
func NewCache(source Source, workers Workers, leases *lease.Renewer, size int, call time.Duration,
	now func() time.Time) *Cache {
	return &Cache{source: source, workerSource: workers, leases: leases, call: call, now: now, size: size,
		refresh: newRefresher(), byID: map[string]*Entry{}, sets: map[*policy.Rules]int{},
		workers: workerCache{most: MaxWorkers, byKey: map[workerKey]*Worker{}, start: rand.Uint64()}}
}

// Pin returns the entry of a session, nil if there is none. The caller must Unpin
// it.
func (c *Cache) Pin(id string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e != nil {
		c.recent.MoveToFront(e.place)
		e.pins.Add(1)
	}
	return e
}

// Add returns the entry of a session whose password was found to be right, making
// it if necessary. The caller must Unpin it.
func (c *Cache) Add(id, password string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		e = &Entry{ID: id, Password: password}
		c.leases.Init(&e.Pool, id)
		e.version.Store(1)
		e.place = c.recent.PushFront(e)
		c.byID[id] = e
		c.evict(e.place)
	}
	e.pins.Add(1)
	return e
}

// evict removes the oldest entries beyond the bounds, but not keep. Beyond the number it stops at the
// first that is in use, because most of them may be; beyond the bytes it passes some, as one quiet
// connection is no reason to keep the rules of all others.
func (c *Cache) evict(keep *list.Element) {
	skipped := 0
	for old := c.recent.Back(); (len(c.byID) > c.size || c.ruleBytes > maxRuleBytes) && old != nil; {
		last := old.Value.(*Entry)
		old = old.Prev()
		if last.place == keep {
			continue
		}
		if !last.unused() {
			if skipped++; c.ruleBytes <= maxRuleBytes || skipped > maxSkipped {
				return
			}
			continue
		}
		c.recent.Remove(last.place)
		delete(c.byID, last.ID)
		c.share(last, nil)
	}
}

// hold counts the rules of an entry's route, and removes other entries if those of all are too many bytes.
func (c *Cache) hold(e *Entry, rules *policy.Rules) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.rules == rules || c.byID[e.ID] != e {
		return
	}
	c.share(e, rules)
	c.evict(e.place)
}

// share lets an entry have a set of rules in place of its own one.
func (c *Cache) share(e *Entry, rules *policy.Rules) {
	if old := e.rules; old != nil {
		if c.sets[old]--; c.sets[old] == 0 {
			delete(c.sets, old)
			c.ruleBytes -= old.Bytes()
		}
	}
	if e.rules = rules; rules != nil {
		if c.sets[rules]++; c.sets[rules] == 1 {
			c.ruleBytes += rules.Bytes()
		}
	}
}

// entryOf returns the entry of a session without pinning it, nil if there is none.
func (c *Cache) entryOf(id string) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[id]
}

// all lists every entry.
func (c *Cache) all() []*Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	es := make([]*Entry, 0, len(c.byID))
	for _, e := range c.byID {
		es = append(es, e)
	}
	return es
}

// Len returns the number of entries.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byID)
}

// Route returns the current route of a session. The core is asked at most once for
// all connections that wait.
func (c *Cache) Route(ctx context.Context, e *Entry) (*traffic.Route, error) {
	if r := e.current(); r != nil {
		return r, nil
	}
	e.fetch.Lock()
	defer e.fetch.Unlock()
	if r := e.current(); r != nil {
		return r, nil
	}
	return c.read(ctx, e, c.source.Route)
}

// Rotate performs a timed rotation that is due and returns the route after it. If
// another connection has performed it meanwhile its route is returned.
func (c *Cache) Rotate(ctx context.Context, e *Entry) (*traffic.Route, error) {
	e.fetch.Lock()
	defer e.fetch.Unlock()
	if r := e.current(); r != nil && !Due(r, c.now()) {
		return r, nil
	}
	return c.read(ctx, e, c.source.RotateDue)
}

// Due reports whether the next new connection has to rotate first.
func Due(r *traffic.Route, now time.Time) bool { return !r.NextAt.IsZero() && !now.Before(r.NextAt) }

func (c *Cache) read(ctx context.Context, e *Entry,
	from func(context.Context, string) (traffic.Route, error)) (*traffic.Route, error) {
	ctx, cancel := context.WithTimeout(ctx, c.call)
	defer cancel()
	version := e.version.Load()
	r, err := from(ctx, e.ID)
	if err != nil {
		return nil, err
	}
	if r.Status == session.Active && !r.UsedUp {
		e.Pool.Resume()
	}
	c.hold(e, r.Policy)
	return e.store(r, version), nil
}
