package policies

import (
	"context"
	"errors"

	"agentproxy/app/changes"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Service keeps the rules that agents set for their sessions.
type Service struct {
	store ports.Unit[repos]
	hub   *changes.Hub
}

// New returns the use cases.
func New(store ports.Store, hub *changes.Hub) *Service { return &Service{narrow(store), hub} }

// Get returns the rules of a session of an agent, in whatever state it is. A session
// without rules has the mode off.
func (u *Service) Get(ctx context.Context, agentID, sessionID string) (own policy.Own, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if _, err := tx.Sessions().Get(ctx, agentID, sessionID); err != nil {
			return err
		}
		own, err = tx.Policies().Get(ctx, sessionID)
		return err
	})
	if own.Mode == "" {
		own.Mode = policy.Off
	}
	return own, err
}

// Put replaces the rules of a live session. They hold on every replica within a second.
func (u *Service) Put(ctx context.Context, agentID, sessionID string, own policy.Own) (policy.Own, error) {
	own = own.WithMode()
	if err := own.Check(""); err != nil {
		// Whose session it is comes first: the answer must not depend on the body.
		if _, missing := u.Get(ctx, agentID, sessionID); errors.Is(missing, session.ErrNotFound) {
			return own, missing
		}
		return own, err
	}
	err := u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		s, err := tx.Sessions().Get(ctx, agentID, sessionID)
		if err != nil {
			return err
		}
		if s.Status.Over() {
			return session.ErrOver.Msgf("the session is %s; its policy cannot be changed any more", s.Status)
		}
		return tx.Policies().Put(ctx, sessionID, own)
	})
	if err == nil {
		u.hub.SessionChanged(sessionID)
	}
	return own, err
}
