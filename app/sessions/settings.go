package sessions

import (
	"context"
	"errors"

	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Change asks for other settings of a session. A nil field stays as it is.
type Change struct {
	AgentID   string
	SessionID string
	Labels    *session.Labels
}

// check checks what does not depend on the session.
func (in Change) check() error {
	if in.Labels != nil {
		return in.Labels.Check()
	}
	return nil
}

// apply returns the session with the settings.
func (in Change) apply(s session.Session) session.Session {
	if in.Labels != nil {
		s.Labels = nil
		if len(*in.Labels) > 0 {
			s.Labels = *in.Labels
		}
	}
	return s
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
	apply := func(_ context.Context, _ Repos, s session.Session) (session.Session, error) { return in.apply(s), nil }
	return u.changed(ctx, in.AgentID, in.SessionID, apply)
}

// changed stores what change makes of a session, and returns it.
func (u *Service) changed(
	ctx context.Context, agentID, id string,
	change func(context.Context, Repos, session.Session) (session.Session, error),
) (View, error) {
	var r ports.SessionRead
	err := u.store.Update(ctx, func(ctx context.Context, tx Repos) (err error) {
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
