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
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// What follows is of the sessions that one key of an agent bought, which the index sessions_buyer finds.

const (
	entriesByKey = `SELECT COALESCE(s.bought_by, ''), COUNT(*), CAST(SUM(e.trial + e.own) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END) AS BIGINT)
		FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.agent_id = ?1 AND (?2 = '' OR e.type = ?2) AND e.at >= ?3 AND e.at < ?4 AND (?5 = '' OR s.bought_by = ?5)
		GROUP BY 1 ORDER BY 1`

	keyHours = `SELECT h.hour, ` + sumColumns + ` FROM sessions s%s CROSS JOIN usage_hours h
		WHERE s.agent_id = ?1 AND s.bought_by = ?4 AND h.agent_id = ?1 AND h.session_id = s.id
		AND h.hour >= ?2 AND h.hour < ?3 GROUP BY h.hour ORDER BY h.hour`

	keyCount = `SELECT COUNT(*), COALESCE(SUM(CASE WHEN s.status = 'creating' THEN 1 ELSE 0 END), 0),
		COALESCE(SUM(CASE WHEN s.status = 'active' THEN 1 ELSE 0 END), 0),
		CAST(COALESCE(SUM(s.up + s.down), 0) AS BIGINT), CAST(COALESCE(SUM(s.rotations + s.worker_rotations), 0) AS BIGINT)
		FROM sessions s WHERE s.agent_id = ?1 AND s.bought_by = ?2`

	keyUnbooked = "SELECT " + dueColumns + " FROM sessions s WHERE s.agent_id = ?1 AND s.bought_by = ?2 AND " + holdsMoney

	// statementByKey sums the months that are summed by session, and what is in none yet, as of ?2 or of before.
	statementByKey = `SELECT x.bought_by, CAST(SUM(CASE WHEN x.at < ?2 THEN x.moved ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN x.charged - x.refunded ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.held END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.charged END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.released END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.refunded END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.moved END) AS BIGINT)
		FROM (SELECT s.bought_by, m.month AS at, m.held, m.charged, m.released, m.refunded, m.moved
			FROM ledger_month_sessions m JOIN sessions s ON s.agent_id = m.agent_id AND s.ord = m.ord
			WHERE m.agent_id = ?1 AND m.month < ?3 AND (?4 = '' OR s.bought_by = ?4)
		UNION ALL SELECT s.bought_by, CASE WHEN e.at < ?2 THEN 0 ELSE ?2 END, ` + byMonthHeld + ", " + byMonthCharged + ", " +
		byMonthReleased + ", " + byMonthRefunded + ", " + byMonthMoved + `
			FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
			WHERE ` + notSummed + ` AND e.at < ?3 AND (?4 = '' OR s.bought_by = ?4) GROUP BY 1, 2) x
		GROUP BY x.bought_by ORDER BY x.bought_by`
)

func (r ledger) EntriesByKey(ctx context.Context, agentID string, f ports.LedgerFilter) (
	list []ports.KeyEntries, err error) {
	to := int64(math.MaxInt64)
	if !f.To.IsZero() {
		to = column.Micros(f.To)
	}
	args := []any{agentID, string(f.Type), column.Micros(f.From), to, f.Key}
	err = r.Rows(ctx, entriesByKey, args, func(row engine.Row) error {
		var k ports.KeyEntries
		err := row.Scan(&k.Key, &k.Entries, &k.Amount, &k.Charged)
		list = append(list, k)
		return err
	})
	return list, work.Wrap("sum entries of "+agentID+" by key", err)
}

func (r ledger) KeyHours(ctx context.Context, agentID, keyID string, from, to time.Time) ([]ports.Hour, error) {
	query := fmt.Sprintf(keyHours, r.store.by("sessions_buyer"))
	return r.hours(ctx, keyID, query, agentID, column.Micros(from), column.Micros(to), keyID)
}

func (r ledger) StatementByKey(ctx context.Context, agentID, keyID string, from, to time.Time) (
	list []ports.KeySums, err error) {
	args := []any{agentID, column.Micros(from), column.Micros(to), keyID}
	err = r.Rows(ctx, statementByKey, args, func(row engine.Row) error {
		var k ports.KeySums
		err := row.Scan(&k.Key, &k.Opening, &k.Before, &k.Held, &k.Charged, &k.Released, &k.Refunded, &k.Amount)
		list = append(list, k)
		return err
	})
	return list, work.Wrap("sum the entries of sessions of "+agentID+" by key", err)
}

func (r ledger) KeyItems(ctx context.Context, agentID, keyID string, from, to time.Time, page domain.Page) (
	domain.List[ports.StatementItem], error) {
	return r.statementItems(ctx, statementOf{agentID, keyID, from, to}, page)
}

func (r sessions) KeyUnbooked(ctx context.Context, agentID, keyID string) ([]ports.Hour, error) {
	var holding []dueRow
	err := r.Rows(ctx, keyUnbooked, []any{agentID, keyID}, func(row engine.Row) error {
		var d dueRow
		err := row.Scan(d.targets()...)
		holding = append(holding, d)
		return err
	})
	if err != nil {
		return nil, work.Wrap("sum what is not charged yet of "+keyID, err)
	}
	return sumsOfDue(holding)
}

func (r sessions) KeyCount(_ context.Context, agentID, keyID string) (n ports.KeyCount, err error) {
	err = r.Row(keyCount, agentID, keyID).Scan(&n.Total, &n.Creating, &n.Active, &n.Bytes, &n.Rotations)
	if err != nil {
		err = fmt.Errorf("count sessions of %s: %w", keyID, r.Failed(err))
	}
	return n, err
}

// statementOf is what the items of a statement are of.
type statementOf struct {
	agentID, keyID string // all keys if there is none
	from, to       time.Time
}

// narrow returns the condition that a session s, or the session of a number, was bought by the key, which becomes an
// argument; nothing without a key.
func (o statementOf) narrow(args []any) (ofSession, ofNumber string, _ []any) {
	if o.keyID == "" {
		return "", "", args
	}
	args = append(args[:len(args):len(args)], o.keyID)
	ofSession = fmt.Sprintf(" AND s.bought_by = ?%d", len(args))
	ofNumber = " AND ord IN (SELECT s.ord FROM sessions s WHERE s.agent_id = ?1" + ofSession + ")"
	return ofSession, ofNumber, args
}

// scanStatementItem reads a row of the items of a statement.
func scanStatementItem(row engine.Row) (i ports.StatementItem, err error) {
	var kind string
	err = row.Scan(&i.SessionID, &kind, &i.ProductNo, &i.Held, &i.Charged, &i.Released, &i.Refunded, &i.Amount)
	i.Type = session.Type(kind)
	return i, err
}
