package ledger

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
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
		CAST(COALESCE(SUM(h.charged - h.refunded), 0) AS BIGINT) FROM ` + hoursOf(r.Database)
	var before, until domain.Money
	err = r.Row(usedSums, agentID, int64(0), column.Micros(to), column.Micros(from)).Scan(&before, &until)
	s.OfBefore, s.Later = before-booked, until-booked-s.Spent
	return s, work.Wrap("sum the hours of "+agentID, err)
}

// The sessions of the statement of ?1 from ?2, the start of a month, until before ?3: those of the sums, and those of
// entries that are not summed yet. What narrows them to a key is put in for %[1]s, behind a session s, and for %[2]s.
const (
	statementNew = ` FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE ` + notSummed + ` AND e.at >= ?2 AND e.at < ?3%[1]s`

	statementCount = `SELECT (SELECT COUNT(*) FROM ledger_month_sessions WHERE agent_id = ?1 AND month = ?2%[2]s) +
		(SELECT COUNT(DISTINCT s.ord)` + statementNew + ` AND NOT EXISTS (SELECT 1 FROM ledger_month_sessions m
			WHERE m.agent_id = ?1 AND m.month = ?2 AND m.ord = s.ord))`

	// statementPlaces are the numbers of sessions before ?4, of which the first ?5 are enough.
	statementPlaces = `SELECT x.ord FROM (SELECT k.ord FROM (SELECT ord FROM ledger_month_sessions
		WHERE agent_id = ?1 AND month = ?2 AND ord < ?4%[2]s ORDER BY ord DESC LIMIT ?5) k
		UNION SELECT s.ord` + statementNew + ` AND s.ord < ?4) x ORDER BY x.ord DESC LIMIT ?6 OFFSET ?7`

	// statementItems are the sums of those from ?4 to ?5.
	statementItems = `SELECT s.id, s.type, s.product_no, x.held, x.charged, x.released, x.refunded, x.moved
		FROM (SELECT y.ord, CAST(SUM(y.held) AS BIGINT) AS held, CAST(SUM(y.charged) AS BIGINT) AS charged,
			CAST(SUM(y.released) AS BIGINT) AS released, CAST(SUM(y.refunded) AS BIGINT) AS refunded,
			CAST(SUM(y.moved) AS BIGINT) AS moved
		FROM (SELECT ord, held, charged, released, refunded, moved FROM ledger_month_sessions
			WHERE agent_id = ?1 AND month = ?2 AND ord >= ?4 AND ord <= ?5%[2]s
		UNION ALL SELECT s.ord, ` + byMonthHeld + ", " + byMonthCharged + ", " + byMonthReleased + ", " +
		byMonthRefunded + ", " + byMonthMoved + statementNew + ` AND s.ord >= ?4 AND s.ord <= ?5 GROUP BY s.ord) y
		GROUP BY y.ord) x JOIN sessions s ON s.agent_id = ?1 AND s.ord = x.ord ORDER BY x.ord DESC`
)

func (r ledger) StatementItems(
	ctx context.Context, agentID string, from, to time.Time, page domain.Page,
) (list domain.List[ports.StatementItem], err error) {
	return r.statementItems(ctx, statementOf{agentID, "", from, to}, page)
}

func (r ledger) statementItems(
	ctx context.Context, of statementOf, page domain.Page,
) (list domain.List[ports.StatementItem], err error) {
	list.Page = page
	month := []any{of.agentID, column.Micros(of.from), column.Micros(of.to)}
	ofSession, ofNumber, args := of.narrow(month)
	err = r.Row(fmt.Sprintf(statementCount, ofSession, ofNumber), args...).Scan(&list.Total)
	if err != nil {
		return list, fmt.Errorf("count sessions of a statement of %s: %w", of.agentID, r.Failed(err))
	}
	before, offset := int64(math.MaxInt64), page.Offset()
	if page.After > 0 {
		before, offset = page.After, 0
	}
	var places []int64
	ofSession, ofNumber, args = of.narrow(append(month[:3:3], before, offset+page.Size+1, page.Size+1, offset))
	err = r.Rows(ctx, fmt.Sprintf(statementPlaces, ofSession, ofNumber), args, func(row engine.Row) error {
		var ord int64
		err := row.Scan(&ord)
		places = append(places, ord)
		return err
	})
	if err != nil || len(places) == 0 {
		return list, work.Wrap("list sessions of a statement of "+of.agentID, err)
	}
	if len(places) > page.Size {
		places = places[:page.Size]
		list.Next = places[page.Size-1]
	}
	ofSession, ofNumber, args = of.narrow(append(month[:3:3], places[len(places)-1], places[0]))
	err = r.Rows(ctx, fmt.Sprintf(statementItems, ofSession, ofNumber), args, func(row engine.Row) error {
		i, err := scanStatementItem(row)
		list.Items = append(list.Items, i)
		return err
	})
	return list, work.Wrap("list sessions of a statement of "+of.agentID, err)
}

// The entries of an agent up to ledger_counted are summed by UTC month: by type in ledger_months, and by session in
// ledger_month_sessions. A statement is these sums and what is not counted yet, which is little. Calls of agents
// write none of the tables.

const (
	// monthsEntries is how many entries of an agent a unit sums.
	monthsEntries = 5_000
	// monthsNumbers is among how many numbers of entries agents are looked for at once.
	monthsNumbers = 50_000
	// monthsMark is the name under which is kept how far they were looked for.
	monthsMark = "ledger-months"

	byMonthHeld     = "CAST(SUM(CASE WHEN e.type = 'hold' THEN -(e.trial + e.own) ELSE 0 END) AS BIGINT)"
	byMonthCharged  = "CAST(SUM(CASE WHEN e.type = 'charge' THEN e.counter ELSE 0 END) AS BIGINT)"
	byMonthReleased = "CAST(SUM(CASE WHEN e.type = 'release' THEN e.trial + e.own ELSE 0 END) AS BIGINT)"
	byMonthRefunded = "CAST(SUM(CASE WHEN e.type = 'refund' THEN e.trial + e.own ELSE 0 END) AS BIGINT)"
	byMonthMoved    = "CAST(SUM(e.trial + e.own) AS BIGINT)"
)

// sumMonths and sumMonthSessions add the entries of ?1 behind ?2 up to ?3.
func sumMonths(d *work.Database) string {
	return `INSERT INTO ledger_months (agent_id, month, type, moved, revenue)
		SELECT e.agent_id, ` + d.MonthOf("e.at") + ", e.type, " + byMonthMoved + `,
		CAST(SUM(CASE WHEN e.account = 'revenue' THEN e.counter ELSE 0 END) AS BIGINT)
		FROM ledger_entries e WHERE e.agent_id = ?1 AND e.ord > ?2 AND e.ord <= ?3 GROUP BY 1, 2, 3
		ON CONFLICT (agent_id, month, type) DO UPDATE SET moved = ledger_months.moved + excluded.moved,
		revenue = ledger_months.revenue + excluded.revenue`
}

func sumMonthSessions(d *work.Database) string {
	return `INSERT INTO ledger_month_sessions (agent_id, month, ord, held, charged, released, refunded, moved)
		SELECT e.agent_id, ` + d.MonthOf("e.at") + ", s.ord, " + byMonthHeld + ", " + byMonthCharged + ", " +
		byMonthReleased + ", " + byMonthRefunded + ", " + byMonthMoved + `
		FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
		WHERE e.agent_id = ?1 AND e.ord > ?2 AND e.ord <= ?3 GROUP BY 1, 2, 3
		ON CONFLICT (agent_id, month, ord) DO UPDATE SET held = ledger_month_sessions.held + excluded.held,
		charged = ledger_month_sessions.charged + excluded.charged,
		released = ledger_month_sessions.released + excluded.released,
		refunded = ledger_month_sessions.refunded + excluded.refunded,
		moved = ledger_month_sessions.moved + excluded.moved`
}

// lookedAt is up to which numbers of entries agents were looked for. On PostgreSQL entries get their numbers before
// they are committed, so a run looks at those that were there at the end of the run before.
type lookedAt struct {
	Mark   int64 `json:"mark"`
	Before int64 `json:"before"`
}

// countMonths sums the entries that are new since it ran last.
func countMonths(ctx context.Context, db work.Units) error {
	var at lookedAt
	var last, bound int64
	err := db.Read(ctx, func(u *work.Unit) error {
		var text []byte
		err := u.Row("SELECT value FROM service_values WHERE name = ?1", monthsMark).Scan(&text)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		err = u.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries").Scan(&last)
		if bound = last; u.Conn.Concurrent() {
			bound = min(at.Before, last)
		}
		return err
	})
	for err == nil && at.Mark < bound && ctx.Err() == nil {
		to := min(bound, at.Mark+monthsNumbers)
		if err = countMonthsAmong(ctx, db, at.Mark, to); err == nil {
			at.Mark = to
			err = keepLookedAt(ctx, db, at)
		}
	}
	if err == nil && at.Before != last {
		at.Before = last
		err = keepLookedAt(ctx, db, at)
	}
	return work.Wrap("sum the months", err)
}

func keepLookedAt(ctx context.Context, db work.Units, at lookedAt) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return db.Update(ctx, func(u *work.Unit) error {
		return u.Later("keep how far the months are summed", work.SetServiceValue, monthsMark, text)
	})
}

// countMonthsAmong sums what is new of the agents of some entries.
func countMonthsAmong(ctx context.Context, db work.Units, after, to int64) error {
	var agents []string
	err := db.Read(ctx, func(u *work.Unit) (err error) {
		agents, err = u.Texts(ctx, "SELECT DISTINCT agent_id FROM ledger_entries WHERE seq > ?1 AND seq <= ?2",
			after, to)
		return err
	})
	for _, agent := range agents {
		for more := err == nil; more && err == nil; {
			err = db.Update(ctx, func(u *work.Unit) (err error) {
				more, err = countMonthsOf(u, agent)
				return err
			})
		}
	}
	return err
}

// countMonthsOf sums the next entries of an agent, and reports whether there are more. Every entry up to the number in
// the wallet is committed with it.
func countMonthsOf(u *work.Unit, agent string) (more bool, err error) {
	u.Serialize("sum up")
	var from, entries int64
	err = u.Row(`SELECT COALESCE((SELECT entries FROM ledger_counted WHERE agent_id = ?1), 0),
		COALESCE((SELECT entries FROM wallets WHERE agent_id = ?1), 0)`, agent).Scan(&from, &entries)
	to := min(entries, from+monthsEntries)
	if err != nil || to <= from {
		return false, err
	}
	for what, statement := range map[string]string{"sum the months of ": sumMonths(u.Database),
		"sum the months of sessions of ": sumMonthSessions(u.Database)} {
		if err := u.Later(what+agent, statement, agent, from, to); err != nil {
			return false, err
		}
	}
	err = u.Later("keep how many entries are summed of "+agent, `INSERT INTO ledger_counted (agent_id, entries)
		VALUES (?1, ?2) ON CONFLICT (agent_id) DO UPDATE SET entries = excluded.entries`, agent, to)
	return to < entries, err
}

// statementByKey sums the months that are summed by session, and what is in none yet, as of ?2 or of before. By itself
// SQLite would read all sessions of the agent for each of them, by an index that has its keys.
const statementByKey = `SELECT x.bought_by, CAST(SUM(CASE WHEN x.at < ?2 THEN x.moved ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN x.charged - x.refunded ELSE 0 END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.held END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.charged END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.released END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.refunded END) AS BIGINT),
		CAST(SUM(CASE WHEN x.at < ?2 THEN 0 ELSE x.moved END) AS BIGINT)
		FROM (SELECT s.bought_by, m.month AS at, m.held, m.charged, m.released, m.refunded, m.moved
			FROM ledger_month_sessions m JOIN sessions s%s ON s.agent_id = m.agent_id AND s.ord = m.ord
			WHERE m.agent_id = ?1 AND m.month < ?3 AND (?4 = '' OR s.bought_by = ?4)
		UNION ALL SELECT s.bought_by, CASE WHEN e.at < ?2 THEN 0 ELSE ?2 END, ` + byMonthHeld + ", " + byMonthCharged + ", " +
	byMonthReleased + ", " + byMonthRefunded + ", " + byMonthMoved + `
			FROM ledger_entries e JOIN sessions s ON s.id = e.session_id
			WHERE ` + notSummed + ` AND e.at < ?3 AND (?4 = '' OR s.bought_by = ?4) GROUP BY 1, 2) x
		GROUP BY x.bought_by ORDER BY x.bought_by`

func (r ledger) StatementByKey(ctx context.Context, agentID, keyID string, from, to time.Time) (
	list []ports.KeySums, err error) {
	args := []any{agentID, column.Micros(from), column.Micros(to), keyID}
	err = r.Rows(ctx, fmt.Sprintf(statementByKey, r.Database.By("sessions_agent")), args, func(row engine.Row) error {
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
