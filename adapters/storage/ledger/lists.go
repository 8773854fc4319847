package ledger

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/work"
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
		if f.Key != "" {
			db = db.Where("session_id IN (SELECT s.id FROM sessions s WHERE s.agent_id = ? AND s.bought_by = ?)", agentID, f.Key)
		}
		if !f.From.IsZero() {
			db = db.Where("at >= ?", column.Micros(f.From))
		}
		if !f.To.IsZero() {
			db = db.Where("at < ?", column.Micros(f.To))
		}
		return db
	}
	every := f == (ports.LedgerFilter{})
	var err error
	if every {
		list.Total, err = r.countEntries(ctx, agentID)
	} else {
		var total int64
		err = filtered(r.ORM(ctx).Model(&entryRow{})).Count(&total).Error
		list.Total = int(total)
	}
	places := filtered(r.ORM(ctx).Model(&entryRow{})).Order("ord DESC").Limit(page.Size + 1)
	switch {
	case err != nil:
		return list, work.Wrap("count entries of "+agentID, err)
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
		return list, work.Wrap("list entries of "+agentID, err)
	}
	if len(numbers) > page.Size {
		numbers = numbers[:page.Size]
		list.Next = numbers[page.Size-1]
	}
	list.Items, err = work.All(filtered(r.ORM(ctx)).Order("ord DESC").
		Where("ord <= ? AND ord >= ?", numbers[0], numbers[len(numbers)-1]), fromEntryRow)
	return list, work.Wrap("list entries of "+agentID, err)
}

// countEntries reads the number of the last entry. An unknown agent has none.
func (r ledger) countEntries(ctx context.Context, agentID string) (int, error) {
	var entries []int
	err := r.ORM(ctx).Model(&Row{}).Where("agent_id = ?", agentID).Pluck("entries", &entries).Error
	if len(entries) == 0 {
		return 0, err
	}
	return entries[0], err
}

const sumColumns = `SUM(h.up), SUM(h.down), SUM(h.connections), SUM(h.charged), SUM(h.refunded), SUM(h.recharged)`

func sums(t *ports.Totals) []any {
	return []any{&t.Up, &t.Down, &t.Connections, &t.Charged, &t.Refunded, &t.Recharged}
}

// hoursOf returns the hours of an agent in a time: those that are summed, and those that are not
// counted yet.
func hoursOf(d *work.Database) string {
	return `(SELECT hour, of_sessions, up, down, connections, charged, refunded, recharged
	FROM agent_hours WHERE agent_id = ?1 AND hour >= ?2 AND hour < ?3
	UNION ALL SELECT hour, CASE session_id WHEN '' THEN 0 ELSE 1 END, up, down, connections, charged, refunded, recharged
	FROM usage_hours` + d.By("usage_hours_hour") + ` WHERE agent_id = ?1 AND hour >= ?2 AND hour < ?3
	AND counted = 0) h`
}

func (r ledger) Hours(ctx context.Context, agentID string, from, to time.Time) ([]ports.Hour, error) {
	return r.hours(ctx, agentID, `SELECT h.hour, `+sumColumns+` FROM `+hoursOf(r.Database)+` GROUP BY h.hour
		ORDER BY h.hour`, agentID, column.Micros(from), column.Micros(to))
}

func (r ledger) SessionHours(
	ctx context.Context, agentID, sessionID string, from, to time.Time,
) ([]ports.Hour, error) {
	return r.hours(ctx, sessionID, `SELECT h.hour, h.up, h.down, h.connections, h.charged, h.refunded, h.recharged
		FROM sessions s CROSS JOIN usage_hours h
		WHERE s.agent_id = ?1 AND s.id = ?4 AND h.agent_id = ?1 AND h.session_id = ?4
		AND h.hour >= ?2 AND h.hour < ?3 ORDER BY h.hour`,
		agentID, column.Micros(from), column.Micros(to), sessionID)
}

