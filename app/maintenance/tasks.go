// Package maintenance holds the periodic tasks of the service.
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
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// batchSize is how many items one run of a task takes on; what is left waits for the
// next run.
const batchSize = 500

// Config holds what the operator decides.
type Config struct {
	ClientDays  int // for which the client addresses of a session are kept after their last connection
	ArchiveDays int // after which the workers of a session that ended are archived; 0: never
}

// Tasks is the periodic tasks of the service. Each may run at any
// time and on several replicas: every item is decided anew in a transaction of
// its own.
type Tasks struct {
	cfg         Config
	store       ports.Unit[repos]
	clock       ports.Clock
	ids         ports.IDs
	transitions *sessions.Transitions
	traffic     *trafficapp.Service
	hub         *changes.Hub
	limits      *ratelimit.Limits

	failed  failures
	purging sync.Mutex

	archiving    sync.Mutex
	archivedUpTo int64 // how far Archive has looked; 0: at nothing yet
}

// New returns the tasks.
func New(cfg Config, store ports.Store, clock ports.Clock, ids ports.IDs, transitions *sessions.Transitions,
	traffic *trafficapp.Service, hub *changes.Hub, limits *ratelimit.Limits) *Tasks {
	return &Tasks{cfg: cfg, store: narrow(store), clock: clock, ids: ids, transitions: transitions,
		traffic: traffic, hub: hub,
		limits: limits}
}

// renewWithin is how long gateways have to renew their leases after an outage of the database, before what
// they did not renew is taken back: they try each second, and a connection is replaced within two.
const renewWithin = 5 * time.Second

// Reclaim takes back leases that a gateway has not renewed in time: it stopped
// relaying long before, by its own clock. What it did not report is not charged. After an outage of the database
// no lease was renewed in time, and none is taken back yet: the gateways report first.
func (p *Tasks) Reclaim(ctx context.Context) error {
	if !p.hub.Steady(renewWithin) {
		return nil
	}
	var stale []traffic.Lease
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		stale, err = tx.Traffic().Stale(ctx, traffic.ReclaimAfter, batchSize)
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

// keepOutbox is how long an event is kept: a little longer than cursors of a feed are good, since a unit may commit it
// later than it happened.
const keepOutbox = webhook.Keep + time.Hour

// Purge removes what is past its retention: idempotency keys, changes, rate limits
// that are free again, and the events of sessions and of webhooks.
func (p *Tasks) Purge(ctx context.Context) error {
	if !p.purging.TryLock() {
		return nil // an earlier run has not ended
	}
	defer p.purging.Unlock()
	now := p.clock.Now()
	err := p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Idempotency().Purge(ctx, now.Add(-idempotency.Retention), batchSize)
	})
	if err != nil {
		return fmt.Errorf("purge idempotency keys: %w", err)
	}
	err = p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Outbox().Purge(ctx, now.Add(-keepOutbox), batchSize)
	})
	if err != nil {
		return fmt.Errorf("purge webhook events: %w", err)
	}
	err = p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Outbox().PurgeRefused(ctx, now.Add(-webhook.KeepRefused), batchSize)
	})
	if err != nil {
		return fmt.Errorf("purge refused deliveries: %w", err)
	}
	err = p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Peers().Purge(ctx, now.AddDate(0, 0, -p.cfg.ClientDays), now.Add(-traffic.KeepHosts-session.Day), batchSize)
	})
	if err != nil {
		return fmt.Errorf("purge clients and hosts: %w", err)
	}
	if err := p.hub.Purge(ctx); err != nil {
		return fmt.Errorf("purge changes: %w", err)
	}
	if err := p.limits.Purge(ctx); err != nil {
		return err
	}
	err = p.purge(ctx, func(ctx context.Context, tx repos) (int, error) {
		return tx.Events().Trim(ctx, now.Add(-eventlog.Retention), batchSize)
	})
	if err != nil {
		return fmt.Errorf("trim events: %w", err)
	}
	return nil
}

// purge calls batch, which removes up to batchSize rows, until fewer are left. Each
// batch is a transaction of its own, so that others do not wait for long.
func (p *Tasks) purge(ctx context.Context, batch func(context.Context, repos) (int, error)) error {
	for {
		var n int
		err := p.store.Update(ctx, func(ctx context.Context, tx repos) (err error) {
			n, err = batch(ctx, tx)
			return err
		})
		if err != nil || n < batchSize {
			return err
		}
	}
}
