package storage

import (
	"context"
	"fmt"
	"math"
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
// before and then, less what was refunded. The times are starts of months.
const statementSums = `SELECT x.type, CAST(SUM(CASE WHEN x.at < ?2 THEN x.moved ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN x.at >= ?2 THEN x.moved ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN x.at < ?2 THEN x.revenue ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN x.at >= ?2 THEN x.revenue ELSE 0 END) AS BIGINT)
	FROM (SELECT type, month AS at, moved, revenue FROM ledger_months WHERE agent_id = ?1 AND month < ?3
	UNION ALL SELECT e.type, e.at, e.trial + e.own, CASE WHEN e.account = 'revenue' THEN e.counter ELSE 0 END
	FROM ledger_entries e WHERE ` + notSummed + ` AND e.at < ?3) x GROUP BY x.type`

// notSummed are the entries of ?1 that are in no sums of months yet.
const notSummed = "e.agent_id = ?1 AND e.ord > COALESCE((SELECT entries FROM ledger_counted WHERE agent_id = ?1), 0)"

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

// The sessions of the statement of ?1 from ?2, the start of a month, until before ?3: those of the sums, and those of
// entries that are not summed yet.
const (
	statementNew = ` FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE ` + notSummed + ` AND e.at >= ?2 AND e.at < ?3`

	statementCount = `SELECT (SELECT COUNT(*) FROM ledger_month_sessions WHERE agent_id = ?1 AND month = ?2) +
		(SELECT COUNT(DISTINCT s.ord)` + statementNew + ` AND NOT EXISTS (SELECT 1 FROM ledger_month_sessions m
			WHERE m.agent_id = ?1 AND m.month = ?2 AND m.ord = s.ord))`

	// statementPlaces are the numbers of sessions before ?4, of which the first ?5 are enough.
	statementPlaces = `SELECT x.ord FROM (SELECT k.ord FROM (SELECT ord FROM ledger_month_sessions
		WHERE agent_id = ?1 AND month = ?2 AND ord < ?4 ORDER BY ord DESC LIMIT ?5) k
		UNION SELECT s.ord` + statementNew + ` AND s.ord < ?4) x ORDER BY x.ord DESC LIMIT ?6 OFFSET ?7`

	// statementItems are the sums of those from ?4 to ?5.
	statementItems = `SELECT s.id, s.type, s.product_no, x.held, x.charged, x.released, x.refunded, x.moved
		FROM (SELECT y.ord, CAST(SUM(y.held) AS BIGINT) AS held, CAST(SUM(y.charged) AS BIGINT) AS charged,
			CAST(SUM(y.released) AS BIGINT) AS released, CAST(SUM(y.refunded) AS BIGINT) AS refunded,
			CAST(SUM(y.moved) AS BIGINT) AS moved
		FROM (SELECT ord, held, charged, released, refunded, moved FROM ledger_month_sessions
			WHERE agent_id = ?1 AND month = ?2 AND ord >= ?4 AND ord <= ?5
		UNION ALL SELECT s.ord, ` + byMonthHeld + ", " + byMonthCharged + ", " + byMonthReleased + ", " +
		byMonthRefunded + ", " + byMonthMoved + statementNew + ` AND s.ord >= ?4 AND s.ord <= ?5 GROUP BY s.ord) y
		GROUP BY y.ord) x JOIN sessions s ON s.agent_id = ?1 AND s.ord = x.ord ORDER BY x.ord DESC`
)

func (r ledger) StatementItems(
	ctx context.Context, agentID string, from, to time.Time, page domain.Page,
) (list domain.List[ports.StatementItem], err error) {
	list.Page = page
	if err := r.Row(statementCount, agentID, column.Micros(from), column.Micros(to)).Scan(&list.Total); err != nil {
		return list, fmt.Errorf("count sessions of a statement of %s: %w", agentID, r.Failed(err))
	}
	before, offset := int64(math.MaxInt64), page.Offset()
	if page.After > 0 {
		before, offset = page.After, 0
	}
	var places []int64
	args := []any{agentID, column.Micros(from), column.Micros(to), before, offset + page.Size + 1, page.Size + 1, offset}
	err = r.Rows(ctx, statementPlaces, args, func(row engine.Row) error {
		var ord int64
		err := row.Scan(&ord)
		places = append(places, ord)
		return err
	})
	if err != nil || len(places) == 0 {
		return list, work.Wrap("list sessions of a statement of "+agentID, err)
	}
	if len(places) > page.Size {
		places = places[:page.Size]
		list.Next = places[page.Size-1]
	}
	args = append(args[:3:3], places[len(places)-1], places[0])
	err = r.Rows(ctx, statementItems, args, func(row engine.Row) error {
		var i ports.StatementItem
		var kind string
		err := row.Scan(&i.SessionID, &kind, &i.ProductNo, &i.Held, &i.Charged, &i.Released, &i.Refunded, &i.Amount)
		i.Type = session.Type(kind)
		list.Items = append(list.Items, i)
		return err
	})
	return list, work.Wrap("list sessions of a statement of "+agentID, err)
}
