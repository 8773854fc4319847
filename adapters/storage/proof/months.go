package proof

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// monthKey is that of a row of ledger_months.
type monthKey struct {
	month int64
	of    billing.Type
}

// monthSum is what a row has.
type monthSum struct{ moved, revenue int64 }

// sessionMonth is what the sessions of an agent have of a month.
type sessionMonth struct{ held, charged, released, refunded, moved int64 }

// months are the stored sums of an agent, less what was walked of the entries that they are of. A nil one has none.
type months struct {
	counted    int64 // of the entries
	since      int64 // months that begin before it are not compared
	sums       map[monthKey]monthSum
	sessions   map[int64]sessionMonth // by month
	start, end int64                  // of the month of the last entry
}

// readMonths reads the sums of a range of agents, those by session since they are sealed.
func readMonths(ctx context.Context, conn engine.Conn, from, to string, sealed int64) (map[string]*months, error) {
	all := map[string]*months{}
	of := func(agent string) *months {
		if all[agent] == nil {
			all[agent] = &months{sums: map[monthKey]monthSum{}, sessions: map[int64]sessionMonth{}}
		}
		return all[agent]
	}
	var agent string
	var n int64
	err := conn.Rows(ctx, "SELECT agent_id, entries FROM ledger_counted WHERE agent_id >= ?1 AND agent_id < ?2",
		[]any{from, to}, func(row engine.Row) error {
			err := row.Scan(&agent, &n)
			of(agent).counted = n
			return err
		})
	if err != nil {
		return nil, err
	}
	err = conn.Rows(ctx, `SELECT agent_id, month, type, moved, revenue FROM ledger_months
		WHERE agent_id >= ?1 AND agent_id < ?2`, []any{from, to}, func(row engine.Row) error {
		var k monthKey
		var s monthSum
		err := row.Scan(&agent, &k.month, &k.of, &s.moved, &s.revenue)
		of(agent).sums[k] = s
		return err
	})
	if err != nil {
		return nil, err
	}
	err = conn.Rows(ctx, `SELECT m.agent_id, m.month, CAST(SUM(m.held) AS BIGINT), CAST(SUM(m.charged) AS BIGINT),
		CAST(SUM(m.released) AS BIGINT), CAST(SUM(m.refunded) AS BIGINT), CAST(SUM(m.moved) AS BIGINT)
		FROM wallets w LEFT JOIN ledger_seals l ON l.agent_id = w.agent_id AND l.month = ?3
		JOIN ledger_month_sessions m ON m.agent_id = w.agent_id AND m.month >= COALESCE(l.month, 0)
		WHERE w.agent_id >= ?1 AND w.agent_id < ?2 GROUP BY m.agent_id, m.month`, []any{from, to, sealed},
		func(row engine.Row) error {
			var month int64
			var s sessionMonth
			err := row.Scan(&agent, &month, &s.held, &s.charged, &s.released, &s.refunded, &s.moved)
			of(agent).sessions[month] = s
			return err
		})
	return all, err
}

// add takes the next entry.
func (m *months) add(e *entry) {
	if m == nil || e.Ord > m.counted {
		return
	}
	if e.At < m.start || e.At >= m.end {
		at := column.Time(e.At)
		start := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
		m.start, m.end = column.Micros(start), column.Micros(start.AddDate(0, 1, 0))
	}
	if m.start < m.since {
		return
	}
	k := monthKey{m.start, billing.Type(e.Type)}
	s := m.sums[k]
	s.moved -= e.Trial + e.Own
	if e.Account == string(billing.Revenue) {
		s.revenue -= e.Counter
	}
	m.sums[k] = s
	if e.SessionID != "" {
		m.addSession(e)
	}
}

