//go:build campaign

package growth_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

var (
	few  = flag.Int("growth.few", 10_000, "sessions of the small agent whose reads are counted")
	many = flag.Int("growth.many", 100_000, "sessions of the large agent whose reads are counted")
	rest = flag.Int("growth.rest", 19, "other agents with as many sessions as the small one")
)

// What a call may read of a large database more than of a small one, beside twice as much: indexes have more levels, and the
// rows of a page are in more or fewer blocks.
const (
	moreRows   = 200
	moreBlocks = 400
)

// readMore are the calls that read more, and how many rows at most: reports what is summed of days and what is newer, a page
// of agents their live sessions, and a statement what is kept of each session of its month.
var readMore = map[string]func(before, sums int64) int64{
	"operator, days": ofSums, "margin by day": ofSums, "margin by provider": ofSums, "margin by product": ofSums,
	"margin by agent":          ofSums,
	"operator, agents":         func(int64, int64) int64 { return 20 * 3 * lives },
	"statement":                ofSessions,
	"statement, a month ago":   ofSessions,
	"statement by key":         ofSessions,
	"statement by key, before": ofSessions,
}

func ofSums(_, sums int64) int64       { return sums }
func ofSessions(before, _ int64) int64 { return before * int64(max(1, *many / *few)) }

// TestCallsReadAsMuchOfALargeDatabase counts on PostgreSQL the rows and blocks that each call reads of an agent with 10,000
// sessions, and of one with 100,000 among 300,000: as many, but for those of readMore. It prints them and how long each
// takes. SQLite counts neither: there it prints the times, and storage tests hold its plans.
func TestCallsReadAsMuchOfALargeDatabase(t *testing.T) {
	alone, _ := counted(t, *few)
	of := make([]int, *rest+2) // the large agent, the small one, and others
	for i := range of {
		of[i] = *few
	}
	of[0] = *many
	after, sums := counted(t, of...)
	compare(t, "the large agent", alone[0], after[0], sums)
	compare(t, "a small agent among the others", alone[0], after[1], sums)
}

// counted returns the efforts of the calls of the first two agents of a database, whose agents have these numbers of sessions,
// and how many rows a report of margins may read.
func counted(t *testing.T, sessions ...int) (list []map[string]effort, sums int64) {
	w := apptest.Open(t, apptest.Options{Database: database(t)})
	w.RegisterFunded(1) // the first entry, from whose day on days are kept
	w.Clock.Advance(clonePeriod + session.Day)
	apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
	numbers(w, sessions[0])
	var all []filled
	for _, n := range sessions {
		all = append(all, fill(w, n, lives))
	}
	if w.Postgres() { // entries are in the order of their time, as those of a service
		w.Exec("CREATE INDEX growth_at ON ledger_entries (at)")
		w.Exec("CLUSTER ledger_entries USING growth_at")
		w.Exec("DROP INDEX growth_at")
	}
	vacuum(w)
	for range 3 { // PostgreSQL sums what was there at the end of the run before, a minute ago
		apptest.OK(t, w.DB.SumUp(t.Context()))
		w.Clock.Advance(time.Minute)
	}
	vacuum(w)
	r := counter(t, w)
	for _, f := range all[:min(2, len(all))] {
		list = append(list, r.measure(f))
	}
	w.Exec("DROP TABLE growth_n")
	return list, ofReports(w)
}

// ofReports returns how many rows a report may read: what is summed of days, in a table and an index, what live sessions
// have used, and of each entry and each hour that is newer its session, its orders and its other hours.
func ofReports(w *apptest.World) int64 {
	count := func(of string) int64 {
		n, err := strconv.ParseInt(w.Column("SELECT COUNT(*) FROM " + of)[0], 10, 64)
		apptest.OK(w.T, err)
		return n
	}
	days := count("margin_sums") + count("delivery_sums") + count("account_days")
	live := count("sessions WHERE status IN ('creating', 'active')")
	newer := count("ledger_entries WHERE seq > "+summedUpTo(w)) + count("usage_hours WHERE counted = 0")
	w.T.Logf("%d rows of days, %d live sessions, %d entries and hours that are newer", days, live, newer)
	return 2*days + 8*live + 12*newer + moreRows
}

