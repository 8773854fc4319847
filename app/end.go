package app

import (
	"context"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Terminate ends a session at the agent's wish. Repeating it changes nothing.
func (u *Sessions) Terminate(ctx context.Context, agentID, id string) (SessionView, error) {
	if u.catalog.someDirect() {
		if err := u.lastUsage(ctx, agentID, id); err != nil {
			return SessionView{}, err
		}
	}
	var v SessionView
	err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		r, err := tx.Sessions().Read(ctx, agentID, id)
		if err != nil {
			return err
		}
		if r.Session, err = u.terminate(ctx, tx, r.Session, session.AgentRequest, now); err != nil {
			return err
		}
		v = u.view(r, now)
		return nil
	})
	if err != nil {
		return SessionView{}, err
	}
	u.hub.SessionChanged(id)
	return v, nil
}

// terminate ends a session in a unit, whoever wishes it.
func (u *Sessions) terminate(ctx context.Context, tx ports.Tx, s session.Session, why session.Reason, now time.Time) (session.Session, error) {
	s, changed := s.Terminate(why, now)
	if !changed {
		return s, nil
	}
	return u.end(ctx, tx, s, "terminated", string(why), now)
}

// expire ends a session in a unit because its time or its traffic is used up.
func (u *Sessions) expire(ctx context.Context, tx ports.Tx, s session.Session, why session.Reason, now time.Time) error {
	s, err := s.Expire(why, now)
	if err != nil {
		return err
	}
	_, err = u.end(ctx, tx, s, "expired", string(why), now)
	return err
}

// endTypes are the types of the webhook events of a session's end.
var endTypes = map[session.Status]webhook.Type{
	session.Terminated: webhook.SessionTerminated,
	session.Expired:    webhook.SessionExpired,
	session.Failed:     webhook.SessionFailed,
}

// end stores a session that has just ended, with all that its end entails. What
// was bought of a seller is given up by a job.
func (u *Sessions) end(ctx context.Context, tx ports.Tx, s session.Session, what, code string, now time.Time) (session.Session, error) {
	b := books{tx, u.ids, now}
	if err := u.endOrders(ctx, b, &s); err != nil {
		return s, err
	}
	if err := b.finish(ctx, &s); err != nil {
		return s, err
	}
	if err := note(ctx, tx, u.ids, s.ID, what, code, now); err != nil {
		return s, err
	}
	if err := tellSession(ctx, tx, u.ids, now, endTypes[s.Status], s); err != nil {
		return s, err
	}
	return s, tx.Sessions().Put(ctx, s)
}

// note adds an event of the service to a session's feed.
func note(ctx context.Context, tx ports.Tx, ids ports.IDs, sessionID, what, code string, now time.Time) error {
	return tx.Events().Append(ctx, sessionID, []eventlog.Event{{ID: ids.New(eventlog.IDPrefix), At: now, Source: eventlog.Service,
		Type: what, Code: code, LatencyMS: -1}})
}

// Disable shuts an agent out and ends its sessions; the unused part is refunded.
func (u *Sessions) Disable(ctx context.Context, agentID, reason string) error {
	var ids []string
	err := u.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		now := u.clock.Now()
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		agent.Status, agent.DisabledFor, agent.UpdatedAt = account.Disabled, reason, now
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		if ids, err = tx.Sessions().Live(ctx, agentID); err != nil {
			return err
		}
		for _, id := range ids {
			s, err := tx.Sessions().Load(ctx, id)
			if err != nil {
				return err
			}
			if _, err := u.terminate(ctx, tx, s, session.AccountDisabled, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	u.hub.AgentChanged(agentID)
	for _, id := range ids {
		u.hub.SessionChanged(id)
	}
	return nil
}
