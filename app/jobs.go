package app

import (
	"context"
	"time"

	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The kinds of jobs that wait for a time. Each finds out anew whether it is due:
// what it was stored for may have moved on.
const (
	ExpireSessionJob = "expire-session" // a static session whose time is up
	SettleSessionJob = "settle-session" // a dynamic session at the end of an hour, or with a lease outstanding
	ExpireTrialJob   = "expire-trial"   // an agent's trial credit
)

// early is by how much a job may come before its time, where clocks differ. It
// is stored once more then. One that is earlier is of a time that was put off,
// and has a successor.
const early = 10 * time.Second

// again stores a job that came too early once more.
func again(ctx context.Context, tx ports.Tx, j ports.Job, now time.Time) error {
	if j.At.Sub(now) > early {
		return nil
	}
	return tx.Jobs().Insert(ctx, j, now)
}

// ExpireSession is the job of a static session whose time is up.
func (p *Passes) ExpireSession(ctx context.Context, id string) error {
	err := p.one(ctx, "expire session", id, p.expireSession)
	if err == nil {
		p.hub.SessionChanged(id)
	}
	return err
}

func (p *Passes) expireSession(ctx context.Context, tx ports.Tx, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil || s.Status != session.Active || s.ExpiresAt.IsZero() {
		return err
	}
	if now.Before(s.ExpiresAt) {
		return again(ctx, tx, ports.Job{Kind: ExpireSessionJob, SessionID: id, At: s.ExpiresAt}, now)
	}
	return p.sessions.expire(ctx, tx, s, session.TimeExpired, now)
}

// ExpireTrial is the job of an agent's trial at its date.
func (p *Passes) ExpireTrial(ctx context.Context, agentID string) error {
	return p.one(ctx, "expire trial", agentID, p.expireTrial)
}

func (p *Passes) expireTrial(ctx context.Context, tx ports.Tx, agentID string, now time.Time) error {
	w, err := books{tx, p.ids, now}.wallet(ctx, agentID, false)
	if err != nil || w.TrialExpired || w.TrialExpiresAt.IsZero() {
		return err
	}
	return again(ctx, tx, ports.Job{Kind: ExpireTrialJob, AgentID: agentID, At: w.TrialExpiresAt}, now)
}

// SettleSession is the job of a session that waits for a settlement.
func (p *Passes) SettleSession(ctx context.Context, id string) error {
	return p.one(ctx, "settle", id, p.settleSession)
}

func (p *Passes) settleSession(ctx context.Context, tx ports.Tx, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil {
		return err
	}
	at, err := tx.Traffic().SettleAt(ctx, id)
	if err != nil || at.IsZero() {
		return err
	}
	if now.Before(at) {
		return again(ctx, tx, ports.Job{Kind: SettleSessionJob, SessionID: id, At: at}, now)
	}
	u, err := tx.Traffic().Usage(ctx, id)
	if err != nil {
		return err
	}
	if s.Status.Over() && u.Leased > 0 {
		return settleLater(ctx, tx, id, now.Add(settleLate), now)
	}
	if err := (books{tx, p.ids, now}).settle(ctx, &s, u.Used(), s.Status.Over()); err != nil {
		return err
	}
	if err := tx.Traffic().SetSettleAt(ctx, id, time.Time{}); err != nil {
		return err
	}
	return tx.Sessions().Put(ctx, s)
}

// settleLater says when a session is settled, and stores the job that does it.
func settleLater(ctx context.Context, tx ports.Tx, id string, at, now time.Time) error {
	if err := tx.Traffic().SetSettleAt(ctx, id, at); err != nil {
		return err
	}
	return tx.Jobs().Insert(ctx, ports.Job{Kind: SettleSessionJob, SessionID: id, At: at}, now)
}

// expireLater stores the job that ends a static session.
func expireLater(ctx context.Context, tx ports.Tx, s session.Session, now time.Time) error {
	return tx.Jobs().Insert(ctx, ports.Job{Kind: ExpireSessionJob, SessionID: s.ID, At: s.ExpiresAt}, now)
}