// addSession takes the next entry of a session.
func (m *months) addSession(e *entry) {
	s, moved := m.sessions[m.start], e.Trial+e.Own
	s.moved -= moved
	switch billing.Type(e.Type) {
	case billing.HoldEntry:
		s.held += moved
	case billing.ChargeEntry:
		s.charged -= e.Counter
	case billing.Release:
		s.released -= moved
	case billing.RefundEntry:
		s.refunded -= moved
	}
	m.sessions[m.start] = s
}

// compareSessions returns how the sums by session differ from the entries; "" if they do not.
func (m *months) compareSessions() string {
	for _, month := range slices.Sorted(maps.Keys(m.sessions)) {
		if s := m.sessions[month]; s != (sessionMonth{}) && month >= m.since {
			return fmt.Sprintf("%s: %+v too much", column.Time(month).Format("2006-01"), s)
		}
	}
	return ""
}

// compare returns how the sums differ from the entries, all of which were added; "" if they do not.
func (m *months) compare(entries int64) string {
	if m.counted > entries {
		return fmt.Sprintf("of %d entries, of %d", m.counted, entries)
	}
	keys := slices.SortedFunc(maps.Keys(m.sums), func(a, b monthKey) int {
		return cmp.Or(cmp.Compare(a.month, b.month), cmp.Compare(a.of, b.of))
	})
	for _, k := range keys {
		if s := m.sums[k]; s != (monthSum{}) && k.month >= m.since {
			return fmt.Sprintf("%s of %s: %d and %d too much", k.of, column.Time(k.month).Format("2006-01"), s.moved, s.revenue)
		}
	}
	return ""
}

// Names under which is stored up to what days are summed.
const (
	AccountDays   = "account-days"
	MarginEntries = "margin-entries"
	OrderDays     = "order-days"
)

// SummedDays is up to which number entries are summed by day, and what on PostgreSQL may be next.
type SummedDays struct {
	Mark  int64     `json:"mark"`
	Bound int64     `json:"bound"` // all entries up to it are committed
	Next  int64     `json:"next"`  // the last number
	At    time.Time `json:"at"`    // at that time
}

// KeptDays are days of which there are sums: from the start of the first to the end of the last, in microseconds since
// 1970.
type KeptDays struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Rules of the sums of days.
const (
	accountSums = "the sums of the service's accounts by day are those of the entries"
	marginSums  = "the margin that is summed of a day is of its entries"
)

// dayEntries sums the entries with an account since ?1 by day and account: those up to the number ?2, and of those up
// to ?3 what margins have.
const dayEntries = `SELECT at / 86400000000 * 86400000000, account,
	CAST(SUM(CASE WHEN seq <= ?2 THEN counter ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN type = 'charge' AND seq <= ?3 THEN counter ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN type = 'refund' AND seq <= ?3 THEN -counter ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN account = 'revenue' AND seq <= ?3 THEN -trial - held_trial ELSE 0 END) AS BIGINT),
	CAST(SUM(CASE WHEN account = 'corrections' AND seq <= ?3 THEN -counter ELSE 0 END) AS BIGINT)
	FROM ledger_entries WHERE account <> '' AND %s >= ?1 GROUP BY 1, 2`

// dayMargin is what is summed of the margin of a day, and is of its entries.
type dayMargin struct{ charged, refunded, trial, given int64 }

func (m *dayMargin) add(o dayMargin) {
	m.charged, m.refunded, m.trial, m.given = m.charged+o.charged, m.refunded+o.refunded, m.trial+o.trial, m.given+o.given
}

