package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

const entryColumns = `id, agent_id, type, trial, own, held_trial, held_own, account, counter, ref, session_id,
	order_id, description, at, balance_after`

// Entries finds the page of the whole list by number. A filter is counted and
// walked within the index, which grows with this agent's entries only.
func (r ledger) Entries(
	ctx context.Context, agentID string, f ports.LedgerFilter, page domain.Page,
) (domain.List[billing.Entry], error) {
	list := domain.List[billing.Entry]{Page: page}
	var err error
	if f.Type == "" {
		list.Total, err = r.countEntries(agentID)
		top := list.Total - page.Offset()
		if err == nil && top > 0 {
			list.Items, err = r.entries(ctx, page, `SELECT `+entryColumns+` FROM ledger_entries
				WHERE agent_id = ?1 AND ord <= ?2 AND ord > ?3 ORDER BY ord DESC`, agentID, top, top-page.Size)
		}
	} else {
		err = r.row(`SELECT COUNT(*) FROM ledger_entries WHERE agent_id = ?1 AND type = ?2`, agentID,
			string(f.Type)).Scan(&list.Total)
		if err == nil && list.Total > page.Offset() {
			list.Items, err = r.entries(ctx, page, `SELECT `+entryColumns+` FROM ledger_entries
				WHERE agent_id = ?1 AND ord IN (SELECT ord FROM ledger_entries WHERE agent_id = ?1 AND type = ?2
				ORDER BY ord DESC LIMIT ?3 OFFSET ?4) ORDER BY ord DESC`,
				agentID, string(f.Type), page.Size, page.Offset())
		}
	}
	if err != nil {
		return list, fmt.Errorf("list entries of %s: %w", agentID, err)
	}
	return list, nil
}

func (r ledger) countEntries(agentID string) (n int, err error) {
	err = r.row(`SELECT entries FROM wallets WHERE agent_id = ?1`, agentID).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

func (r ledger) entries(ctx context.Context, page domain.Page, query string, args ...any) ([]billing.Entry, error) {
	items := make([]billing.Entry, 0, page.Size)
	err := r.rows(ctx, query, args, func(rows engine.Row) error {
		var e billing.Entry
		var at int64
		err := rows.Scan(&e.ID, &e.AgentID, &e.Type, &e.Available.Trial, &e.Available.Own, &e.Held.Trial,
			&e.Held.Own, &e.Account, &e.Counter, &e.Ref, &e.SessionID, &e.OrderID, &e.Description, &at,
			&e.BalanceAfter)
		e.At = fromMicros(at)
		items = append(items, e)
		return err
	})
	return items, err
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
