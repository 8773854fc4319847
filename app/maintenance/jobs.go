package maintenance

import (
	"context"
	"time"

	"agentproxy/app/ledger"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// maxSkew is by how much a job may run before its time because clocks differ. It
// is stored again then. One that is earlier belongs to a time that was put off,
// and has a successor.
const maxSkew = 10 * time.Second

// requeue stores a job that ran too early once more.
func requeue(ctx context.Context, tx repos, j ports.Job, now time.Time) error {
	if j.At.Sub(now) > maxSkew {
		return nil
	}
	return tx.Jobs().Insert(ctx, j, now)
}

// ExpireSession is the job of a static session whose time is up.
func (p *Tasks) ExpireSession(ctx context.Context, id string) error {
	err := p.one(ctx, "expire session", id, p.expireSession)
	if err == nil {
		p.hub.SessionChanged(id)
	}
	return err
}

func (p *Tasks) expireSession(ctx context.Context, tx repos, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil || s.Status != session.Active || s.ExpiresAt.IsZero() {
		return err
	}
	if now.Before(s.ExpiresAt) {
		return requeue(ctx, tx, ports.Job{Kind: ports.ExpireSessionJob, SessionID: id, At: s.ExpiresAt}, now)
	}
	return p.life.Expire(ctx, tx, s, session.TimeExpired, now)
}

// ExpireTrial is the job of an agent's trial at its date.
func (p *Tasks) ExpireTrial(ctx context.Context, agentID string) error {
	return p.one(ctx, "expire trial", agentID, p.expireTrial)
}

func (p *Tasks) expireTrial(ctx context.Context, tx repos, agentID string, now time.Time) error {
	w, err := ledger.NewBook(tx, p.ids, now).Wallet(ctx, agentID, false)
	if err != nil || w.TrialExpired || w.TrialExpiresAt.IsZero() {
		return err
	}
	return requeue(ctx, tx, ports.Job{Kind: ports.ExpireTrialJob, AgentID: agentID, At: w.TrialExpiresAt}, now)
}

// SettleSession is the job of a session that waits for a settlement.
func (p *Tasks) SettleSession(ctx context.Context, id string) error {
	return p.one(ctx, "settle", id, p.settleSession)
}

func (p *Tasks) settleSession(ctx context.Context, tx repos, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, id)
	if err != nil {
		return err
	}
	at, err := tx.Traffic().SettleAt(ctx, id)
	if err != nil || at.IsZero() {
		return err
	}
	if now.Before(at) {
		return requeue(ctx, tx, ports.Job{Kind: ports.SettleSessionJob, SessionID: id, At: at}, now)
	}
	u, err := tx.Traffic().Usage(ctx, id)
	if err != nil {
		return err
	}
	if s.Status.Over() && u.Leased > 0 {
		return ledger.SettleLater(ctx, tx, id, now.Add(ledger.SettleLate), now)
	}
	if err := ledger.NewBook(tx, p.ids, now).Settle(ctx, &s, u.Used(), s.Status.Over()); err != nil {
		return err
	}
	if err := tx.Traffic().SetSettleAt(ctx, id, time.Time{}); err != nil {
		return err
	}
	return tx.Sessions().Put(ctx, s)
}