// findDays compares the sums of days since a month with the entries.
func findDays(ctx context.Context, conn engine.Conn, month int64) (faults []ports.Fault, err error) {
	var summed, margined SummedDays
	var ordered KeptDays
	values := map[string]any{AccountDays: &summed, MarginEntries: &margined, OrderDays: &ordered}
	err = conn.Rows(ctx, "SELECT name, value FROM service_values WHERE name IN (?1, ?2, ?3)",
		[]any{AccountDays, MarginEntries, OrderDays}, func(row engine.Row) error {
			var name string
			var text []byte
			err := row.Scan(&name, &text)
			return cmp.Or(err, json.Unmarshal(text, values[name]))
		})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", accountSums, err)
	}
	type key struct {
		day     int64
		account string
	}
	sums, margins := map[key]int64{}, map[int64]dayMargin{}
	of := "+at" // all are read, in their order
	if month > 0 {
		of = "at"
	}
	args := []any{month, summed.Mark, margined.Mark}
	err = conn.Rows(ctx, fmt.Sprintf(dayEntries, of), args, func(row engine.Row) error {
		var k key
		var sum int64
		var m dayMargin
		err := row.Scan(&k.day, &k.account, &sum, &m.charged, &m.refunded, &m.trial, &m.given)
		sums[k] = sum
		if day := margins[k.day]; k.account == string(billing.Revenue) || k.account == string(billing.Corrections) {
			day.add(m)
			margins[k.day] = day
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", accountSums, err)
	}
	err = conn.Rows(ctx, "SELECT day, account, counter FROM account_days WHERE day >= ?1", []any{month},
		func(row engine.Row) error {
			var k key
			var sum int64
			err := row.Scan(&k.day, &k.account, &sum)
			sums[k] -= sum
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", accountSums, err)
	}
	for k, sum := range sums {
		if sum != 0 {
			faults = append(faults, ports.Fault{Rule: accountSums, Where: dayOf(k.day),
				Detail: fmt.Sprintf("%s: %d too little", k.account, sum)})
		}
	}
	more, err := findMargins(ctx, conn, month, margins)
	if err != nil {
		return nil, err
	}
	faults = append(faults, more...)
	slices.SortFunc(faults, func(a, b ports.Fault) int {
		return slices.Compare([]string{a.Where, a.Detail}, []string{b.Where, b.Detail})
	})
	more, err = findDeliveries(ctx, conn, KeptDays{max(ordered.From, month), ordered.To}, month)
	return append(faults[:min(len(faults), maxFaults)], more...), err
}

// findMargins compares the sums of days since a month with what entries make of them.
func findMargins(ctx context.Context, conn engine.Conn, month int64, entries map[int64]dayMargin) (
	faults []ports.Fault, err error,
) {
	keys := map[string]map[int64]dayMargin{"provider": {}, "product": {}, "agent": {}}
	err = conn.Rows(ctx, `SELECT day, by_key, CAST(SUM(charged) AS BIGINT), CAST(SUM(refunded) AS BIGINT),
		CAST(SUM(trial) AS BIGINT), CAST(SUM(given) AS BIGINT) FROM margin_sums WHERE day >= ?1 GROUP BY day, by_key`,
		[]any{month}, func(row engine.Row) error {
			var day int64
			var by string
			var m dayMargin
			err := row.Scan(&day, &by, &m.charged, &m.refunded, &m.trial, &m.given)
			if keys[by] == nil {
				keys[by] = map[int64]dayMargin{}
			}
			keys[by][day] = m
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("verify that %s: %w", marginSums, err)
	}
	fault := func(day int64, by string, is, should dayMargin) {
		if is != should {
			faults = append(faults, ports.Fault{Rule: marginSums, Where: dayOf(day),
				Detail: fmt.Sprintf("by %s %+v; entries %+v", by, is, should)})
		}
	}
	for by, days := range keys {
		for day, should := range entries {
			fault(day, by, days[day], should)
			delete(days, day)
		}
		for day, is := range days {
			fault(day, by, is, dayMargin{})
		}
	}
	return faults, nil
}

func dayOf(micros int64) string { return column.Time(micros).Format(time.DateOnly) }

// ValueOf reads a value of the service from JSON into what into points to, which stays as it is if there is none.
func ValueOf(conn engine.Conn, name string, into any) error {
	var text []byte
	err := conn.Row("SELECT value FROM service_values WHERE name = ?1", []any{name}).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	return err
}
