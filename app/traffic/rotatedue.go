package traffic

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// RotateDue rotates a timed session whose rotation is due, and returns its
// route. When there is no other exit to give, the session keeps the one it has
// until the next time.
func (t *Service) RotateDue(ctx context.Context, id string) (traffic.Route, error) {
	s, err := t.rotateDue(ctx, id, false)
	if errors.Is(err, exit.ErrNotMet) { // its exits may not have been measured yet
		if err = sessions.LearnToRotate(ctx, t.sessions, s); err == nil {
			s, err = t.rotateDue(ctx, id, true)
		}
	}
	if err != nil {
		return traffic.Route{}, err
	}
	return t.routed(ctx, s)
}

// rotateDue rotates a session once. If no exit meets its rule, that is an error unless its exits were learnt.
func (t *Service) rotateDue(ctx context.Context, id string, learnt bool) (session.Session, error) {
	now := t.clock.Now()
	var s session.Session
	var changed bool
	err := t.store.Update(ctx, func(ctx context.Context, tx Repos) error {
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
		r, err = t.sessions.RotateIn(ctx, tx, r, health.RotationScheduled, eventlog.Service, now)
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