// summedUpTo returns the number of the last entry that the report of margins has in its sums.
func summedUpTo(w *apptest.World) string {
	var d struct {
		Mark int64 `json:"mark"`
	}
	value := "CAST(value AS TEXT)"
	if w.Postgres() {
		value = "convert_from(value, 'UTF8')"
	}
	apptest.OK(w.T, json.Unmarshal([]byte(w.Column("SELECT " + value + " FROM service_values WHERE name = 'margin-entries'")[0]), &d))
	return strconv.FormatInt(d.Mark, 10)
}

// effort is what a call took and read.
type effort struct {
	took         time.Duration
	rows, blocks int64
}

// reads counts what calls read.
type reads struct {
	t    *testing.T
	w    *apptest.World
	conn *pgx.Conn // nil on SQLite
}

func counter(t *testing.T, w *apptest.World) *reads {
	r := &reads{t: t, w: w}
	if w.Postgres() {
		conn, err := pgx.Connect(t.Context(), w.Database)
		apptest.OK(t, err)
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		r.conn = conn
	}
	return r
}

// total returns the rows and blocks that were read of all tables since the database began. A connection hands in what it
// counted when it ends, at the latest.
func (r *reads) total() (e effort) {
	if r.conn == nil {
		return e
	}
	ctx := r.t.Context()
	r.w.DB.Pool().Reset()
	for others := 1; others > 0; time.Sleep(10 * time.Millisecond) {
		apptest.OK(r.t, r.conn.QueryRow(ctx, `SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database()
			AND backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&others))
	}
	apptest.OK(r.t, r.conn.QueryRow(ctx, `SELECT
		(SELECT SUM(seq_tup_read + COALESCE(idx_tup_fetch, 0)) FROM pg_stat_user_tables)
			+ (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes),
		SUM(heap_blks_read + heap_blks_hit + COALESCE(idx_blks_read + idx_blks_hit, 0)
			+ COALESCE(toast_blks_read + toast_blks_hit, 0)) FROM pg_statio_user_tables`).Scan(&e.rows, &e.blocks))
	return e
}

// measure counts what each call of an agent reads once, and how long it takes in the median.
func (r *reads) measure(f filled) map[string]effort {
	w, all := r.w, map[string]effort{}
	for _, c := range slices.Concat(calls(w, f), keyed(w, f)) {
		apptest.OK(r.t, c.do(r.t.Context())) // so that the counted one parses nothing for the first time
		from := r.total()
		apptest.OK(r.t, c.do(r.t.Context()))
		to := r.total()
		took := make([]time.Duration, *rounds)
		for i := range took {
			began := time.Now()
			apptest.OK(r.t, c.do(r.t.Context()))
			took[i] = time.Since(began)
		}
		slices.Sort(took)
		all[c.name] = effort{took[len(took)/2], to.rows - from.rows, to.blocks - from.blocks}
	}
	return all
}

// keyed are the calls of statements as agents make them, with the part of each key.
func keyed(w *apptest.World, f filled) []call {
	w.Exec("UPDATE agents SET created_at = ? WHERE id = ?", w.Clock.Now().Add(-2*clonePeriod).UnixMicro(), f.agent)
	statement := func(at time.Time) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := w.Wallet.ReadStatement(ctx, ledger.StatementQuery{AgentID: f.agent, Month: at.Format("2006-01"), ByKey: true,
				Page: domain.Page{Number: 1, Size: 20}})
			return err
		}
	}
	return []call{
		{"statement by key", statement(w.Clock.Now())},
		{"statement by key, before", statement(w.Clock.Now().Add(-clonePeriod))},
	}
}

// compare logs what calls took and read, and fails where they read more of the large database.
func compare(t *testing.T, title string, before, after map[string]effort, sums int64) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s, beside it alone with %d sessions\n%-26s %9s %9s %9s %9s %9s %9s\n", title, *few, "call", "ms", "alone",
		"rows", "alone", "blocks", "alone")
	for _, name := range slices.Sorted(maps.Keys(after)) {
		x, y := before[name], after[name]
		fmt.Fprintf(&b, "%-26s %9.2f %9.2f %9d %9d %9d %9d\n", name, y.took.Seconds()*1000, x.took.Seconds()*1000,
			y.rows, x.rows, y.blocks, x.blocks)
		rows, blocks := 2*x.rows+moreRows, 2*x.blocks+moreBlocks
		if more, known := readMore[name]; known {
			rows, blocks = more(x.rows, sums), y.blocks
		}
		if y.rows > rows || y.blocks > blocks {
			t.Errorf("%s, %s: reads %d rows in %d blocks; of the small database %d in %d", title, name, y.rows, y.blocks,
				x.rows, x.blocks)
		}
	}
	t.Log(b.String())
}
