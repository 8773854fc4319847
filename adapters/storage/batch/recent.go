package batch

import (
	"sync"
	"time"

	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/workers"
	"agentproxy/ports"
)

// Recent keeps sessions that were read within the last second, for views that take them: those that
// are read often cost no round trip then. A unit of this process replaces or drops what it changed
// before it is answered. Changes of other processes arrive by the feed, and what does not, such as
// their telemetry, is read anew after recentFor.
//
// Who is going to keep a session claims it before it is read or written. A claim ends when a unit
// drops the session, so what was read before that is not kept. A nil *Recent keeps nothing.
type Recent struct {
	// Now is the clock; tests set it.
	Now func() time.Time
	mu  sync.Mutex
	of  map[string]*kept
	// swept is when those that are too old were dropped last.
	swept time.Time
}

var _ ports.Watcher = (*Recent)(nil)

// recentFor is how old a session in memory may be, RecentMax how many there are, and sweepEvery how
// often those that are too old are looked for when there are as many.
const (
	recentFor  = time.Second
	RecentMax  = 8192
	sweepEvery = recentFor / 4
)

// kept is a session as a view finds it, and who may replace it.
type kept struct {
	found *rows.Set // it alone; nil while the first claim on it runs
	at    time.Time
	claim *Claim
}

// Claim is the right to keep what is read or written of sessions.
type Claim struct {
	ids   []string  // that are read
	at    time.Time // before the read began
	wrote []written
}

// written is a session that a transaction changed: the new health, or nil if it changed more.
type written struct {
	id     string
	health *sessions.StoredHealth
}

// NewRecent returns an empty memory.
func NewRecent() *Recent { return &Recent{Now: time.Now, of: map[string]*kept{}} }

// Len returns how many sessions are kept.
func (r *Recent) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.of)
}

// Takes reports whether a view takes nothing but one session from memory.
func (r *Recent) Takes(a *ports.ReadSet) bool {
	return r != nil && a.Recent && len(a.Sessions) == 1 && !a.Money && !a.Holding && a.List == nil && len(a.Health) == 0
}

// Find returns the session that a view asks for, nil if it is to be read.
func (r *Recent) Find(a *ports.ReadSet) *rows.Set {
	if !r.Takes(a) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.of[a.Sessions[0]]; s != nil && r.fresh(s) {
		return s.found
	}
	return nil
}

func (r *Recent) fresh(s *kept) bool { return s.found != nil && r.Now().Sub(s.at) < recentFor }

// Reading claims the sessions of views, but for those that a unit is about to write.
func (r *Recent) Reading(list []*ports.ReadSet) *Claim {
	if r == nil {
		return nil
	}
	c := &Claim{at: r.Now()}
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
				s = &kept{}
				r.of[id] = s
			}
			s.claim = c
			c.ids = append(c.ids, id)
		}
	}
	return c
}

// room reports whether one session more may be kept.
func (r *Recent) room() bool {
	if len(r.of) < RecentMax || r.Now().Sub(r.swept) < sweepEvery {
		return len(r.of) < RecentMax
	}
	r.swept = r.Now()
	for id, s := range r.of {
		if s.claim == nil && !r.fresh(s) {
			delete(r.of, id)
		}
	}
	return len(r.of) < RecentMax
}

// Read ends a claim of views with what they found, or with nothing if the read failed. A session with
// workers is not kept, since their health changes without it.
func (r *Recent) Read(c *Claim, found *rows.Set) {
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
		if found == nil {
			continue
		}
		f, ok := sessions.Table.Peek(found, id)
		h, _ := sessions.HealthTable.Peek(found, id)
		if workers, _ := workers.HealthTable.Peek(found, id); ok && len(workers) == 0 {
			r.of[id] = &kept{found: only(f, h), at: c.at}
		}
	}
}

// only returns a session without workers as what was read.
func only(f *sessions.Stored, h sessions.StoredHealth) *rows.Set {
	found := rows.NewAhead()
	sessions.Table.Load(found, f.ID, f)
	sessions.HealthTable.Load(found, f.ID, h)
	workers.HealthTable.Ask(found, f.ID)
	return found
}

// Writing claims what a transaction is about to write. Views find what was there until it is committed.
func (r *Recent) Writing(changed *rows.Set) *Claim {
	if r == nil {
		return nil
	}
	c := &Claim{}
	r.mu.Lock()
	defer r.mu.Unlock()
	add := func(id string, health *sessions.StoredHealth) {
		c.wrote = append(c.wrote, written{id, health})
		if s := r.of[id]; s != nil {
			s.claim = c
		}
	}
	for _, h := range sessions.HealthTable.Changed(changed) {
		add(h.Key, &h.Row)
	}
	for _, f := range sessions.Table.Changed(changed) {
		if f.Row.Shown() {
			add(f.Key, nil)
		}
	}
	return c
}

// Wrote ends a claim of a transaction: where it changed nothing but health, that is replaced, and
// anything else is dropped. A transaction that failed may have been committed.
func (r *Recent) Wrote(c *Claim, err error) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range c.wrote {
		s := r.of[w.id]
		switch {
		case s == nil:
		case err != nil || s.claim != c || s.found == nil || w.health == nil:
			delete(r.of, w.id)
		default:
			f, _ := sessions.Table.Peek(s.found, w.id)
			r.of[w.id] = &kept{found: only(f, *w.health), at: s.at}
		}
	}
}

// Drop has sessions that were changed read anew.
func (r *Recent) Drop(ids ...string) {
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
func (r *Recent) AgentChanged(string) {}

// SessionChanged implements ports.Watcher.
func (r *Recent) SessionChanged(id string) {
	if id != "" {
		r.Drop(id)
		return
	}
	if r != nil {
		r.mu.Lock()
		clear(r.of)
		r.mu.Unlock()
	}
}
