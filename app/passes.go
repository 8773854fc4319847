package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// passSize is how much one run of a pass takes on; what is left waits for the
// next run.
const passSize = 500

// Passes is what nobody asks for: endings that are due, and tidying up. Each
// can be called once, and again, and on several replicas: every item is decided
// anew in a unit of its own.
type Passes struct {
	store    ports.Store
	clock    ports.Clock
	ids      ports.IDs
	sessions *Sessions
	traffic  *Traffic
	hub      *Hub
	limits   *Limits

	tidying sync.Mutex
	trimmed string // where the trimming of feeds got to
}

// NewPasses wires the passes.
func NewPasses(store ports.Store, clock ports.Clock, ids ports.IDs, sessions *Sessions, traffic *Traffic, hub *Hub,
	limits *Limits) *Passes {
	return &Passes{store: store, clock: clock, ids: ids, sessions: sessions, traffic: traffic, hub: hub, limits: limits}
}

// due lists ids in a view and treats each in a unit of its own. One that fails
// does not keep the others waiting.
func (p *Passes) due(ctx context.Context, what string,
	list func(context.Context, ports.Tx, time.Time) ([]string, error),
	treat func(context.Context, ports.Tx, string, time.Time) error, told func(id string)) error {
	var ids []string
	err := p.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		ids, err = list(ctx, tx, p.clock.Now())
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var faults []error
	for _, id := range ids {
		if err := p.one(ctx, what, id, treat); err != nil {
			faults = append(faults, err)
			continue
		}
		told(id)
	}
	return errors.Join(faults...)
}

// one treats one item in a unit of its own.
func (p *Passes) one(ctx context.Context, what, id string, treat func(context.Context, ports.Tx, string, time.Time) error) error {
	err := p.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
		return treat(ctx, tx, id, p.clock.Now())
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, id, err)
	}
	return nil
}

// Sweep does what the jobs of sessions and trials do, for those whose job was
// lost or has failed every time.
func (p *Passes) Sweep(ctx context.Context) error {
	return errors.Join(p.ExpireSessions(ctx), p.Settle(ctx), p.ExpireTrials(ctx))
}

// ExpireSessions ends static sessions whose time is up.
func (p *Passes) ExpireSessions(ctx context.Context) error {
	return p.due(ctx, "expire session",
		func(ctx context.Context, tx ports.Tx, now time.Time) ([]string, error) {
			return tx.Sessions().TimeDue(ctx, now, passSize)
		}, p.expireSession, p.hub.SessionChanged)
}

// ExpireTrials writes off trial credit at its date.
func (p *Passes) ExpireTrials(ctx context.Context) error {
	return p.due(ctx, "expire trial",
		func(ctx context.Context, tx ports.Tx, now time.Time) ([]string, error) {
			return tx.Ledger().TrialsDue(ctx, now, passSize)
		}, p.expireTrial, func(string) {})
}

// Settle charges what dynamic sessions used by the hour, and gives back the
// rest of those that ended while a lease was out.
func (p *Passes) Settle(ctx context.Context) error {
	return p.due(ctx, "settle",
		func(ctx context.Context, tx ports.Tx, now time.Time) ([]string, error) {
			return tx.Sessions().SettleDue(ctx, now, passSize)
		}, p.settleSession, func(string) {})
}

// TakeBack takes leases back that a gateway has not renewed in time: it stopped
// relaying long before, by its own clock. What it did not report is not charged.
func (p *Passes) TakeBack(ctx context.Context) error {
	var stale []traffic.Lease
	err := p.store.View(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		stale, err = tx.Traffic().Stale(ctx, p.clock.Now().Add(-traffic.ReclaimAfter), passSize)
		return err
	})
	if err != nil {
		return fmt.Errorf("take back leases: %w", err)
	}
	var faults []error
	for _, l := range stale {
		err := p.store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			return p.takeBack(ctx, tx, l.SessionID, l.ID, p.clock.Now())
		})
		if err != nil {
			faults = append(faults, fmt.Errorf("take back a lease of %s: %w", l.SessionID, err))
		}
	}
	return errors.Join(faults...)
}

func (p *Passes) takeBack(ctx context.Context, tx ports.Tx, sessionID, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, sessionID)
	if err != nil {
		return err
	}
	l, known, err := tx.Traffic().Lease(ctx, sessionID, id)
	if err != nil || !known || now.Sub(l.RenewedAt) < traffic.ReclaimAfter {
		return err
	}
	u, err := tx.Traffic().Usage(ctx, sessionID)
	if err != nil {
		return err
	}
	if err := tx.Traffic().PutUsage(ctx, sessionID, traffic.Delta{Leased: -l.Unused(), At: u.UpdatedAt}); err != nil {
		return err
	}
	if err := tx.Traffic().DropLease(ctx, sessionID, id); err != nil || !s.Status.Over() {
		return err
	}
	u.Leased -= l.Unused()
	return p.traffic.settleEnded(ctx, tx, s, u, now)
}

// keepOutbox is how long an event for webhooks is kept: the last retry of a
// delivery is over in three days, and an operator may look back a month.
const keepOutbox = 30 * 24 * time.Hour

// Tidy forgets what nobody may ask for any more: old idempotency keys, changes
// that everybody heard of, limits that are free again, and events past their
// time, the feed's and the webhooks'.
func (p *Passes) Tidy(ctx context.Context) error {
	if !p.tidying.TryLock() {
		return nil // an earlier one is still at it
	}
	defer p.tidying.Unlock()
	now := p.clock.Now()
	err := p.purge(ctx, func(ctx context.Context, tx ports.Tx) (int, error) {
		return tx.Idempotency().Purge(ctx, now.Add(-keepCalls), passSize)
	})
	if err != nil {
		return fmt.Errorf("purge idempotency keys: %w", err)
	}
	err = p.purge(ctx, func(ctx context.Context, tx ports.Tx) (int, error) {
		return tx.Outbox().Purge(ctx, now.Add(-keepOutbox), passSize)
	})
	if err != nil {
		return fmt.Errorf("purge webhook events: %w", err)
	}
	if err := p.hub.Purge(ctx); err != nil {
		return fmt.Errorf("purge changes: %w", err)
	}
	if err := p.limits.Purge(ctx); err != nil {
		return err
	}
	var last string
	err = p.store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
		last, err = tx.Events().Trim(ctx, now.Add(-keepEvents), p.trimmed, passSize)
		return err
	})
	if err != nil {
		return fmt.Errorf("trim events: %w", err)
	}
	p.trimmed = last
	return nil
}

// purge removes all that some may name, passSize in a unit, so that others need
// not wait for long.
func (p *Passes) purge(ctx context.Context, some func(context.Context, ports.Tx) (int, error)) error {
	for {
		var n int
		err := p.store.Update(ctx, func(ctx context.Context, tx ports.Tx) (err error) {
			n, err = some(ctx, tx)
			return err
		})
		if err != nil || n < passSize {
			return err
		}
	}
}
