package app

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/feed"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Rotate asks for a new exit of a dynamic session.
type Rotate struct {
	AgentID   string
	SessionID string
	Reason    health.RotationReason // empty: manual
	Call      Call
}

// Rotate gives a dynamic session a new exit. The session id stays.
func (u *Sessions) Rotate(ctx context.Context, in Rotate) (Done, error) {
	if in.Reason == "" {
		in.Reason = health.RotationManual
	}
	if !in.Reason.Valid() {
		return Done{}, domain.InvalidField("reason", "must be http_403, http_429, captcha, timeout, block, scheduled or manual")
	}
	exit, err := u.rotateAhead(ctx, in)
	if err != nil {
		return Done{}, err
	}
	var done Done
	err = u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		prev, replay, err := u.replayed(ctx, tx, in.AgentID, in.Call, now)
		if err != nil || replay {
			done = prev
			return err
		}
		r, err := tx.Sessions().Read(ctx, in.AgentID, in.SessionID)
		if err != nil {
			return err
		}
		if r, err = u.rotate(ctx, tx, r, exit, in.Reason, feed.Agent, now); err != nil {
			return err
		}
		done = Done{View: u.view(r, now), Status: 200}
		return u.keep(ctx, tx, in.AgentID, in.Call, r.ID, 200, now)
	})
	if err != nil {
		return Done{}, err
	}
	if !done.Replayed {
		u.hub.SessionChanged(in.SessionID)
	}
	return done, nil
}

// rotateAhead asks a provider that does IO for the new exit, before the unit
// that takes it. Nil: there is no need, a local one is asked inside the unit.
func (u *Sessions) rotateAhead(ctx context.Context, in Rotate) (*session.Exit, error) {
	if u.catalog.allLocal() {
		return nil, nil
	}
	var s session.Session
	var replay bool
	err := u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		if _, replay, err = u.replayed(ctx, tx, in.AgentID, in.Call, u.clock.Now()); err != nil || replay {
			return err
		}
		s, err = tx.Sessions().Get(ctx, in.AgentID, in.SessionID)
		return err
	})
	if err != nil || replay {
		return nil, err
	}
	return u.remoteExit(ctx, s)
}

// remoteExit asks the provider of a session for another exit, if that does IO.
func (u *Sessions) remoteExit(ctx context.Context, s session.Session) (*session.Exit, error) {
	if err := s.MayRotate(); err != nil {
		return nil, err
	}
	provider, known := u.catalog.provider(s.Provider)
	if !known || provider.Local() {
		return nil, nil
	}
	exit, err := provider.Rotate(ctx, u.orderOf(s), s.Exits[0])
	if err != nil {
		return nil, providerError(err)
	}
	return &exit, nil
}

// providerError is what an agent hears of a provider's failure.
func providerError(err error) error {
	if errors.Is(err, ports.ErrAmbiguous) || !refused(err) {
		return ports.ErrProvider
	}
	return err
}

// rotate changes the exit in a unit: the session, its health, its feed.
func (u *Sessions) rotate(ctx context.Context, tx ports.Tx, r ports.SessionRead, exit *session.Exit,
	reason health.RotationReason, by feed.Source, now time.Time) (ports.SessionRead, error) {
	if err := r.MayRotate(); err != nil {
		return r, err
	}
	if exit == nil {
		provider, known := u.catalog.provider(r.Provider)
		if !known || !provider.Local() {
			return r, ports.ErrProvider
		}
		e, err := provider.Rotate(ctx, u.orderOf(r.Session), r.Exits[0])
		if err != nil {
			return r, err
		}
		exit = &e
	}
	s, err := r.Session.Rotate(*exit, now)
	if err != nil {
		return r, err
	}
	r.Session = s
	state := *r.Health
	state.Rotate(reason, now)
	r.Health = &state
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return r, err
	}
	if err := tx.Health().Put(ctx, s.ID, state); err != nil {
		return r, err
	}
	if err := tx.Counters().Add(ctx, s.AgentID, ports.Tally{Rotations: 1}); err != nil {
		return r, err
	}
	if err := tellSession(ctx, tx, u.ids, now, webhook.SessionRotated, s, "reason", string(reason)); err != nil {
		return r, err
	}
	return r, tx.Events().Append(ctx, s.ID, []feed.Event{{ID: u.ids.New("evt_"), At: now, Source: by,
		Type: "rotated", Code: string(reason), ExitIP: exit.IP.String(), LatencyMS: -1}})
}

// RotateDue rotates a timed session whose rotation is due, and returns its
// route. When there is no other exit to give, the session keeps the one it has
// until the next time.
func (t *Traffic) RotateDue(ctx context.Context, id string) (traffic.Route, error) {
	now := t.clock.Now()
	exit, refusal, err := t.sessions.dueExit(ctx, id, now)
	if err != nil {
		return traffic.Route{}, err
	}
	var s session.Session
	var changed bool
	err = t.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
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
		if err = refusal; err == nil {
			r, err = t.sessions.rotate(ctx, tx, r, exit, health.RotationScheduled, feed.Service, now)
		}
		if refused(err) {
			s.Rotation.NextAt = now.Add(s.Rotation.Interval)
			return tx.Sessions().Put(ctx, s)
		}
		s = r.Session
		return err
	})
	if err != nil {
		return traffic.Route{}, err
	}
	if changed {
		t.hub.SessionChanged(id)
	}
	return routeOf(s), nil
}

// rotationDue reports whether a timed rotation is due.
func rotationDue(s session.Session, now time.Time) bool {
	return s.Status == session.Active && !s.Rotation.NextAt.IsZero() && !now.Before(s.Rotation.NextAt)
}

// dueExit is rotateAhead for a timed rotation. A provider's refusal is for the
// unit to note.
func (u *Sessions) dueExit(ctx context.Context, id string, now time.Time) (exit *session.Exit, refusal, err error) {
	if u.catalog.allLocal() {
		return nil, nil, nil
	}
	var s session.Session
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		s, err = tx.Sessions().Load(ctx, id)
		return err
	})
	if err != nil || !rotationDue(s, now) {
		return nil, nil, err
	}
	exit, refusal = u.remoteExit(ctx, s)
	return exit, refusal, nil
}
