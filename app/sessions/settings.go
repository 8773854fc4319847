package sessions

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/fulfilment"
	"agentproxy/app/idempotency"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Change asks for other settings of a session. A nil field stays as it is.
type Change struct {
	AgentID   string
	SessionID string
	By        account.Spender
	Labels    *session.Labels
	// AllowedIPs are networks and addresses.
	AllowedIPs *[]string
	// AutoTopUp is nil within for a session that is to buy nothing by itself.
	AutoTopUp **session.AutoTopUp
}

// check checks what does not depend on the session.
func (in Change) check() error {
	if in.Labels != nil {
		if err := in.Labels.Check(); err != nil {
			return err
		}
	}
	if in.AllowedIPs != nil {
		if _, err := session.ParseAllowedIPs(*in.AllowedIPs); err != nil {
			return err
		}
	}
	if in.AutoTopUp != nil && *in.AutoTopUp != nil {
		return (*in.AutoTopUp).Check()
	}
	return nil
}

// apply returns the session with the settings. What the end of a session makes pointless is refused
// after it.
func (in Change) apply(s session.Session) (session.Session, error) {
	if s.Status.Over() && (in.AllowedIPs != nil || in.AutoTopUp != nil) {
		return s, session.ErrOver.Msgf("the session is %s; only its labels can be changed", s.Status)
	}
	if in.AutoTopUp != nil && *in.AutoTopUp != nil {
		if err := in.By.May(s.BoughtBy.KeyID); err != nil {
			return s, err
		}
	}
	if in.Labels != nil {
		s.Labels = nil
		if len(*in.Labels) > 0 {
			s.Labels = *in.Labels
		}
	}
	if in.AllowedIPs != nil {
		var err error
		if s.AllowedIPs, err = session.ParseAllowedIPs(*in.AllowedIPs); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Change changes the settings of a session, which hold on every replica within a second. Labels
// may be changed after its end, too.
func (u *Service) Change(ctx context.Context, in Change) (View, error) {
	if err := in.check(); err != nil {
		// Whose session it is comes first: the answer must not depend on the body.
		if _, missing := u.Read(ctx, in.AgentID, in.SessionID); errors.Is(missing, session.ErrNotFound) {
			return View{}, missing
		}
		return View{}, err
	}
	apply := func(_ context.Context, _ Repos, s session.Session) (session.Session, error) {
		s, err := in.apply(s)
		if err == nil && in.AutoTopUp != nil {
			s, err = topUps{u}.autoTopUp(s, *in.AutoTopUp)
		}
		return s, err
	}
	return u.changed(ctx, in.AgentID, in.SessionID, apply)
}

// changed applies change to a session, stores the result and returns it.
func (u *Service) changed(
	ctx context.Context, agentID, id string,
	change func(context.Context, Repos, session.Session) (session.Session, error),
) (View, error) {
	var r ports.SessionRead
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if r, err = tx.Sessions().Read(ctx, agentID, id); err != nil {
			return err
		}
		if r.Session, err = change(ctx, tx, r.Session); err != nil {
			return err
		}
		return tx.Sessions().Put(ctx, r.Session)
	})
	if err != nil {
		return View{}, err
	}
	u.hub.SessionChanged(id)
	v := u.view(r, u.clock.Now())
	v.Direct, err = u.access.Direct(ctx, v.Session)
	return v, err
}

// ReplacePassword asks for another password of a session.
type ReplacePassword struct {
	AgentID          string
	SessionID        string
	CloseConnections bool
	Call             idempotency.Call
}

// ReplacePassword replaces the password of an active session. The old one ends on every replica
// within a second; connections that were made with it go on, unless they are to be closed.
func (u *Service) ReplacePassword(ctx context.Context, in ReplacePassword) (Done, error) {
	return u.changedOnce(ctx, in.AgentID, in.SessionID, in.Call,
		func(ctx context.Context, tx Repos, r ports.SessionRead, now time.Time) (ports.SessionRead, error) {
			var err error
			if r.Session, err = replacePassword(ctx, u.access, r.Session, in.CloseConnections); err != nil {
				return r, err
			}
			if err := tx.Sessions().Put(ctx, r.Session); err != nil {
				return r, err
			}
			return r, tx.Events().Append(ctx, r.ID, []eventlog.Event{{ID: u.ids.New(eventlog.IDPrefix), At: now,
				Source: eventlog.Agent, Type: eventlog.PasswordReplaced, LatencyMS: -1}})
		})
}

// changedOnce is like changed under an Idempotency-Key. change stores its result itself.
func (u *Service) changedOnce(ctx context.Context, agentID, id string, call idempotency.Call,
	change func(context.Context, Repos, ports.SessionRead, time.Time) (ports.SessionRead, error)) (Done, error) {
	var done Done
	reads := ports.ReadSet{Agent: agentID, Sessions: []string{id}, Path: call.Path, Key: call.Key}
	err := u.store.Update(ctx, reads, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		prev, replay, err := u.replayed(ctx, tx, agentID, call, now)
		if err != nil || replay {
			done = prev
			return err
		}
		r, err := tx.Sessions().Read(ctx, agentID, id)
		if err != nil {
			return err
		}
		if r, err = change(ctx, tx, r, now); err != nil {
			return err
		}
		done = Done{View: u.view(r, now), Outcome: ports.Completed}
		return idempotency.Store(ctx, tx, agentID, call, r.ID, ports.Completed, now)
	})
	if err != nil {
		return Done{}, err
	}
	if !done.Replayed {
		u.hub.SessionChanged(id)
	}
	done.View.Direct, err = u.access.Direct(ctx, done.View.Session)
	return done, err
}

func replacePassword(
	ctx context.Context, access *fulfilment.Service, s session.Session, cut bool,
) (session.Session, error) {
	s, err := s.ReplacePassword()
	if err != nil {
		return s, err
	}
	direct, err := access.Direct(ctx, s)
	if err != nil {
		return s, err
	}
	if direct != nil {
		return s, domain.ErrInvalid.Msgf("the seller sets the password of this session; end it and buy another one")
	}
	if cut {
		s = s.CloseConnections()
	}
	return s, nil
}
