package sessions

import (
	"context"
	"errors"

	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// keepFailure counts a check that failed because of the exit alone. It does not count while traffic passes through
// the session's only address: then its agent may have filled what the address can carry.
func (u *Checks) keepFailure(ctx context.Context, ref exit.Ref, of string) error {
	ctx = context.WithoutCancel(ctx)
	err := u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if err := tx.Sessions().Lock(ctx, []string{ref.SessionID}); err != nil {
			return err
		}
		s, err := tx.Sessions().Get(ctx, ref.AgentID, ref.SessionID)
		if err != nil || s.Status != session.Active {
			return err
		}
		if now, err := identity(s, ref.Index); err != nil || now != of {
			return err
		}
		now := u.clock.Now()
		if s.Live() == 1 {
			used, err := tx.Traffic().Usage(ctx, s.ID)
			if err != nil || now.Sub(used.UpdatedAt) < exit.FailuresApart {
				return err
			}
		}
		r, found, err := tx.ExitMeasures().Get(ctx, ref)
		if err != nil || !found && u.facts.Any() {
			return err // Measure makes the records of all addresses first
		}
		r.AgentID = ref.AgentID
		return tx.ExitMeasures().Put(ctx, r.Fail(of, now))
	})
	if errors.Is(err, session.ErrNotFound) || errors.Is(err, errNoExit) {
		return nil // it went meanwhile
	}
	return err
}

// forgetFailures drops the record of an exit that works, where nothing else is kept of it.
func (u *Checks) forgetFailures(ctx context.Context, ref exit.Ref) error {
	var failed bool
	err := u.sessions.store.Read(ctx, func(ctx context.Context, tx Repos) error {
		r, _, err := tx.ExitMeasures().Get(ctx, ref)
		failed = r.Failures > 0
		return err
	})
	if err != nil || !failed {
		return err
	}
	return u.sessions.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		return tx.ExitMeasures().Drop(ctx, ref)
	})
}
