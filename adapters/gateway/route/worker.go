package route

import (
	"container/list"
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// Workers reads the workers of sessions from the core; *app/workers.Service is the implementation.
type Workers interface {
	// Worker returns what words of a user name mean for an active session. The first use of a name
	// makes the worker; one whose exit's time is over, or whose exit is lost, gets another exit.
	Worker(ctx context.Context, sessionID string, words worker.Parameters) (traffic.WorkerRoute, error)
	// ReportLost reports that a connection from the exit of a worker could not be made: the exit is
	// gone by its seller's answer, or this host may have no such address. It returns
	// worker.ErrExitLost if the worker has none from now on.
	ReportLost(ctx context.Context, w worker.Worker) error
	// Removed returns those of the ids that no worker has any more.
	Removed(ctx context.Context, sessionID string, ids []int64) ([]int64, error)
}

// MaxWorkers bounds the workers that are kept in memory. Those in use stay beyond it.
const MaxWorkers = 200_000

// Worker is a named worker of an entry, or, without an id, a place of which each connection gets
// another exit.
type Worker struct {
	key   workerKey
	share atomic.Pointer[lease.Share] // of the worker that has the name now
	pins  atomic.Int32
	fetch sync.Mutex // held while the core is asked
	route atomic.Pointer[workerRoute]
	place *list.Element // in workerCache.recent, under its lock
	turns turns         // of the exits of a place
	// suspected is when the exit was last suspected to be gone, by monotime; 0 for never.
	suspected atomic.Int64
}

// turns gives each connection of a place another exit than the one before.
type turns struct {
	mu       sync.Mutex
	next     uint64 // from a start that differs between processes
	last     netip.Addr
	upstream procurement.Endpoint
}

// exit returns the exit of the next connection: never that of the last one, if there are several.
func (t *turns) exit(from []session.Exit) session.Exit {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range 2 {
		t.next++
		if e := from[t.next%uint64(len(from))]; e.IP != t.last {
			t.last = e.IP
			return e
		}
	}
	return session.Exit{IP: t.last}
}

// maxFresh is how many exits of a seller are asked for to find one with another name than the last.
const maxFresh = 16

// fresh returns the proxy of the next connection, and what names its exit.
func (t *turns) fresh(r *traffic.WorkerRoute) (e procurement.Endpoint, token string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range maxFresh {
		t.next++
		if e, token, err = r.Fresh(t.next); err != nil || e != t.upstream {
			break
		}
	}
	t.upstream = e
	return e, token, err
}

// NextExit returns the exit of this host that the next connection of a place has.
func (w *Worker) NextExit(r *traffic.WorkerRoute) session.Exit { return w.turns.exit(r.Exits) }

// NextUpstream returns the upstream proxy that the next connection of a place has, and what names its exit.
func (w *Worker) NextUpstream(r *traffic.WorkerRoute) (procurement.Endpoint, string, error) {
	return w.turns.fresh(r)
}

// suspectEvery is how often at most the exit of a worker is tried because it may be gone.
const suspectEvery = 10 * time.Second

// Suspect reports whether it is time to find out whether the worker's exit is gone.
func (w *Worker) Suspect() bool {
	now, before := int64(monotime.Now()), w.suspected.Load()
	return (before == 0 || now-before >= int64(suspectEvery)) && w.suspected.CompareAndSwap(before, now)
}

// workerRoute is a route and the version of the entry for which it was read.
type workerRoute struct {
	traffic.WorkerRoute
	version uint64
}

// workerKey is an entry and the name of a worker; a place has a hyphen in front, which no name has.
type workerKey struct {
	entry *Entry
	name  string
}

func keyOf(e *Entry, w worker.Parameters) workerKey {
	if w.Name != "" {
		return workerKey{e, w.Name}
	}
	return workerKey{e, "-" + w.Country + "-" + w.City}
}

// Account returns what the worker's traffic is counted for; nil for the session itself.
func (w *Worker) Account() *lease.Share {
	if w == nil {
		return nil
	}
	return w.share.Load()
}

// Name returns the name of the worker; empty for a place.
func (w *Worker) Name() string {
	if w == nil || w.key.name[0] == '-' {
		return ""
	}
	return w.key.name
}

// Unpin undoes Cache.PinWorker.
func (w *Worker) Unpin() { w.pins.Add(-1) }

// current returns the route that was read last, nil if it must be read again.
func (w *Worker) current() *traffic.WorkerRoute {
	r := w.route.Load()
	if r == nil || r.version != w.key.entry.version.Load() {
		return nil
	}
	return &r.WorkerRoute
}

// workerCache holds the workers of all entries.
type workerCache struct {
	mu     sync.Mutex
	most   int
	byKey  map[workerKey]*Worker
	recent list.List
	start  uint64
}

// PinWorker returns the worker that words mean. The caller must Unpin it before it unpins the entry.
func (c *Cache) PinWorker(e *Entry, words worker.Parameters) *Worker {
	key := keyOf(e, words)
	c.workers.mu.Lock()
	defer c.workers.mu.Unlock()
	w := c.workers.byKey[key]
	if w == nil {
		w = &Worker{key: key}
		w.turns.next = c.workers.start
		w.place = c.workers.recent.PushFront(w)
		c.workers.byKey[key] = w
		c.workers.evict(w.place)
	} else {
		c.workers.recent.MoveToFront(w.place)
	}
	w.pins.Add(1)
	return w
}

// evictSteps bounds the workers that one new one looks at to find old ones.
const evictSteps = 64

// evict removes the oldest workers beyond the bound, but not keep. Those in use become the newest, so
// that a few old connections do not keep everything behind them.
func (c *workerCache) evict(keep *list.Element) {
	for range evictSteps {
		old := c.recent.Back()
		if len(c.byKey) <= c.most || old == keep {
			return
		}
		last := old.Value.(*Worker)
		if s := last.share.Load(); last.pins.Load() > 0 || s != nil && !last.key.entry.Pool.Idle(s) {
			c.recent.MoveToFront(old)
			continue
		}
		c.remove(last)
	}
}

// remove removes w. The caller holds mu.
func (c *workerCache) remove(w *Worker) {
	c.recent.Remove(w.place)
	delete(c.byKey, w.key)
}

// forget drops a worker that the core refused to make, so that refused names take no memory.
func (c *workerCache) forget(w *Worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey[w.key] == w && w.route.Load() == nil && w.pins.Load() == 1 {
		c.remove(w)
	}
}

// Workers returns the number of workers that are kept.
func (c *Cache) Workers() int {
	c.workers.mu.Lock()
	defer c.workers.mu.Unlock()
	return len(c.workers.byKey)
}

// WorkerRoute returns the current route of a worker. The core is asked at most once for all
// connections that wait and ask for the same. again makes it ask although the route is known.
func (c *Cache) WorkerRoute(
	ctx context.Context, w *Worker, words worker.Parameters, again bool,
) (*traffic.WorkerRoute, error) {
	if r := c.usable(w, words, again); r != nil {
		return r, nil
	}
	w.fetch.Lock()
	defer w.fetch.Unlock()
	if r := c.usable(w, words, again); r != nil {
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.call)
	defer cancel()
	e := w.key.entry
	version := e.version.Load()
	r, err := c.workerSource.Worker(ctx, e.ID, words)
	if err != nil {
		c.workers.forget(w)
		return nil, err
	}
	if id := r.Worker.ID; id != 0 {
		share := w.share.Load()
		if share == nil || share.ID != id { // the worker of this name was removed, and another made
			share = &lease.Share{ID: id}
			w.share.Store(share)
		}
		e.Pool.UpdateShare(share, r.Worker.MaxBytes, r.Worker.Usage.Bytes())
	}
	stored := &workerRoute{r, version}
	w.route.Store(stored)
	return &stored.WorkerRoute, nil
}

// usable returns the known route if words may use it without a call of the core: nothing about the
// worker changes with this use.
func (c *Cache) usable(w *Worker, words worker.Parameters, again bool) *traffic.WorkerRoute {
	r := w.current()
	if r == nil || again || r.Worker.ID != 0 &&
		(r.Worker.Due(c.now()) || r.Worker.Changeable || r.Worker.Lost || r.Worker.Differs(words) != "") {
		return nil
	}
	return r
}

// LostExit reports to the core that the exit that a worker had is gone, and forgets its route.
func (c *Cache) LostExit(ctx context.Context, w *Worker, had worker.Worker) error {
	ctx, cancel := context.WithTimeout(ctx, c.call)
	defer cancel()
	defer w.route.Store(nil)
	return c.workerSource.ReportLost(ctx, had)
}

// cutRemoved interrupts the connections of workers that were removed. It returns false if the core
// did not answer.
func (c *Cache) cutRemoved(ctx context.Context, e *Entry) bool {
	ids := e.Pool.CountedShares(worker.MaxPerSession)
	if len(ids) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, c.call)
	defer cancel()
	gone, err := c.workerSource.Removed(ctx, e.ID, ids)
	if de, ok := errors.AsType[*domain.Error](err); ok && de.Kind == domain.NotFound {
		return true
	}
	for _, id := range gone {
		e.Pool.EndShare(id)
	}
	return err == nil
}
