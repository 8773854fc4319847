package storage

import (
	"sync"
	"time"

	"agentproxy/ports"
)

// recent keeps sessions that were read within the last second, for views that take them: those that
// are read often cost no round trip then. A unit of this process replaces or drops what it changed
// before it is answered. Changes of other processes arrive by the feed, and what does not, such as
// their telemetry, is read anew after recentFor.
//
// Who is going to keep a session claims it before it is read or written. A claim ends when a unit
// drops the session, so what was read before that is not kept. A nil *recent keeps nothing.
type recent struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[string]*recentSession
	// swept is when those that are too old were dropped last.
	swept time.Time
}

var _ ports.Watcher = (*recent)(nil)

// recentFor is how old a session in memory may be, recentMax how many there are, and sweepEvery how
// often those that are too old are looked for when there are as many.
const (
	recentFor  = time.Second
	recentMax  = 8192
	sweepEvery = recentFor / 4
)

// recentSession is a session as a view finds it, and who may replace it.
type recentSession struct {
	found *batch // what was read reads for it alone; nil while the first claim on it runs
	at    time.Time
	claim *recentClaim
}

// recentClaim is the right to keep what is read or written of sessions.
type recentClaim struct {
	ids []string
	at  time.Time // before the read began
}

func newRecent() *recent { return &recent{now: time.Now, of: map[string]*recentSession{}} }

// takes reports whether a view takes nothing but one session from memory.
func (r *recent) takes(a *ports.ReadSet) bool {
	return r != nil && a.Recent && len(a.Sessions) == 1 && !a.Money && !a.Holding && a.List == nil && len(a.Health) == 0
}

// find returns the session that a view asks for, nil if it is to be read.
func (r *recent) find(a *ports.ReadSet) *batch {
	if !r.takes(a) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.of[a.Sessions[0]]; s != nil && r.fresh(s) {
		return s.found
	}
	return nil
}

func (r *recent) fresh(s *recentSession) bool { return s.found != nil && r.now().Sub(s.at) < recentFor }

// reading claims the sessions of views, but for those that a unit is about to write.
func (r *recent) reading(list []*ports.ReadSet) *recentClaim {
	if r == nil {
		return nil
	}
	c := &recentClaim{at: r.now()}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range list {
		if !a.Recent {
			continue
		}
		for _, id := range a.Sessions {
			s := r.of[id]
			if s != nil && s.claim != nil || s == nil && !r.room() {
				continue
			}
			if s == nil {
				s = &recentSession{}
				r.of[id] = s
			}
			s.claim = c
			c.ids = append(c.ids, id)
		}
	}
	return c
}

// room reports whether one session more may be kept.
func (r *recent) room() bool {
	if len(r.of) < recentMax || r.now().Sub(r.swept) < sweepEvery {
		return len(r.of) < recentMax
	}
	r.swept = r.now()
	for id, s := range r.of {
		if s.claim == nil && !r.fresh(s) {
			delete(r.of, id)
		}
	}
	return len(r.of) < recentMax
}

// read ends a claim of views with what they found, or with nothing if the read failed. A session with
// workers is not kept, since their health changes without it.
func (r *recent) read(c *recentClaim, found *batch) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range c.ids {
		s := r.of[id]
		if s == nil || s.claim != c {
			continue
		}
		delete(r.of, id)
		if found == nil || len(found.workers[id]) > 0 {
			continue
		}
		if own, ok := found.only(id); ok {
			r.of[id] = &recentSession{found: own, at: c.at}
		}
	}
}

// only returns a batch that found one session of those of b.
func (b *batch) only(id string) (*batch, bool) {
	s, ok := b.sessions.base[id]
	h := b.health.base[id]
	if !ok {
		return nil, false
	}
	own := newBatch(nil, b.now)
	own.whole, own.workers = map[string]bool{id: true}, map[string][]ports.WorkerHealth{}
	own.sessions.load(id, s)
	own.health.load(id, h)
	return own, true
}

// writing claims what a transaction is about to commit. Views find what was there until it has.
func (r *recent) writing(b *batch) *recentClaim {
	if r == nil {
		return nil
	}
	c := &recentClaim{}
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(id string) {
		c.ids = append(c.ids, id)
		if s := r.of[id]; s != nil {
			s.claim = c
		}
	}
	for id, h := range b.health.base {
		if h.dirty && !b.sessions.base[id].dirty {
			add(id)
		}
	}
	for id, s := range b.sessions.base {
		if s.dirty {
			add(id)
		}
	}
	return c
}

// wrote ends a claim of a transaction: where it changed nothing but health, that is replaced, and
// anything else is dropped. A transaction that failed may have been committed.
func (r *recent) wrote(c *recentClaim, b *batch, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range c.ids {
		s := r.of[id]
		switch {
		case s == nil:
		case err != nil || s.claim != c || s.found == nil || b.sessions.base[id].dirty:
			delete(r.of, id)
		default:
			h := b.health.base[id]
			h.dirty = false
			own := *s.found
			own.health = overlay[string, batchHealth]{}
			own.health.load(id, h)
			r.of[id] = &recentSession{found: &own, at: s.at}
		}
	}
}

// drop has sessions that were changed read anew.
func (r *recent) drop(ids ...string) {
	if r == nil || len(ids) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		delete(r.of, id)
	}
}

// AgentChanged implements ports.Watcher: nothing of agents is kept.
func (r *recent) AgentChanged(string) {}

// SessionChanged implements ports.Watcher.
func (r *recent) SessionChanged(id string) {
	if id != "" {
		r.drop(id)
		return
	}
	if r != nil {
		r.mu.Lock()
		clear(r.of)
		r.mu.Unlock()
	}
}