// hours reads the totals of the hours of an agent or a session.
func (r ledger) hours(ctx context.Context, of, query string, args ...any) (hours []ports.Hour, err error) {
	err = r.Rows(ctx, query, args, func(rows engine.Row) error {
		var h ports.Hour
		var start int64
		err := rows.Scan(append([]any{&start}, sums(&h.Totals)...)...)
		h.Start = column.Time(start)
		hours = append(hours, h)
		return err
	})
	return hours, work.Wrap("sum hours of "+of, err)
}

// The sums by session read the hours of the agent, or, for a page, the hours of its sessions alone.
// Whether a session has an hour is a scalar subquery: PostgreSQL would make EXISTS a join with all
// hours of the agent.
const (
	sumsBySession = `SELECT h.session_id, SUM(h.up) AS up, SUM(h.down) AS down, SUM(h.connections) AS connections,
		SUM(h.charged) AS charged, SUM(h.refunded) AS refunded, SUM(h.recharged) AS recharged
		FROM usage_hours h WHERE h.counted IN (0, 1) AND h.agent_id = ?1 AND h.hour >= ?2 AND h.hour < ?3
		AND h.session_id <> ''`
	sessionTotals = `SELECT s.ord, s.id, s.type, s.product_no, s.bought_by, ` + sessions.DueColumns + `,
		h.up, h.down, h.connections, h.charged, h.refunded, h.recharged
		FROM (` + sumsBySession + ` GROUP BY h.session_id) h JOIN sessions s ON s.id = h.session_id ORDER BY s.ord DESC`
	sumOfTotals = `SELECT COALESCE(SUM(h.up), 0), COALESCE(SUM(h.down), 0), COALESCE(SUM(h.connections), 0),
		COALESCE(SUM(h.charged), 0), COALESCE(SUM(h.refunded), 0), COALESCE(SUM(h.recharged), 0)
		FROM %s WHERE h.of_sessions = 1`
	// countUsed counts the sessions that have an hour in the time. That is known of counted hours
	// if none is after the time: then their last one must be in it. The sign keeps SQLite from the index
	// of what is counted, in which the hours of a session are not beside each other.
	countUsed = `SELECT CASE WHEN EXISTS (SELECT 1 FROM agent_hours WHERE agent_id = ?1 AND hour >= ?3 AND last > 0)
		THEN (SELECT COUNT(DISTINCT h.session_id) FROM usage_hours h
			WHERE h.counted IN (0, 1) AND h.agent_id = ?1 AND h.hour >= ?2 AND h.hour < ?3 AND h.session_id <> '')
		ELSE (SELECT CAST(COALESCE(SUM(last), 0) AS BIGINT) FROM agent_hours WHERE agent_id = ?1 AND hour >= ?2) +
			(SELECT COUNT(DISTINCT h.session_id) FROM usage_hours h%s
			WHERE h.agent_id = ?1 AND h.hour >= ?2 AND h.hour < ?3 AND h.session_id <> '' AND h.counted = 0
			AND (SELECT c.hour FROM usage_hours c WHERE c.agent_id = ?1 AND c.session_id = h.session_id
				AND c.hour >= ?2 AND +c.counted = 1 LIMIT 1) IS NULL)
		END`
	// pageOfTotals walks down the sessions of the agent to those that have an hour in the time.
	pageOfTotals = `WITH p AS (SELECT s.seq FROM sessions s WHERE s.agent_id = ?1 AND s.ord < ?4
		AND (SELECT u.hour FROM usage_hours u
			WHERE u.agent_id = ?1 AND u.session_id = s.id AND u.hour >= ?2 AND u.hour < ?3 LIMIT 1) IS NOT NULL
		ORDER BY s.ord DESC LIMIT ?5 OFFSET ?6)
		SELECT s.ord, s.id, s.type, s.product_no, s.bought_by, ` + sessions.DueColumns + `, ` + sumColumns + `
		FROM p CROSS JOIN sessions s CROSS JOIN usage_hours h
		WHERE s.seq = p.seq AND h.agent_id = s.agent_id AND h.session_id = s.id AND h.hour >= ?2 AND h.hour < ?3
		GROUP BY s.seq ORDER BY s.ord DESC`
)

