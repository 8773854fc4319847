package sessions

import (
	"context"

	"agentproxy/app/settlement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Terminate ends a session on the agent's request. Repeating it changes nothing.
func (u *Service) Terminate(ctx context.Context, agentID, id string) (View, error) {
	var v View
	reads := ports.ReadSet{Agent: agentID, Money: true, Sessions: []string{id}}
	err := u.store.Update(ctx, reads, func(ctx context.Context, tx Repos) error {
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

// Endings foretells the ends of sessions.
type Endings struct{ *Service }

// Try returns what Terminate would do now, and changes nothing.
func (u Endings) Try(ctx context.Context, agentID, id string) (e settlement.Ending, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		r, err := tx.Sessions().Read(ctx, agentID, id)
		if err != nil {
			return err
		}
		e, err = settlement.Foretell(ctx, tx, u.catalog, r, u.clock.Now())
		return err
	})
	return e, err
}
