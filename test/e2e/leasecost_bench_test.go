package e2e_test

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/test/campaign"
	"agentproxy/test/pg"
)

var leaseSeconds = flag.Int("leases.seconds", campaign.Rounds(0, 60), "how long the cost of leases is measured; 0: not at all")

// pace starts a server that sends bytes at a rate, in ten pieces a second.
func pace(t *testing.T, rate int) string {
	t.Helper()
	return listen(t, func(w io.Writer) {
		piece := make([]byte, rate/10)
		for range time.Tick(100 * time.Millisecond) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	})
}

// written is what PostgreSQL counted: updated rows of the tables of leases, and bytes of WAL.
type written struct {
	rows map[string]int64
	wal  int64
}

// leaseTables are the tables that metering writes.
var leaseTables = []string{"sessions", "leases", "lease_reports", "usage_hours", "counters"}

func writtenSoFar(t *testing.T, conn *pgx.Conn) (w written) {
	t.Helper()
	w.rows = map[string]int64{}
	rows, err := conn.Query(t.Context(), "SELECT relname, n_tup_upd + n_tup_ins FROM pg_stat_user_tables WHERE relname = ANY($1)",
		leaseTables)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var n int64
	if _, err = pgx.ForEachRow(rows, []any{&name, &n}, func() error { w.rows[name] = n; return nil }); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").Scan(&w.wal); err != nil {
		t.Fatal(err)
	}
	return w
}

// TestWhatALeaseCosts measures what 40 sessions of one tunnel each write, at two rates and while their agent reads the
// balance each second: what docs/scaling.md has. What the service writes without them is subtracted from the WAL.
func TestWhatALeaseCosts(t *testing.T) {
	if *leaseSeconds == 0 {
		t.Skip("-leases.seconds is 0")
	}
	const sessions = 40
	server := pg.Start(t)
	url := server.Database(t)
	s := serve(t, append(onPostgres(url), "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	idle := 0.0
	measure := func(what string) (rows, wal float64) {
		server.Execute(t, "CHECKPOINT")
		time.Sleep(20 * time.Second) // the first changes of a page after it are written whole
		before, began := writtenSoFar(t, conn), time.Now()
		time.Sleep(time.Duration(*leaseSeconds) * time.Second)
		after, took := writtenSoFar(t, conn), time.Since(began).Seconds()
		each := func(n int64) float64 { return float64(n) / took / sessions }
		var parts []string
		total := 0.0
		for _, table := range leaseTables {
			n := each(after.rows[table] - before.rows[table])
			parts = append(parts, fmt.Sprintf("%s %.3f", table, n))
			total += n
		}
		wal = each(after.wal-before.wal) - idle
		t.Logf("%s: a session and second: %.3f rows (%s), %.0f B of WAL", what, total, strings.Join(parts, ", "), wal)
		return total, wal
	}
	_, idle = measure("idle")
	for _, c := range []struct {
		rate  int
		most  float64 // times 0.3 rows and 100 B
		reads bool
	}{{10_000, 1, false}, {10_000, 100, true}, {1_000_000, 3, false}} {
		rate, most := c.rate, c.most
		t.Run(fmt.Sprint(rate, " ", c.reads), func(t *testing.T) {
			key, id := s.register(fmt.Sprint("leases", rate, c.reads))
			s.object("adjust", id, "--amount", "100", "--reason", "a measurement")
			target := pace(t, rate)
			for range sessions { // each is calm at its first renewal: 1 GB is far from its first notice
				proxy := s.proxyAt(key, s.dynamic(key, "1"))
				_ = tunnel(t, proxy, target)
			}
			if c.reads {
				go func() {
					for range time.Tick(time.Second) {
						if _, err := s.call(t.Context(), "GET", "/billing/balance", key, ""); err != nil {
							return
						}
					}
				}()
			}
			if rows, wal := measure(fmt.Sprint(rate, " B/s, read ", c.reads)); rows > 0.3*most || wal > 100*most {
				t.Errorf("%.2f rows and %.0f B of WAL are more than %.1f and %.0f", rows, wal, 0.3*most, 100*most)
			}
		})
	}
}
