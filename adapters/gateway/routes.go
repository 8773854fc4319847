package gateway

import (
	"container/list"
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain/traffic"
)

// entry is what the gateway keeps of one session whose credential was once
// right: the password, the route and the lease.
type entry struct {
	id       string
	password string
	pool     pool

	pins    atomic.Int32 // users that must not see it replaced
	version atomic.Uint64
	route   atomic.Pointer[seen]
	fetch   sync.Mutex    // held by the one that asks the core
	place   *list.Element // in the shard, under its lock
}

// seen is a route and the version of the entry it was asked for.
type seen struct {
	traffic.Route
	version uint64
}

// current is the route, nil if it has to be asked for.
func (e *entry) current() *traffic.Route {
	if s := e.route.Load(); s != nil && s.version == e.version.Load() {
		return &s.Route
	}
	return nil
}

// store keeps a route that was asked for at a version. Should something have
// changed since, it is never current.
func (e *entry) store(r traffic.Route, version uint64) *traffic.Route {
	s := &seen{r, version}
	e.route.Store(s)
	return &s.Route
}

func (e *entry) idle() bool {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	return e.pins.Load() == 0 && e.pool.members.count == 0 && e.pool.lease == ""
}

const shards = 16

// routes is a bounded cache of entries, least recently used out first. Entries
// in use stay, so it can be larger than its bound by as many.
type routes struct {
	renewer *renewer
	seed    maphash.Seed
	each    int // entries a shard
	shard   [shards]struct {
		sync.Mutex
		byID   map[string]*entry
		recent list.List
	}
}

func newRoutes(r *renewer, bound int) *routes {
	rs := &routes{renewer: r, seed: maphash.MakeSeed(), each: max(bound/shards, 1)}
	for i := range rs.shard {
		rs.shard[i].byID = map[string]*entry{}
	}
	return rs
}

// pin finds the entry of a session, nil if there is none.
func (rs *routes) pin(id string) *entry {
	s := &rs.shard[maphash.String(rs.seed, id)%shards]
	s.Lock()
	defer s.Unlock()
	e := s.byID[id]
	if e != nil {
		s.recent.MoveToFront(e.place)
		e.pins.Add(1)
	}
	return e
}

// add makes the entry of a session whose password was found to be right.
func (rs *routes) add(id, password string) *entry {
	s := &rs.shard[maphash.String(rs.seed, id)%shards]
	s.Lock()
	defer s.Unlock()
	e := s.byID[id]
	if e == nil {
		e = &entry{id: id, password: password}
		e.pool.renewer, e.pool.session = rs.renewer, id
		e.version.Store(1)
		e.place = s.recent.PushFront(e)
		s.byID[id] = e
		for old := s.recent.Back(); len(s.byID) > rs.each && old != nil && old != e.place; {
			last := old.Value.(*entry)
			old = old.Prev()
			if !last.idle() {
				break // all of them may be in use; do not search for one that is not
			}
			s.recent.Remove(last.place)
			delete(s.byID, last.id)
		}
	}
	e.pins.Add(1)
	return e
}

func (e *entry) unpin() { e.pins.Add(-1) }

// find is pin for a look that nobody minds being outdated.
func (rs *routes) find(id string) *entry {
	s := &rs.shard[maphash.String(rs.seed, id)%shards]
	s.Lock()
	defer s.Unlock()
	return s.byID[id]
}

// all lists every entry.
func (rs *routes) all() []*entry {
	var es []*entry
	for i := range rs.shard {
		s := &rs.shard[i]
		s.Lock()
		for _, e := range s.byID {
			es = append(es, e)
		}
		s.Unlock()
	}
	return es
}

// count is how many entries there are.
func (rs *routes) count() (n int) {
	for i := range rs.shard {
		s := &rs.shard[i]
		s.Lock()
		n += len(s.byID)
		s.Unlock()
	}
	return n
}

// route is the session's current route; a missing one is asked for once, however
// many connections want it.
func (g *Gateway) route(ctx context.Context, e *entry) (*traffic.Route, error) {
	if r := e.current(); r != nil {
		return r, nil
	}
	e.fetch.Lock()
	defer e.fetch.Unlock()
	if r := e.current(); r != nil {
		return r, nil
	}
	return g.fetchRoute(ctx, e, g.backend.Route)
}

// rotated performs a timed rotation that is due. Whoever waited for somebody
// else's takes the route after it.
func (g *Gateway) rotated(ctx context.Context, e *entry) (*traffic.Route, error) {
	e.fetch.Lock()
	defer e.fetch.Unlock()
	if r := e.current(); r != nil && !due(r, g.cfg.Now()) {
		return r, nil
	}
	return g.fetchRoute(ctx, e, g.backend.RotateDue)
}

// due says whether the next new connection has to rotate first.
func due(r *traffic.Route, now time.Time) bool { return !r.NextAt.IsZero() && !now.Before(r.NextAt) }

func (g *Gateway) fetchRoute(ctx context.Context, e *entry,
	ask func(context.Context, string) (traffic.Route, error)) (*traffic.Route, error) {
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timing.Call)
	defer cancel()
	version := e.version.Load()
	r, err := ask(ctx, e.id)
	if err != nil {
		return nil, err
	}
	return e.store(r, version), nil
}
