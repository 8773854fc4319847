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
	"agentproxy/app/metering"
	"agentproxy/app/sessions"
	"agentproxy/app/throttle"
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
	traffic     *metering.Service
	hub         *changes.Hub
	limits      *throttle.Limits

	failed  failures
	purging sync.Mutex

	archiving    sync.Mutex
	archivedUpTo int64 // how far Archive has looked; 0: at nothing yet
}

// New returns the tasks.
func New(cfg Config, base ports.Base, transitions *sessions.Transitions, traffic *metering.Service,
	hub *changes.Hub, limits *throttle.Limits) *Tasks {
	return &Tasks{cfg: cfg, store: narrow(base.Store), clock: base.Clock, ids: base.IDs, transitions: transitions,
		traffic: traffic, hub: hub, limits: limits}
}

// renewWithin is how long gateways have to renew their leases after an outage of the database, before what
// they did not renew is taken back: they try each second, and a connection is replaced within two.
const renewWithin = 5 * time.Second

// Reclaim takes back leases that a gateway has not renewed in time: it stopped
// relaying long before, by its own clock. What it reported is charged, and no more. After an outage of the database
// no lease was renewed in time, and none is taken back yet: the gateways report first.
func (p *Tasks) Reclaim(ctx context.Context) error {
	if !p.hub.Steady(renewWithin) {
		return nil
	}
	var stale []traffic.Lease
	var reports []traffic.Report
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		stale, err = tx.Traffic().Stale(ctx, traffic.ReclaimAfter, batchSize)
		if err != nil || len(stale) == 0 {
			return err
		}
		reports, err = tx.Traffic().Reports(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("reclaim leases: %w", err)
	}
	last := make(map[string]traffic.Report, len(reports))
	for _, r := range reports {
		last[r.Lease] = r
	}
	var faults []error
	for _, l := range stale {
		var ended []string
		err := p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			ended, err = p.reclaim(ctx, tx, l, last[l.ID])
			return err
		})
		if err != nil {
			faults = append(faults, fmt.Errorf("reclaim a lease of %s: %w", l.SessionID, err))
			continue
		}
		for _, id := range ended {
			p.hub.SessionChanged(id)
		}
	}
	if len(stale) > 0 {
		faults = append(faults, p.dropReports(ctx))
	}
	return errors.Join(faults...)
}

// dropReports removes what replicas reported that have no lease any more.
func (p *Tasks) dropReports(ctx context.Context) error {
	err := p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Traffic().DropReports(ctx)
	})
	if err != nil {
		return fmt.Errorf("drop the reports of leases: %w", err)
	}
	return nil
}

// reclaim takes back a lease that is stale still, with what was reported last, and returns the sessions that ended by
// it.
func (p *Tasks) reclaim(
	ctx context.Context, tx repos, stale traffic.Lease, last traffic.Report,
) (ended []string, err error) {
	s, err := tx.Sessions().Load(ctx, stale.SessionID)
	if err != nil {
		return nil, err
	}
	l, known, err := tx.Traffic().Lease(ctx, s.ID, stale.ID)
	if err != nil || !known || l.Idle < traffic.ReclaimAfter {
		return nil, err
	}
	if last.Lease != "" {
		if ended, err = p.traffic.BookIn(ctx, tx, last); err != nil {
			return nil, err
		}
		if s, err = tx.Sessions().Load(ctx, s.ID); err != nil {
			return nil, err
		}
		if l, _, err = tx.Traffic().Lease(ctx, s.ID, l.ID); err != nil {
			return nil, err
		}
	}
	u, err := tx.Traffic().Usage(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	if err := tx.Traffic().PutUsage(ctx, s.ID, traffic.Delta{Leased: -l.Unused(), At: u.UpdatedAt}); err != nil {
		return nil, err
	}
	if err := tx.Traffic().DropLease(ctx, s.ID, l.ID); err != nil || !s.Status.Over() {
		return ended, err
	}
	u.Leased -= l.Unused()
	return ended, p.traffic.SettleEnded(ctx, tx, s, u, p.clock.Now())
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
	if err := p.dropReports(ctx); err != nil {
		return err
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
		err := p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			n, err = batch(ctx, tx)
			return err
		})
		if err != nil || n < batchSize {
			return err
		}
	}
}
