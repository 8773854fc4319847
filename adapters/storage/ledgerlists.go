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
	filtered := func(db *gorm.DB) *gorm.DB {
		db = db.Where("agent_id = ?", agentID)
		if f.Type != "" {
			db = db.Where("type = ?", f.Type)
		}
		if !f.From.IsZero() {
			db = db.Where("at >= ?", micros(f.From))
		}
		if !f.To.IsZero() {
			db = db.Where("at < ?", micros(f.To))
		}
		return db
	}
	every := f == (ports.LedgerFilter{})
	var err error
	if every {
		list.Total, err = r.countEntries(ctx, agentID)
	} else {
		var total int64
		err = filtered(r.orm(ctx).Model(&entryRow{})).Count(&total).Error
		list.Total = int(total)
	}
	places := filtered(r.orm(ctx).Model(&entryRow{})).Order("ord DESC").Limit(page.Size + 1)
	switch {
	case err != nil:
		return list, wrap("count entries of "+agentID, err)
	case page.After > 0:
		places = places.Where("ord < ?", page.After)
	case list.Total <= page.Offset():
		return list, nil
	case every:
		places = places.Where("ord <= ?", list.Total-page.Offset())
	default:
		places = places.Offset(page.Offset())
	}
	var numbers []int64
	if err = places.Pluck("ord", &numbers).Error; err != nil || len(numbers) == 0 {
		return list, wrap("list entries of "+agentID, err)
	}
	if len(numbers) > page.Size {
		numbers = numbers[:page.Size]
		list.Next = numbers[page.Size-1]
	}
	list.Items, err = all(filtered(r.orm(ctx)).Order("ord DESC").
		Where("ord <= ? AND ord >= ?", numbers[0], numbers[len(numbers)-1]), fromEntryRow)
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