func (r ledger) SessionTotals(
	ctx context.Context, agentID string, from, to time.Time,
) ([]ports.SessionTotal, error) {
	return r.sessionTotals(ctx, sessionTotals, agentID, column.Micros(from), column.Micros(to))
}

// sessionTotals reads the sums of sessions. The first three arguments are the agent and the time.
func (r ledger) sessionTotals(ctx context.Context, query string, args ...any) (list []ports.SessionTotal, err error) {
	err = r.Rows(ctx, query, args, func(rows engine.Row) error {
		var t ports.SessionTotal
		var d sessions.DueRow
		targets := append([]any{&t.Place, &t.SessionID, &t.Type, &t.ProductNo, &t.Key}, d.Targets()...)
		if err := rows.Scan(append(targets, sums(&t.Totals)...)...); err != nil {
			return err
		}
		if d.At >= args[1].(int64) && d.At < args[2].(int64) && t.Type == session.Dynamic {
			due, err := d.Due()
			if err != nil {
				return err
			}
			t.Charged += due
		}
		list = append(list, t)
		return nil
	})
	return list, work.Wrap(fmt.Sprintf("sum sessions of %s", args[0]), err)
}

// fewSessions is how many sessions are summed in full to find a page of them. Among more, those of
// a page are found after few others.
const fewSessions = 1000

func (r ledger) SessionTotalsPage(
	ctx context.Context, agentID string, from, to time.Time, page domain.Page,
) (list domain.List[ports.SessionTotal], totals ports.Totals, err error) {
	list.Page = page
	args := []any{agentID, column.Micros(from), column.Micros(to)}
	if err = r.Row(fmt.Sprintf(countUsed, r.Database.By("usage_hours_hour")), args...).Scan(&list.Total); err == nil {
		err = r.Row(fmt.Sprintf(sumOfTotals, hoursOf(r.Database)), args...).Scan(sums(&totals)...)
	}
	if err != nil || list.Total <= page.Offset() {
		return list, totals, work.Wrap("sum sessions of "+agentID, err)
	}
	below := page.After
	if below == 0 {
		below = math.MaxInt64
	}
	var found []ports.SessionTotal
	if list.Total > fewSessions {
		found, err = r.sessionTotals(ctx, pageOfTotals, append(args, below, page.Size+1, page.Offset())...)
	} else if found, err = r.sessionTotals(ctx, sessionTotals, args...); err == nil {
		found = slices.DeleteFunc(found, func(t ports.SessionTotal) bool { return t.Place >= below })
		found = found[min(page.Offset(), len(found)):]
	}
	if len(found) > page.Size {
		found = found[:page.Size]
		list.Next = found[page.Size-1].Place
	}
	list.Items = found
	return list, totals, err
}

// What the sessions of one key did, which the index sessions_buyer finds.
const (
	entriesByKey = `SELECT COALESCE(s.bought_by, ''), COUNT(*), CAST(SUM(e.trial + e.own) AS BIGINT),
		CAST(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END) AS BIGINT)
		FROM ledger_entries e LEFT JOIN sessions s ON s.id = e.session_id
		WHERE e.agent_id = ?1 AND (?2 = '' OR e.type = ?2) AND e.at >= ?3 AND e.at < ?4 AND (?5 = '' OR s.bought_by = ?5)
		GROUP BY 1 ORDER BY 1`

	keyHours = `SELECT h.hour, ` + sumColumns + ` FROM sessions s%s CROSS JOIN usage_hours h
		WHERE s.agent_id = ?1 AND s.bought_by = ?4 AND h.agent_id = ?1 AND h.session_id = s.id
		AND h.hour >= ?2 AND h.hour < ?3 GROUP BY h.hour ORDER BY h.hour`
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
	query := fmt.Sprintf(keyHours, r.Database.By("sessions_buyer"))
	return r.hours(ctx, keyID, query, agentID, column.Micros(from), column.Micros(to), keyID)
}
