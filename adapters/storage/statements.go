package storage

import (
	"context"
	"fmt"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// statementSums sums what moved the balance of ?1 before ?2, and from then until before ?3, and what was charged
// before and then, less what was refunded.
const statementSums = `SELECT type, CAST(SUM(CASE WHEN at < ?2 THEN trial + own ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN at >= ?2 THEN trial + own ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN at < ?2 AND account = 'revenue' THEN counter ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN at >= ?2 AND account = 'revenue' THEN counter ELSE 0 END) AS BIGINT)
	FROM ledger_entries WHERE agent_id = ?1 AND at < ?3 GROUP BY type`

func (r ledger) Statement(
	ctx context.Context, agentID string, from, to time.Time,
) (s ports.StatementSums, err error) {
	s.ByType = map[billing.Type]domain.Money{}
	var booked domain.Money // before the time
	err = r.Rows(ctx, statementSums, []any{agentID, column.Micros(from), column.Micros(to)}, func(row engine.Row) error {
		var kind string
		var before, within, earlier, spent domain.Money
		err := row.Scan(&kind, &before, &within, &earlier, &spent)
		s.Opening, s.Spent, booked = s.Opening+before, s.Spent+spent, booked+earlier
		s.ByType[billing.Type(kind)] = within
		return err
	})
	if err != nil {
		return s, work.Wrap("sum entries of "+agentID, err)
	}
	// What the hours before a time have more than the entries before it was booked after it.
	usedSums := `SELECT CAST(COALESCE(SUM(CASE WHEN h.hour < ?4 THEN h.charged - h.refunded ELSE 0 END), 0) AS BIGINT),
		CAST(COALESCE(SUM(h.charged - h.refunded), 0) AS BIGINT) FROM ` + r.store.hoursOf()
	var before, until domain.Money
	err = r.Row(usedSums, agentID, int64(0), column.Micros(to), column.Micros(from)).Scan(&before, &until)
	s.OfBefore, s.Later = before-booked, until-booked-s.Spent
	return s, work.Wrap("sum the hours of "+agentID, err)
}

const (
	statementFrom = ` FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE e.agent_id = ?1 AND e.at >= ?2 AND e.at < ?3`

	statementCount = `SELECT COUNT(DISTINCT s.ord)` + statementFrom

	statementItems = `SELECT s.ord, s.id, s.type, s.product_no,
		CAST(SUM(CASE WHEN e.type = 'hold' THEN -(e.trial + e.own) ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'release' THEN e.trial + e.own ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'refund' THEN e.trial + e.own ELSE 0 END) AS BIGINT),
		CAST(SUM(e.trial + e.own) AS BIGINT)` + statementFrom + ` AND (?4 = 0 OR s.ord < ?4)
		GROUP BY s.ord, s.id, s.type, s.product_no ORDER BY s.ord DESC LIMIT ?5 OFFSET ?6`
)

func (r ledger) StatementItems(
	ctx context.Context, agentID string, from, to time.Time, page domain.Page,
) (list domain.List[ports.StatementItem], err error) {
	list.Page = page
	if err := r.Row(statementCount, agentID, column.Micros(from), column.Micros(to)).Scan(&list.Total); err != nil {
		return list, fmt.Errorf("count sessions of a statement of %s: %w", agentID, r.Failed(err))
	}
	var last int64
	args := []any{agentID, column.Micros(from), column.Micros(to), page.After, page.Size + 1, int64(page.Offset())}
	err = r.Rows(ctx, statementItems, args, func(row engine.Row) error {
		var i ports.StatementItem
		var kind string
		var ord int64
		err := row.Scan(&ord, &i.SessionID, &kind, &i.ProductNo, &i.Held, &i.Charged, &i.Released, &i.Refunded, &i.Amount)
		if len(list.Items) == page.Size {
			list.Next = last
			return err
		}
		i.Type, last = session.Type(kind), ord
		list.Items = append(list.Items, i)
		return err
	})
	return list, work.Wrap("list sessions of a statement of "+agentID, err)
}
