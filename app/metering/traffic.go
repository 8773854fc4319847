// Package metering routes and meters the traffic of sessions for the gateway.
package metering

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"agentproxy/app/changes"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/app/sessions"
	"agentproxy/domain/account"
	"agentproxy/domain/policy"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Service routes and meters the traffic of sessions for the gateway.
type Service struct {
	store       ports.Unit[Repos]
	clock       ports.Clock
	ids         ports.IDs
	sessions    *sessions.Service
	transitions *sessions.Transitions
	access      *fulfilment.Service
	hub         *changes.Hub
	log         *slog.Logger
	failing     failing
	rules       ruleSets
	choosing    choosing
	reported    reported
}

// New returns the use cases.
func New(base ports.Base, sessions *sessions.Service, transitions *sessions.Transitions, access *fulfilment.Service,
	hub *changes.Hub) *Service {
	return &Service{store: narrow(base.Store), clock: base.Clock, ids: base.IDs, sessions: sessions,
		transitions: transitions, access: access, hub: hub, log: base.Log}
}

// KeepEnded is how long the credentials of an ended session are accepted.
const KeepEnded = 30 * 24 * time.Hour

// Route returns what a gateway needs to carry a session's traffic;
// session.ErrNotFound for an unknown id and for a session that ended long ago.
func (t *Service) Route(ctx context.Context, id string) (traffic.Route, error) {
	var s session.Session
	err := t.store.Read(ctx, func(ctx context.Context, tx Repos) (err error) {
		s, err = tx.Sessions().Load(ctx, id)
		return err
	})
	if err == nil && s.Status.Over() && t.clock.Now().Sub(s.EndedAt) > KeepEnded {
		err = session.ErrNotFound
	}
	if err != nil {
		return traffic.Route{}, err
	}
	return t.routed(ctx, s)
}

// routed returns the route of a session, with the upstream proxies of its exits.
func (t *Service) routed(ctx context.Context, s session.Session) (traffic.Route, error) {
	r := routeOf(s)
	if s.Status != session.Active {
		return r, nil
	}
	err := t.store.Read(ctx, func(ctx context.Context, tx Repos) error {
		agent, err := tx.Agents().Get(ctx, s.AgentID)
		if err != nil {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, s.AgentID)
		if err != nil {
			return err
		}
		r.Trial = agent.Tier(w.Credited(), t.sessions.FundedFrom) == account.TrialTier
		own, err := tx.Policies().Get(ctx, s.ID)
		r.Policy, r.PolicyReports = t.rules.rulesOf(own), own.Mode == policy.Report
		if err != nil || s.FairUse == 0 {
			return err
		}
		u, err := tx.Traffic().Usage(ctx, s.ID)
		r.UsedUp = u.Exhausted()
		return err
	})
	if err != nil {
		return r, err
	}
	r.Upstreams, err = t.access.Upstreams(ctx, s)
	return r, err
}

// routeOf returns the route of a session, without the end of one that is being renewed: it may be
// about to move, and until the renewal is decided the session does not expire.
func routeOf(s session.Session) traffic.Route {
	if s.Renewing() {
		s.ExpiresAt = time.Time{}
	}
	return traffic.Route{SessionID: s.ID, Provider: s.Provider, ProductNo: s.ProductNo, AgentID: s.AgentID, Type: s.Type,
		Status: s.Status, Reason: s.Reason, Exits: s.Exits, PasswordNo: s.PasswordNo, Allowed: s.AllowedIPs,
		Cuts: s.Cuts, Rotation: s.Rotation.Count, NextAt: s.Rotation.NextAt,
		ExpiresAt: s.ExpiresAt}
}

// notifyLow notifies of the share of the traffic that is used, while the session is
// active.
func (t *Service) notifyLow(ctx context.Context, tx Repos, s session.Session, percents []int, now time.Time) error {
	if s.Status != session.Active {
		return nil
	}
	for _, p := range percents {
		err := notify.SessionChanged(ctx, tx, t.ids, now, webhook.SessionTrafficLow, s, "percent", strconv.Itoa(p))
		if err != nil {
			return err
		}
	}
	return nil
}

// record stores what a request moved, booked at a moment, and returns the session after it.
func (b *batch) record(ctx context.Context, s session.Session, before traffic.Usage, d traffic.Delta,
	l traffic.Lease, request traffic.LeaseRequest, now time.Time) (session.Session, error) {
	tx := b.tx
	if err := tx.Traffic().PutUsage(ctx, s.ID, d); err != nil {
		return s, err
	}
	var err error
	switch {
	case request.Fold:
		err = tx.Traffic().BookLease(ctx, l)
	case request.Close:
		err = tx.Traffic().DropLease(ctx, s.ID, l.ID)
	default:
		err = tx.Traffic().PutLease(ctx, l)
	}
	if err != nil || d.Up+d.Down+d.Connections == 0 {
		return s, err
	}
	for _, w := range d.Workers {
		more := worker.Usage{Up: w.Up, Down: w.Down, Connections: w.Connections}
		if err := tx.Workers().Count(ctx, w.ID, more, now); err != nil {
			return s, err
		}
	}
	hour := now.Truncate(time.Hour)
	used := ports.Totals{Up: d.Up, Down: d.Down, Connections: d.Connections}
	if err := tx.Traffic().Record(ctx, s.AgentID, s.ID, hour, used); err != nil {
		return s, err
	}
	if s.Type == session.Dynamic && s.Status == session.Active && before.UpdatedAt.Before(hour) {
		return b.newHour(ctx, tx, s, before, now)
	}
	return s, nil
}

// newHour schedules a settlement with the first bytes of an hour. A session is charged at
// the end of an hour in which it moved bytes; on one that never pauses the next
// hour begins before the periodic task runs, so what was used before is charged here.
func (t *Service) newHour(
	ctx context.Context, tx Repos, s session.Session, before traffic.Usage, now time.Time,
) (session.Session, error) {
	if s.ChargeDue(before.Used()) > 0 {
		if err := ledger.NewBook(tx, t.ids, now).Settle(ctx, &s, before); err != nil {
			return s, err
		}
		if err := tx.Sessions().Put(ctx, s); err != nil {
			return s, err
		}
	}
	return s, tx.Traffic().SetSettleAt(ctx, s.ID, now.Truncate(time.Hour).Add(time.Hour))
}

// SettleEnded settles a session that ended while leases were out, once the last
// of them has reported.
func (t *Service) SettleEnded(ctx context.Context, tx Repos, s session.Session, u traffic.Usage, now time.Time) error {
	if s.Type != session.Dynamic || u.Leased > 0 || s.Money.Held.Total() == 0 {
		return nil
	}
	if err := ledger.NewBook(tx, t.ids, now).SettleEnded(ctx, &s, u); err != nil {
		return err
	}
	if err := tx.Traffic().SetSettleAt(ctx, s.ID, time.Time{}); err != nil {
		return err
	}
	return tx.Sessions().Put(ctx, s)
}

// Failing returns how many sessions had traffic in the last minute that could not be booked.
func (t *Service) Failing() int {
	t.failing.mu.Lock()
	defer t.failing.mu.Unlock()
	t.failing.forget(t.clock.Now())
	return len(t.failing.sessions)
}
