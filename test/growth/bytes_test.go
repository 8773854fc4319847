//go:build campaign

package growth_test

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// workersEach is how many workers a session gets for TestBytesOfASession, at most 256.
var workersEach = flag.Int("growth.workers", 2, "workers of each session whose bytes are counted")

// TestBytesOfASession prints what each table and index of PostgreSQL takes for a session that ended, after
// growth.large of them, and on SQLite what the file does: before and after their workers are archived, and how
// long that takes. Nothing is asserted.
func TestBytesOfASession(t *testing.T) {
	w := apptest.Open(t, apptest.Options{Database: database(t)})
	numbers(w, *large)
	f := fill(w, *large, lives)
	addWorkers(w, f)
	apptest.OK(t, w.DB.SumUp(t.Context()))
	w.Exec("DROP TABLE growth_n")
	logBytes(w, f)
	w.LetArchive()
	w.Clock.Advance(clonePeriod + 91*session.Day)
	archived := func() string { return w.Column("SELECT COUNT(*) FROM session_archive")[0] }
	began := time.Now()
	for before := ""; before != archived(); {
		before = archived()
		apptest.OK(t, w.Tasks.Archive(t.Context()))
	}
	t.Logf("%s sessions archived in %s", archived(), time.Since(began).Round(time.Millisecond))
	logBytes(w, f)
}

// logBytes logs the size of everything for each session, once no space is free.
func logBytes(w *apptest.World, f filled) {
	w.T.Helper()
	sizes := "SELECT 'the_file ' || (page_count * page_size) FROM pragma_page_count, pragma_page_size"
	if w.Postgres() {
		w.Exec("VACUUM FULL ANALYZE")
		// The size of a table has what is stored out of line.
		sizes = `SELECT relname || ' ' || size FROM (SELECT relname, CASE relkind WHEN 'r' THEN pg_table_size(oid)
			ELSE pg_relation_size(oid) END AS size FROM pg_class WHERE relkind IN ('r', 'i')
			AND relnamespace = 'public'::regnamespace) x ORDER BY size DESC LIMIT 30`
	} else {
		w.Exec("VACUUM")
	}
	var b strings.Builder
	total := 0
	for _, line := range w.Column(sizes) {
		name, size, _ := strings.Cut(line, " ")
		bytes, err := strconv.Atoi(size)
		apptest.OK(w.T, err)
		total += bytes
		fmt.Fprintf(&b, "%-32s %6.0f\n", name, float64(bytes)/float64(f.sessions))
	}
	w.T.Logf("bytes for each of %d sessions with %d workers\n%s%-32s %6.0f", f.sessions, *workersEach, &b, "all",
		float64(total)/float64(f.sessions))
}

// addWorkers gives each session workers, each with a state of health of its own, a client and a host.
func addWorkers(w *apptest.World, f filled) {
	of := fmt.Sprintf("FROM sessions s WHERE s.agent_id = '%s' AND s.ended_at > 0", f.agent)
	most := cloneBytes / *workersEach / 2
	for n := range *workersEach {
		w.Exec(fmt.Sprintf(`INSERT INTO workers (session, name, country, city, ttl, strict, uniq, max_bytes, exit_ip, turn,
			assigned_at, lost, changeable, rotations, created_at, up, down, connections, used_at)
			SELECT s.seq, 'worker-%d', 'US', '', 600000000, 0, 1, 0, '203.0.113.%d', %d, s.created_at + %d, 0, 1, 0, s.created_at,
			(s.seq * 7919 + %d) %% %d, (s.seq * 6101 + %d) %% %d, 0, s.ended_at - %d %s`, n, n, n%4, 7001*n, 104729*n, most, 95651*n, most,
			1000003*n, of))
		var seen health.State
		for i := range 3 + n%20 {
			at := w.Clock.Now().Add(-time.Duration(i*n) * time.Second)
			seen.Observe(health.Event{Type: health.Success, At: at, StatusCode: 200, HasLatency: true, LatencyMS: 100 + 37*(i*n%50)})
		}
		state, err := seen.MarshalBinary()
		apptest.OK(w.T, err)
		w.Exec(fmt.Sprintf("INSERT INTO worker_health (worker, state) SELECT seq, ? FROM workers WHERE name = 'worker-%d'", n), state)
	}
	w.Exec("INSERT INTO session_clients (session, address, first_at, last_at, connections, bytes) SELECT s.seq, " +
		"'198.51.100.7', s.created_at, s.created_at, 12, 2500000 " + of)
	w.Exec("INSERT INTO session_hosts (session, day, host, connections, failures, bytes) SELECT s.seq, " +
		"s.created_at - s.created_at % 86400000000, 'example.com', 12, 0, 2500000 " + of)
}
