// Package maintenance holds the periodic tasks and timed jobs of the service.
package maintenance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"agentproxy/app/changes"
	"agentproxy/app/idempotency"
	"agentproxy/app/ratelimit"
	"agentproxy/app/sessions"
	trafficapp "agentproxy/app/traffic"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// passSize is how many items one run of a task takes on; what is left waits for the
// next run.
const passSize = 500

// Tasks is the periodic tasks and timed jobs of the service. Each may run at any
// time and on several replicas: every item is decided anew in a transaction of
// its own.
type Tasks struct {
	store   ports.Unit[repos]
	clock   ports.Clock
	ids     ports.IDs
	life    *sessions.Transitions
	traffic *trafficapp.Service
	hub     *changes.Hub
	limits  *ratelimit.Limits

	purging sync.Mutex
	trimmed string // the last session whose feed was trimmed
}

// New returns the tasks.
func New(store ports.Store, clock ports.Clock, ids ports.IDs, life *sessions.Transitions, traffic *trafficapp.Service, hub *changes.Hub,
	limits *ratelimit.Limits) *Tasks {
	return &Tasks{store: narrow(store), clock: clock, ids: ids, life: life, traffic: traffic, hub: hub, limits: limits}
}

// due lists ids and treats each in a transaction of its own. An error of one does
// not delay the others.
func (p *Tasks) due(ctx context.Context, what string,
	list func(context.Context, repos, time.Time) ([]string, error),
	treat func(context.Context, repos, string, time.Time) error, done func(id string)) error {
	var ids []string
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
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
		done(id)
	}
	return errors.Join(faults...)
}

// one treats one item in a transaction of its own.
func (p *Tasks) one(
	ctx context.Context, what, id string, treat func(context.Context, repos, string, time.Time) error,
) error {
	err := p.store.Update(ctx, func(ctx context.Context, tx repos) error {
		return treat(ctx, tx, id, p.clock.Now())
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, id, err)
	}
	return nil
}

// Sweep does what the jobs of sessions and trials do, for those whose job was
// lost or has failed every time. The job owns the schedule and is on time; the sweep
// reads the due columns each minute and is what makes a settlement or an expiry
// certain. Both take the same function, which decides by what is stored.
func (p *Tasks) Sweep(ctx context.Context) error {
	return errors.Join(p.ExpireSessions(ctx), p.Settle(ctx), p.ExpireTrials(ctx))
}

// ExpireSessions ends static sessions whose time is up.
func (p *Tasks) ExpireSessions(ctx context.Context) error {
	return p.due(ctx, "expire session",
		func(ctx context.Context, tx repos, now time.Time) ([]string, error) {
			return tx.Sessions().TimeDue(ctx, now, passSize)
		}, p.expireSession, p.hub.SessionChanged)
}

// ExpireTrials writes off trial credit at its date.
func (p *Tasks) ExpireTrials(ctx context.Context) error {
	return p.due(ctx, "expire trial",
		func(ctx context.Context, tx repos, now time.Time) ([]string, error) {
			return tx.Ledger().TrialsDue(ctx, now, passSize)
		}, p.expireTrial, func(string) {})
}

// Settle charges what dynamic sessions used by the hour, and gives back the rest of
// those that ended while a lease was outstanding.
func (p *Tasks) Settle(ctx context.Context) error {
	return p.due(ctx, "settle",
		func(ctx context.Context, tx repos, now time.Time) ([]string, error) {
			return tx.Sessions().SettleDue(ctx, now, passSize)
		}, p.settleSession, func(string) {})
}

// Reclaim takes back leases that a gateway has not renewed in time: it stopped
// relaying long before, by its own clock. What it did not report is not charged.
func (p *Tasks) Reclaim(ctx context.Context) error {
	var stale []traffic.Lease
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		stale, err = tx.Traffic().Stale(ctx, traffic.ReclaimAfter, passSize)
		return err
	})
	if err != nil {
		return fmt.Errorf("reclaim leases: %w", err)
	}
	var faults []error
	for _, l := range stale {
		err := p.store.Update(ctx, func(ctx context.Context, tx repos) error {
			return p.reclaim(ctx, tx, l.SessionID, l.ID, p.clock.Now())
		})
		if err != nil {
			faults = append(faults, fmt.Errorf("reclaim a lease of %s: %w", l.SessionID, err))
		}
	}
	return errors.Join(faults...)
}

func (p *Tasks) reclaim(ctx context.Context, tx repos, sessionID, id string, now time.Time) error {
	s, err := tx.Sessions().Load(ctx, sessionID)
	if err != nil {
		return err
	}
	l, known, err := tx.Traffic().Lease(ctx, sessionID, id)
	if err != nil || !known || l.Idle < traffic.ReclaimAfter {
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
	return p.traffic.SettleEnded(ctx, tx, s, u, now)
}

// keepOutbox is how long an event for webhooks is kept: the last retry of a
// delivery is over in three days, and an operator may look back a month.
const keepOutbox = 30 * 24 * time.Hour

// Purge removes what is past its retention: idempotency keys, changes, rate limits
// that are free again, and the events of feeds and of webhooks.
func (p *Tasks) Purge(ctx context.Context) error {
	if !p.purging.TryLock() {
		return nil // an earlier run has not ended
	}
	defer p.purging.Unlock()
	now := p.clock.Now()
	err := p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Idempotency().Purge(ctx, now.Add(-idempotency.Retention), passSize)
	})
	if err != nil {
		return fmt.Errorf("purge idempotency keys: %w", err)
	}
	err = p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
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
	err = p.store.Update(ctx, func(ctx context.Context, tx repos) (err error) {
		last, err = tx.Events().Trim(ctx, now.Add(-eventlog.Retention), p.trimmed, passSize)
		return err
	})
	if err != nil {
		return fmt.Errorf("trim events: %w", err)
	}
	p.trimmed = last
	return nil
}

// purge calls batch, which removes up to passSize rows, until fewer are left. Each
// batch is a transaction of its own, so that others do not wait for long.
func (p *Tasks) purge(ctx context.Context, batch func(context.Context, repos) (int, error)) error {
	for {
		var n int
		err := p.store.Update(ctx, func(ctx context.Context, tx repos) (err error) {
			n, err = batch(ctx, tx)
			return err
		})
		if err != nil || n < passSize {
			return err
		}
	}
}
