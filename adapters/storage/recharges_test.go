package storage_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
)

// plan is how the database answers a query, a line for each step.
func plan(t testing.TB, st *storage.Store, query string) string {
	t.Helper()
	var b strings.Builder
	err := st.Reader(t.Context(), func(conn *sql.Conn) error {
		rows, err := conn.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, make([]any, highest(query))...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			b.WriteString(detail + "\n")
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return b.String()
}

// highest is the highest number of a parameter.
func highest(query string) (n int) {
	for part := range strings.SplitSeq(query, "?") {
		var i int
		if _, err := fmt.Sscanf(part, "%d", &i); err == nil {
			n = max(n, i)
		}
	}
	return n
}

func TestRechargesAreFoundByIndex(t *testing.T) { foundByIndex(t, storage.RechargeQueries()) }
func TestOrdersAreFoundByIndex(t *testing.T)    { foundByIndex(t, storage.OrderQueries()) }

func foundByIndex(t *testing.T, queries map[string][]string) {
	st := openStore(t)
	for query, names := range queries {
		got := plan(t, st, query)
		for _, name := range names {
			if !strings.Contains(got, name) {
				t.Errorf("the plan does not use %s:\n%s\nof %.300s", name, got, query)
			}
		}
		for line := range strings.SplitSeq(got, "\n") {
			name, scans := strings.CutPrefix(line, "SCAN ")
			if scans && name != "CONSTANT ROW" && !strings.Contains(got, "CO-ROUTINE "+name+"\n") {
				t.Errorf("a whole table is read:\n%s\nof %.300s", got, query)
			}
		}
	}
}

// Nobody changes or removes what was credited, whichever way he comes.
func TestAFinalTransferIsAsFixedAsTheLedger(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := openBooks(t, open)
		for _, statement := range []string{"UPDATE recharge_transfers SET note = 'x' WHERE tx_id = 'aa'",
			"DELETE FROM recharge_transfers WHERE tx_id = 'aa'"} {
			if _, err := st.Writer().ExecContext(t.Context(), statement); err == nil || !strings.Contains(err.Error(), "a final transfer is never") {
				t.Errorf("%s: %v", statement, err)
			}
		}
		for _, statement := range []string{"UPDATE recharge_transfers SET note = 'x' WHERE state = 'seen'",
			"DELETE FROM recharge_transfers WHERE state = 'seen'"} {
			if _, err := st.Writer().ExecContext(t.Context(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
}

// BenchmarkOwned finds whose the transfers of a block are: 500 of them, so 1,000
// addresses, one in ten of which is one of our 100,000.
func BenchmarkOwned(b *testing.B) {
	const ours, transfers = 100_000, 500
	st := openStore(b)
	_, err := st.Writer().Exec(`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ?1 - 1)
		INSERT INTO recharge_addresses (network, fingerprint, idx, agent_id, address, created_at, read_through, audited_at, drift)
		SELECT 'tron', 'key', i, printf('agt_%d', i), printf('T%033d', i * 48271 % 2147483647), 0, 0, 0, 0 FROM n`, ours)
	if err != nil {
		b.Fatal(err)
	}
	var block []string
	for i := range 2 * transfers {
		n := i * 97 % ours
		if i%10 > 0 {
			n += ours
		}
		block = append(block, fmt.Sprintf("T%033d", n*48271%2147483647))
	}
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		view(b, st, func(ctx context.Context, tx ports.Tx) error {
			found, err := tx.Recharges().Owned(ctx, "tron", block)
			if len(found) != transfers/5 {
				b.Errorf("%d are ours", len(found))
			}
			return err
		})
		b.ReportMetric(float64(time.Since(start).Microseconds()), "last-µs")
	}
}
