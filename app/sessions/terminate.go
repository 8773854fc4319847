package sessions

import (
	"context"

	"agentproxy/domain/session"
)

// Terminate ends a session on the agent's request. Repeating it changes nothing.
func (u *Service) Terminate(ctx context.Context, agentID, id string) (View, error) {
	var v View
	err := u.store.Update(ctx, func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		r, err := tx.Sessions().Read(ctx, agentID, id)
		if err != nil {
			return err
		}
		if r.Session, err = u.life.Terminate(ctx, tx, r.Session, session.AgentRequest, now); err != nil {
			return err
		}
		v = u.view(r, now)
		return nil
	})
	if err != nil {
		return View{}, err
	}
	u.hub.SessionChanged(id)
	return v, nil
}
