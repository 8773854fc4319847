package maintenance

import (
	"context"
	"slices"
	"time"

	"agentproxy/domain/procurement"
)

// Archive keeps in less space the workers of sessions that ended ArchiveDays ago. A call looks at
// batchSize sessions with workers, and the next one at those behind them.
func (p *Tasks) Archive(ctx context.Context) error {
	if p.cfg.ArchiveDays == 0 || !p.archiving.TryLock() {
		return nil // or an earlier run has not ended
	}
	defer p.archiving.Unlock()
	return p.due(ctx, "archive session",
		func(ctx context.Context, tx repos, now time.Time, _ int) (ids []string, err error) {
			ids, p.archivedUpTo, err = tx.Workers().ArchiveDue(ctx, now, p.endedBy(now), p.archivedUpTo, batchSize)
			return ids, err
		}, p.archive, func(string) {}, nil)
}

// endedBy returns the last end of a session that is archived.
func (p *Tasks) endedBy(now time.Time) time.Time { return now.AddDate(0, 0, -p.cfg.ArchiveDays) }

// archive archives a session for which nothing comes any more: without a lease no traffic of a worker
// is booked, and no agent reports on a session that ended.
func (p *Tasks) archive(ctx context.Context, tx repos, id string, now time.Time) error {
	metered, err := tx.Traffic().Metered(ctx, []string{id})
	if err != nil || metered[id] == nil {
		return err
	}
	m := metered[id]
	s := m.Session
	if !s.Status.Over() || s.EndedAt.IsZero() || s.EndedAt.After(p.endedBy(now)) || s.Money.Held.Total() != 0 ||
		m.Usage.Leased != 0 || len(m.Leases) > 0 {
		return nil
	}
	if at, err := tx.Traffic().SettleAt(ctx, id); err != nil || !at.IsZero() {
		return err
	}
	orders, err := tx.Orders().Of(ctx, id)
	if err != nil || slices.ContainsFunc(orders, procurement.Order.Undelivered) {
		return err
	}
	return tx.Workers().Archive(ctx, id, now)
}
