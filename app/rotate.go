package app

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/procurement"
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
	var done Done
	err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
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
		if r, err = u.rotate(ctx, tx, r, in.Reason, eventlog.Agent, now); err != nil {
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
	return done, u.withDirect(ctx, &done.View)
}

// rotate changes the exit in a unit: the session, its health, its feed. No seller
// is asked: the next exit of an upstream is the one of the next token.
func (u *Sessions) rotate(ctx context.Context, tx ports.Tx, r ports.SessionRead,
	reason health.RotationReason, by eventlog.Source, now time.Time) (ports.SessionRead, error) {
	if err := r.MayRotate(); err != nil {
		return r, err
	}
	known, _ := u.catalog.provider(r.Provider)
	provider, ok := known.(ports.Dynamic)
	if !ok {
		return r, ports.ErrProvider.Msgf("the provider of this session is not configured any more; create a new one")
	}
	product, _ := u.catalog.product(r.ProductNo)
	from, _ := sourceOf(product, r.Provider)
	exit, err := provider.NewExit(intentFor(r.Session, from), r.Exits[0])
	u.count(provider, "rotate", err)
	if err != nil {
		return r, ports.Refusal(procurement.ClassOf(err))
	}
	s, err := r.Session.Rotate(exit, now)
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
	return r, tx.Events().Append(ctx, s.ID, []eventlog.Event{{ID: u.ids.New(eventlog.IDPrefix), At: now, Source: by,
		Type: "rotated", Code: string(reason), ExitIP: exitText(exit), LatencyMS: -1}})
}

// RotateDue rotates a timed session whose rotation is due, and returns its
// route. When there is no other exit to give, the session keeps the one it has
// until the next time.
func (t *Traffic) RotateDue(ctx context.Context, id string) (traffic.Route, error) {
	now := t.clock.Now()
	var s session.Session
	var changed bool
	err := t.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
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
		r, err = t.sessions.rotate(ctx, tx, r, health.RotationScheduled, eventlog.Service, now)
		if refusedHere(err) {
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
	return t.routed(ctx, s)
}

// rotationDue reports whether a timed rotation is due.
func rotationDue(s session.Session, now time.Time) bool {
	return s.Status == session.Active && !s.Rotation.NextAt.IsZero() && !now.Before(s.Rotation.NextAt)
}

// exitText is the address of an exit; empty when nobody knows it.
func exitText(e session.Exit) string {
	if !e.IP.IsValid() {
		return ""
	}
	return e.IP.String()
}
