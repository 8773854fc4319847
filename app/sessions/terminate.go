package sessions

import (
	"context"

	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Terminate ends a session on the agent's request. Repeating it changes nothing.
func (u *Service) Terminate(ctx context.Context, agentID, id string) (View, error) {
	var v View
	reads := ports.ReadSet{Agent: agentID, Money: true, Sessions: []string{id}}
	err := u.store.Update(ports.WithReadSet(ctx, reads), func(ctx context.Context, tx Repos) error {
		now := u.clock.Now()
		r, err := tx.Sessions().Read(ctx, agentID, id)
		if err != nil {
			return err
		}
		if r.Session, err = u.transitions.Terminate(ctx, tx, r.Session, session.AgentRequest, now); err != nil {
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
