package proof

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/billing"
)

// monthKey is that of a row of ledger_months.
type monthKey struct {
	month int64
	of    billing.Type
}

// monthSum is what a row has.
type monthSum struct{ moved, revenue int64 }

// months are the stored sums of an agent, less what was walked of the entries that they are of. A nil one has none.
type months struct {
	counted    int64 // of the entries
	since      int64 // months that begin before it are not compared
	sums       map[monthKey]monthSum
	start, end int64 // of the month of the last entry
}

// readMonths reads the sums of a range of agents.
func readMonths(ctx context.Context, conn engine.Conn, from, to string) (map[string]*months, error) {
	all := map[string]*months{}
	of := func(agent string) *months {
		if all[agent] == nil {
			all[agent] = &months{sums: map[monthKey]monthSum{}}
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
	k := monthKey{m.start, e.Type}
	s := m.sums[k]
	s.moved -= int64(e.Trial + e.Own)
	if e.Account == billing.Revenue {
		s.revenue -= int64(e.Counter)
	}
	m.sums[k] = s
}

// compare returns how the sums differ from the entries, all of which were added; "" if they do not.
func (m *months) compare() string {
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
