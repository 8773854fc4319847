package storage

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

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

// monthOf returns the expression for the start of the UTC month of e.at, in microseconds since 1970.
func (s *Store) monthOf() string {
	if s.postgres != nil {
		return "CAST(extract(epoch FROM date_trunc('month', to_timestamp(e.at / 1000000) AT TIME ZONE 'UTC')) AS BIGINT)" +
			" * 1000000"
	}
	return "CAST(strftime('%s', e.at / 1000000, 'unixepoch', 'start of month') AS INTEGER) * 1000000"
}

// sumMonths and sumMonthSessions add the entries of ?1 behind ?2 up to ?3.
func (s *Store) sumMonths() string {
	return `INSERT INTO ledger_months (agent_id, month, type, moved, revenue)
		SELECT e.agent_id, ` + s.monthOf() + ", e.type, " + byMonthMoved + `,
		CAST(SUM(CASE WHEN e.account = 'revenue' THEN e.counter ELSE 0 END) AS BIGINT)
		FROM ledger_entries e WHERE e.agent_id = ?1 AND e.ord > ?2 AND e.ord <= ?3 GROUP BY 1, 2, 3
		ON CONFLICT (agent_id, month, type) DO UPDATE SET moved = ledger_months.moved + excluded.moved,
		revenue = ledger_months.revenue + excluded.revenue`
}

func (s *Store) sumMonthSessions() string {
	return `INSERT INTO ledger_month_sessions (agent_id, month, ord, held, charged, released, refunded, moved)
		SELECT e.agent_id, ` + s.monthOf() + ", s.ord, " + byMonthHeld + ", " + byMonthCharged + ", " +
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
func (s *Store) countMonths(ctx context.Context) error {
	var at lookedAt
	var last int64
	err := s.Read(ctx, func(_ context.Context, unit ports.Tx) error {
		t := unit.(*tx)
		var text []byte
		err := t.Row("SELECT value FROM service_values WHERE name = ?1", monthsMark).Scan(&text)
		if err == nil {
			err = json.Unmarshal(text, &at)
		}
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		return t.Row("SELECT COALESCE(MAX(seq), 0) FROM ledger_entries").Scan(&last)
	})
	bound := last
	if s.postgres != nil {
		bound = min(at.Before, last)
	}
	for err == nil && at.Mark < bound && ctx.Err() == nil {
		to := min(bound, at.Mark+monthsNumbers)
		if err = s.countMonthsAmong(ctx, at.Mark, to); err == nil {
			at.Mark = to
			err = s.keepLookedAt(ctx, at)
		}
	}
	if err == nil && at.Before != last {
		at.Before = last
		err = s.keepLookedAt(ctx, at)
	}
	return work.Wrap("sum the months", err)
}

func (s *Store) keepLookedAt(ctx context.Context, at lookedAt) error {
	text, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return s.Update(ctx, func(_ context.Context, unit ports.Tx) error {
		return unit.(*tx).Later("keep how far the months are summed", setServiceValue, monthsMark, text)
	})
}

// countMonthsAmong sums what is new of the agents of some entries.
func (s *Store) countMonthsAmong(ctx context.Context, after, to int64) error {
	var agents []string
	err := s.Read(ctx, func(ctx context.Context, unit ports.Tx) (err error) {
		agents, err = unit.(*tx).Texts(ctx, "SELECT DISTINCT agent_id FROM ledger_entries WHERE seq > ?1 AND seq <= ?2",
			after, to)
		return err
	})
	for _, agent := range agents {
		for more := err == nil; more && err == nil; {
			err = s.Update(ctx, func(_ context.Context, unit ports.Tx) (err error) {
				more, err = countMonthsOf(unit.(*tx), agent)
				return err
			})
		}
	}
	return err
}

// countMonthsOf sums the next entries of an agent, and reports whether there are more. Every entry up to the number in
// the wallet is committed with it.
func countMonthsOf(t *tx, agent string) (more bool, err error) {
	t.Serialize("sum up")
	var from, entries int64
	err = t.Row(`SELECT COALESCE((SELECT entries FROM ledger_counted WHERE agent_id = ?1), 0),
		COALESCE((SELECT entries FROM wallets WHERE agent_id = ?1), 0)`, agent).Scan(&from, &entries)
	to := min(entries, from+monthsEntries)
	if err != nil || to <= from {
		return false, err
	}
	for what, statement := range map[string]string{"sum the months of ": t.store.sumMonths(),
		"sum the months of sessions of ": t.store.sumMonthSessions()} {
		if err := t.Later(what+agent, statement, agent, from, to); err != nil {
			return false, err
		}
	}
	err = t.Later("keep how many entries are summed of "+agent, `INSERT INTO ledger_counted (agent_id, entries)
		VALUES (?1, ?2) ON CONFLICT (agent_id) DO UPDATE SET entries = excluded.entries`, agent, to)
	return to < entries, err
}
