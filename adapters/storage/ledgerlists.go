package storage

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Entries finds a page of the whole list by number. A filter is counted and skipped through within
// the index, which grows with the entries of this agent alone.
func (r ledger) Entries(
	ctx context.Context, agentID string, f ports.LedgerFilter, page domain.Page,
) (domain.List[billing.Entry], error) {
	list := domain.List[billing.Entry]{Page: page}
	var err error
	if f.Type == "" {
		list.Total, err = r.countEntries(ctx, agentID)
		top := list.Total - page.Offset()
		if err == nil && top > 0 {
			list.Items, err = all(r.orm(ctx).Order("ord DESC").
				Where("agent_id = ? AND ord <= ? AND ord > ?", agentID, top, top-page.Size), fromEntryRow)
		}
	} else {
		ofType := func() *gorm.DB {
			return r.orm(ctx).Model(&entryRow{}).Where("agent_id = ? AND type = ?", agentID, f.Type)
		}
		var total int64
		err = ofType().Count(&total).Error
		if list.Total = int(total); err == nil && list.Total > page.Offset() {
			numbers := ofType().Select("ord").Order("ord DESC").Limit(page.Size).Offset(page.Offset())
			list.Items, err = all(r.orm(ctx).Where("agent_id = ? AND ord IN (?)", agentID, numbers).Order("ord DESC"),
				fromEntryRow)
		}
	}
	return list, wrap("list entries of "+agentID, err)
}

// countEntries reads the number of the last entry. An unknown agent has none.
func (r ledger) countEntries(ctx context.Context, agentID string) (int, error) {
	var entries []int
	err := r.orm(ctx).Model(&walletRow{}).Where("agent_id = ?", agentID).Pluck("entries", &entries).Error
	if len(entries) == 0 {
		return 0, err
	}
	return entries[0], err
}

const sumColumns = `SUM(h.up), SUM(h.down), SUM(h.connections), SUM(h.charged), SUM(h.refunded), SUM(h.recharged)`

func sums(t *ports.Totals) []any {
	return []any{&t.Up, &t.Down, &t.Connections, &t.Charged, &t.Refunded, &t.Recharged}
}

func (r ledger) Hours(ctx context.Context, agentID string, from, to time.Time) ([]ports.Hour, error) {
	var hours []ports.Hour
	err := r.rows(ctx, `SELECT h.hour, `+sumColumns+` FROM usage_hours h
		WHERE h.agent_id = ?1 AND h.hour >= ?2 AND h.hour < ?3 GROUP BY h.hour ORDER BY h.hour`,
		[]any{agentID, micros(from), micros(to)}, func(rows engine.Row) error {
			var h ports.Hour
			var start int64
			err := rows.Scan(append([]any{&start}, sums(&h.Totals)...)...)
			h.Start = fromMicros(start)
			hours = append(hours, h)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("sum hours of %s: %w", agentID, err)
	}
	return hours, nil
}

func (r ledger) SessionTotals(ctx context.Context, agentID string, from, to time.Time) ([]ports.SessionTotal, error) {
	var totals []ports.SessionTotal
	err := r.rows(ctx, `SELECT s.id, s.type, s.product_no, `+sumColumns+`
		FROM usage_hours h JOIN sessions s ON s.id = h.session_id
		WHERE h.agent_id = ?1 AND h.hour >= ?2 AND h.hour < ?3
		GROUP BY s.ord, s.id, s.type, s.product_no ORDER BY s.ord DESC`,
		[]any{agentID, micros(from), micros(to)}, func(rows engine.Row) error {
			var t ports.SessionTotal
			var kind string
			err := rows.Scan(append([]any{&t.SessionID, &kind, &t.ProductNo}, sums(&t.Totals)...)...)
			t.Type = session.Type(kind)
			totals = append(totals, t)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("sum sessions of %s: %w", agentID, err)
	}
	return totals, nil
}
