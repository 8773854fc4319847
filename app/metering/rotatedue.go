package metering

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/app/exitgate"
	"agentproxy/app/ordering"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// choosing are the sessions for which an exit of a seller is chosen.
type choosing struct {
	mu  sync.Mutex
	ids map[string]bool
}

// choosingAtMost bounds them; the others keep their exits until their next time.
const choosingAtMost = 256

// beginChoice reports whether the caller is to choose, and whether another one does.
func (c *choosing) beginChoice(id string) (may, busy bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ids[id]:
		return false, true
	case len(c.ids) >= choosingAtMost:
		return false, false
	case c.ids == nil:
		c.ids = map[string]bool{}
	}
	c.ids[id] = true
	return true, false
}

func (c *choosing) endChoice(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ids, id)
}

func (c *choosing) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[id]
}

// RotateDue rotates a timed session whose rotation is due, and returns its
// route. When there is no other exit to give, the session keeps the one it has
// until the next time. A session with a rule at a seller keeps it until an exit was chosen, which no connection
// waits for.
func (t *Service) RotateDue(ctx context.Context, id string) (traffic.Route, error) {
	if t.choosing.has(id) {
		return t.Route(ctx, id)
	}
	s, err := t.rotateDue(ctx, id, nil, false)
	if errors.Is(err, exit.ErrNotMet) { // its exits may not have been measured yet
		if err = nil; sessions.Chooses(t.sessions, s) {
			t.rotateLater(ctx, s)
		} else if _, err = sessions.LearnToRotate(ctx, t.sessions, s); err == nil {
			s, err = t.rotateDue(ctx, id, nil, true)
		}
	}
	if err != nil {
		return traffic.Route{}, err
	}
	return t.routed(ctx, s)
}

// rotateLater chooses an exit of a seller for a session and rotates it then.
func (t *Service) rotateLater(ctx context.Context, s session.Session) {
	may, busy := t.choosing.beginChoice(s.ID)
	if busy {
		return
	}
	ctx = context.WithoutCancel(ctx)
	rotate := func() {
		bounded, cancel := context.WithTimeout(ctx, exitgate.Wait)
		defer cancel()
		var turn *ordering.Turn
		var err error
		if may {
			defer t.choosing.endChoice(s.ID)
			turn, err = sessions.LearnToRotate(bounded, t.sessions, s)
		}
		if err != nil && !ports.NothingBought(err) && !errors.Is(err, account.ErrRateLimited) {
			t.log.Warn("no exit was chosen for a timed rotation", "session_id", s.ID, "err", err)
		}
		if _, err := t.rotateDue(ctx, s.ID, turn, true); err != nil {
			t.log.Warn("a timed rotation failed", "session_id", s.ID, "err", err)
		}
	}
	if may {
		go rotate()
	} else {
		rotate()
	}
}

// rotateDue rotates a session once, with the turn that was chosen for it if its exits are a seller's. If no exit meets
// its rule, that is an error unless its exits were learnt.
func (t *Service) rotateDue(
	ctx context.Context, id string, turn *ordering.Turn, learnt bool,
) (session.Session, error) {
	now := t.clock.Now()
	var s session.Session
	var changed bool
	err := t.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		loaded, err := tx.Sessions().Load(ctx, id)
		s, changed = loaded, false
		if err != nil || !rotationDue(s, now) {
			return err
		}
		changed = true
		r, err := tx.Sessions().Read(ctx, s.AgentID, id)
		if err != nil {
			return err
		}
		r, err = t.sessions.RotateIn(ctx, tx, r, health.RotationScheduled, eventlog.Service, turn, now)
		if errors.Is(err, exit.ErrNotMet) && !learnt {
			return err
		}
		if ports.NothingBought(err) {
			s.Rotation.NextAt = now.Add(s.Rotation.Interval)
			return tx.Sessions().Put(ctx, s)
		}
		s = r.Session
		return err
	})
	if err == nil && changed {
		t.hub.SessionChanged(id)
	}
	return s, err
}

// rotationDue reports whether a timed rotation is due.
func rotationDue(s session.Session, now time.Time) bool {
	return s.Status == session.Active && !s.Rotation.NextAt.IsZero() && !now.Before(s.Rotation.NextAt)
}
