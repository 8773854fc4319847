package sessions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// MeasureEvery is how often Measure runs.
const MeasureEvery = 15 * time.Second

// The bounds of a run of Measure: what it measures passes through exits at the cost of the operator.
const (
	measuredAtOnce  = 8   // probes under way
	measuredInAll   = 100 // exits
	measuredOfAgent = 5   // exits of one agent; the others wait for postponedFor
	foundAtOnce     = 50  // static sessions that were activated
	changedAtMost   = 10_000
	postponedFor    = 5 * time.Minute
	measuredWithin  = 30 * time.Second
)

// changedSessions are those that changed since the last run of Measure. Beyond changedAtMost they are dropped: their
// exits are measured again within a day.
type changedSessions struct {
	mu  sync.Mutex
	ids map[string]bool
}

// AgentChanged does nothing: no exit changes with an agent.
func (u *Checks) AgentChanged(string) {}

// SessionChanged notes that the exits of a session may be others.
func (u *Checks) SessionChanged(id string) {
	if id == "" || !u.facts.Any() {
		return
	}
	c := &u.changed
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ids == nil {
		c.ids = map[string]bool{}
	}
	if len(c.ids) < changedAtMost {
		c.ids[id] = true
	}
}

// takeChanged returns up to measuredInAll sessions that changed.
func (c *changedSessions) takeChanged() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.ids {
		if len(ids) == measuredInAll {
			break
		}
		ids = append(ids, id)
		delete(c.ids, id)
	}
	return ids
}

// Measure measures the addresses of static sessions that were activated, and again what was measured a day ago and
// what changed since; an exit that changes more often than every exit.Apart is measured that often. Where there are
// no sources of facts any more, it forgets what was measured when that is a day old.
func (u *Checks) Measure(ctx context.Context) error {
	var faults []error
	if u.facts.Any() {
		faults = append(faults, u.noticeChanges(ctx), u.noticeActivations(ctx))
	}
	var due []exit.Record
	err := u.sessions.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		due, err = tx.ExitMeasures().Due(ctx, u.clock.Now(), measuredInAll)
		return err
	})
	if err != nil {
		return errors.Join(append(faults, err)...)
	}
	of, mu := map[string]int{}, sync.Mutex{}
	var wg sync.WaitGroup
	slots := make(chan struct{}, measuredAtOnce)
	for _, r := range due {
		if of[r.AgentID]++; of[r.AgentID] > measuredOfAgent {
			faults = append(faults, u.postpone(ctx, r.Ref, postponedFor))
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := u.again(ctx, r); err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, fmt.Errorf("measure an exit of %s: %w", r.SessionID, err))
			}
		})
	}
	wg.Wait()
	return errors.Join(faults...)
}

// postpone sets when an exit is measured.
func (u *Checks) postpone(ctx context.Context, ref exit.Ref, by time.Duration) error {
	return u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		return tx.ExitMeasures().Postpone(ctx, ref, u.clock.Now().Add(by))
	})
}

// again measures an exit whose measurement is due, and drops the record of one that is gone.
func (u *Checks) again(ctx context.Context, r exit.Record) error {
	var s session.Session
	var of string
	var idle bool
	err := u.sessions.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if s, err = tx.Sessions().Get(ctx, r.AgentID, r.SessionID); err != nil {
			return err
		}
		if r.Worker != "" {
			w, err := tx.Workers().Get(ctx, s.ID, r.Worker)
			if err != nil {
				return err
			}
			// A probe would be the use that gives it another exit.
			idle = w.Due(u.clock.Now())
		}
		of, err = present(ctx, tx, s, r.Ref)
		return err
	})
	switch {
	case errors.Is(err, session.ErrNotFound) || errors.Is(err, worker.ErrNotFound) || errors.Is(err, errNoExit),
		err == nil && (s.Status.Over() || !u.facts.Any()):
		return u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
			return tx.ExitMeasures().Drop(ctx, r.Ref)
		})
	case err != nil:
		return err
	case idle || s.Status != session.Active:
		return u.postpone(ctx, r.Ref, exit.RetryAfter)
	}
	within, cancel := context.WithTimeout(ctx, measuredWithin)
	defer cancel()
	if _, err := u.measure(within, s, r.Ref); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		last, found, err := tx.ExitMeasures().Get(ctx, r.Ref)
		if err != nil || !found || last.DueAt.After(u.clock.Now()) {
			return err // a check measured it meanwhile
		}
		return tx.ExitMeasures().Put(ctx, last.Miss(of, u.clock.Now()))
	})
}

// noticeChanges makes the measurement of exits due that are others than those measured.
func (u *Checks) noticeChanges(ctx context.Context) error {
	ids := u.changed.takeChanged()
	if ids == nil {
		return nil
	}
	var list []exit.Record
	err := u.sessions.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		list, err = tx.ExitMeasures().Of(ctx, ids)
		return err
	})
	if err != nil {
		return err
	}
	var faults []error
	of := map[string][]exit.Record{}
	for _, r := range list {
		of[r.SessionID] = append(of[r.SessionID], r)
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		faults = append(faults, u.noticeChange(ctx, of[id]))
	}
	return errors.Join(faults...)
}

// noticeChange looks at the exits of one session.
func (u *Checks) noticeChange(ctx context.Context, list []exit.Record) error {
	return u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Get(ctx, list[0].AgentID, list[0].SessionID)
		if err != nil || s.Status != session.Active {
			return err // the records go when they are due
		}
		named := map[string]worker.Worker{}
		if list[len(list)-1].Worker != "" { // they are in the order of names
			all, err := tx.Workers().Of(ctx, s.ID)
			if err != nil {
				return err
			}
			for _, w := range all {
				named[w.Name] = w
			}
		}
		now := u.clock.Now()
		for _, r := range list {
			of, err := identity(s, r.Index)
			w, is := named[r.Worker]
			switch {
			case is:
				of = exit.Identity(w.ID, w.Turn, w.Exit.IP)
			case r.Worker != "" || err != nil:
				if err := tx.ExitMeasures().Drop(ctx, r.Ref); err != nil {
					return err
				}
				continue
			}
			if due := later(now, r.At.Add(exit.Apart)); of != r.Of && due.Before(r.DueAt) {
				if err := tx.ExitMeasures().Postpone(ctx, r.Ref, due); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// noticeActivations makes the addresses of static sessions due that no run has seen yet.
func (u *Checks) noticeActivations(ctx context.Context) error {
	var ids []string
	err := u.sessions.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		ids, err = tx.ExitMeasures().Unmeasured(ctx, foundAtOnce)
		return err
	})
	faults := []error{err}
	for _, id := range ids {
		faults = append(faults, u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
			s, err := tx.Sessions().Load(ctx, id)
			if err != nil || s.Status != session.Active {
				return err
			}
			for i := range max(len(s.Exits), 1) {
				if i < len(s.Exits) && s.Exits[i].Ended {
					continue
				}
				r := exit.Record{Ref: exit.Ref{AgentID: s.AgentID, SessionID: s.ID, Index: i}, DueAt: u.clock.Now()}
				if _, found, err := tx.ExitMeasures().Get(ctx, r.Ref); err != nil || found {
					return err
				}
				if err := tx.ExitMeasures().Put(ctx, r); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return errors.Join(faults...)
}
