package storage_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/exitlog"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// manyEnded fills an agent's list: of every 100 sessions 2 live, 1 failed, 97 expired, and 1 is of
// the product rare.
func manyEnded(t *testing.T, st *storage.Store, n int) {
	t.Helper()
	addAgent(t, st, "agt_1", 0)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		s := dynamicSession("agt_1", "sess_first")
		s.Status = session.Expired
		return tx.Sessions().Insert(ctx, s)
	})
	const insert = `WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d)
		INSERT INTO sessions (%s) SELECT %s FROM numbers, sessions s WHERE s.id = 'sess_first'`
	names := sessionTable(t, st)
	values := make([]string, len(names))
	for i, name := range names {
		switch name {
		case "id":
			values[i] = "'sess_' || n"
		case "ord":
			values[i] = "n"
		case "status":
			values[i] = "CASE n % 100 WHEN 0 THEN 'active' WHEN 1 THEN 'creating' WHEN 2 THEN 'failed' ELSE 'expired' END"
		case "product_no":
			values[i] = "CASE n % 100 WHEN 50 THEN 'rare' ELSE 'usual' END"
		default:
			values[i] = "s." + name
		}
	}
	for _, statement := range []string{fmt.Sprintf(insert, n, strings.Join(names, ", "), strings.Join(values, ", "))} {
		if _, err := st.Writer().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	analyze(t, st)
}

// analyze has PostgreSQL count what its plans go by. The program counts nothing on SQLite, where readers would go by it
// or not as they were opened.
func analyze(t *testing.T, st *storage.Store) {
	t.Helper()
	if st.Pool() != nil {
		execAll(t, st, "VACUUM ANALYZE")
	}
}

// sessionTable lists the columns of sessions without its key.
func sessionTable(t *testing.T, st *storage.Store) (names []string) {
	t.Helper()
	rows, err := st.Writer().Query("SELECT * FROM sessions LIMIT 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range all {
		if name != "seq" {
			names = append(names, name)
		}
	}
	return names
}

// removed matches how many rows a plan of PostgreSQL read and did not need.
var removed = regexp.MustCompile(`Rows Removed by Filter: (\d+)`)

// TestListsOfManySessionsUseTheirIndexes reads plans instead of a clock: what a query reads is what
// it needs, however many sessions an agent ever had.
func TestListsOfManySessionsUseTheirIndexes(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) { listsUseTheirIndexes(t, openAt(t, filepath.Join(t.TempDir(), "plans.db"))) })
	t.Run("PostgreSQL", func(t *testing.T) {
		url := pg.Database(t)
		st := openURL(t, url)
		listsUseTheirIndexes(t, st)
		execAll(t, st, "VACUUM (ANALYZE, INDEX_CLEANUP ON) sessions") // entries of what was counted are returned until then
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		sharedListsReadFew(t, url)
	})
}

// sharedListsReadFew counts what the indexes return to lists that share a round trip: their plans
// are made for any agent and any filter. One that reads what it does not need returns all of the
// agent's sessions.
func sharedListsReadFew(t *testing.T, url string) {
	before := indexReads(t, url)
	st := openURL(t, url)
	for _, f := range []ports.SessionFilter{
		{}, {ProductNo: "rare"}, {ProductNo: "usual"}, {Type: session.Dynamic}, {Status: session.Failed},
		{Status: session.Active}, {ProductNo: "rare", Status: session.Expired}, {ProductNo: "usual", Status: session.Failed},
	} {
		if err := sameList(t, st, ports.SessionPage{Filter: f, Page: domain.Page{Number: 1, Size: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	if n := indexReads(t, url) - before; n > 400 {
		t.Errorf("the lists read %d rows of sessions", n)
	}
}

// indexReads returns how many rows of sessions were found by their indexes or scans since the
// statistics began, once no other connection is open: each hands in its counts when it ends.
func indexReads(t *testing.T, url string) (n int64) {
	t.Helper()
	deadlocks(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT (SELECT SUM(idx_tup_read) FROM pg_stat_user_indexes WHERE relname = 'sessions') +
		(SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'sessions')`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func listsUseTheirIndexes(t *testing.T, st *storage.Store) {
	manyEnded(t, st, 2000)
	hour := now.Truncate(time.Hour).Add(-2 * time.Hour) // it is over, and counted
	for _, statement := range []string{fmt.Sprintf(`INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
		SELECT agent_id, %d, id, 1, 2, 3, ord, 0, 0 FROM sessions`, hour.UnixMicro()),
		"UPDATE sessions SET bought_by = 'key_' || (ord % 100)"} {
		if _, err := st.Writer().Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	sumUp(t, st)
	analyze(t, st)
	list := func(f ports.SessionFilter) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().List(ctx, "agt_1", f, domain.Page{Number: 1, Size: 20})
			return err
		}
	}
	byKey := "usage_hours_pkey"
	if st.Pool() == nil {
		byKey = "PRIMARY KEY (agent_id=? AND session_id=?"
	}
	for _, c := range []struct {
		name, index string
		fn          func(context.Context, ports.Tx) error
	}{
		{"by product", "sessions_product", list(ports.SessionFilter{ProductNo: "rare"})},
		{"by status", "sessions_status", list(ports.SessionFilter{Status: session.Failed})},
		{"by a status of live ones", "sessions_open", list(ports.SessionFilter{Status: session.Active})},
		{"by product and a status of live ones", "sessions_open", list(ports.SessionFilter{ProductNo: "rare", Status: session.Active})},
		{"the counts", "sessions_", func(ctx context.Context, tx ports.Tx) error {
			n, err := tx.Sessions().Count(ctx, "agt_1")
			if want := (ports.SessionCount{Creating: 19, Active: 20, Total: 2000}); n != want {
				t.Errorf("counted %+v, want %+v", n, want)
			}
			return err
		}},
		{"what is not charged yet", "sessions_unbooked", func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().Unbooked(ctx, "agt_1")
			return err
		}},
		{"the sessions of a key", "sessions_buyer", func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Sessions().KeyCount(ctx, "agt_1", "key_1")
			return err
		}},
		{"the hours of a key", "sessions_buyer", func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().KeyHours(ctx, "agt_1", "key_1", hour, hour.Add(168*time.Hour))
			return err
		}},
		{"the risks", "sessions_", func(ctx context.Context, tx ports.Tx) error {
			list, err := tx.Health().Summaries(ctx, "agt_1", 50)
			if len(list) != 39+49 { // 39 live ones, and of the last 50 all but the one of them that is live
				t.Errorf("the risks read %d sessions", len(list))
			}
			return err
		}},
		{"the risks of a label", "sessions_", func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Health().LiveSummaries(ctx, "agt_1", ports.SessionFilter{LabelKey: "team", LabelValue: "prices"})
			return err
		}},
		{"live ones by a part of an exit", "sessions_", func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Health().LiveSummaries(ctx, "agt_1", ports.SessionFilter{Part: "192.0.2."})
			return err
		}},
		{"the hours of a session", byKey, func(ctx context.Context, tx ports.Tx) error {
			_, err := tx.Statements().SessionHours(ctx, "agt_1", "sess_7", hour, hour.Add(168*time.Hour))
			return err
		}},
		{"a page of the report", byKey, func(ctx context.Context, tx ports.Tx) error {
			got, totals, err := tx.Statements().SessionTotalsPage(ctx, "agt_1", hour, hour.Add(time.Hour), domain.Page{Number: 3, Size: 20})
			if len(got.Items) != 20 || got.Total != 2000 || got.Items[0].Place != 1960 || got.Items[19].Charged != 1941 || got.Next != 1941 ||
				totals.Charged != 2000*2001/2 || totals.Connections != 6000 {
				t.Errorf("the third page is %+v of %+v", got, totals)
			}
			return err
		}},
		{"by type", "sessions_", list(ports.SessionFilter{Type: session.Dynamic})},
		{"by a type that no session has", "sessions_", list(ports.SessionFilter{Type: session.Static})},
	} {
		plans, err := st.Plans(t.Context(), c.fn)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if len(plans) == 0 {
			t.Fatalf("%s: no plan", c.name)
		}
		all := strings.Join(plans, "\n\n")
		if !strings.Contains(all, c.index) {
			t.Errorf("%s does not use %s:\n%s", c.name, c.index, all)
		}
		if strings.Contains(all, "Seq Scan on sessions ") || strings.Contains(all, "SCAN s") && !strings.Contains(all, "CO-ROUTINE s\n") {
			t.Errorf("%s reads the whole table:\n%s", c.name, all)
		}
		if strings.Contains(all, "ord>? AND ord<?)") {
			t.Errorf("%s reads the sessions between those that it shows:\n%s", c.name, all)
		}
		for _, m := range removed.FindAllStringSubmatch(all, -1) {
			if n, _ := strconv.Atoi(m[1]); n > 100 {
				t.Errorf("%s reads %d rows that it does not need:\n%s", c.name, n, all)
			}
		}
	}
}

// TestALookUpOfExitsReadsItsTimeAlone: by whatever one looks, the days that are kept beside it are not read.
func TestALookUpOfExitsReadsItsTimeAlone(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, st *storage.Store, empty string) {
		fill := `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
			INSERT INTO exit_log (at, replica, n, body) SELECT CAST(n AS BIGINT) * 300000000, 'gw_1', 0, ` + empty + ` FROM numbers`
		execAll(t, st, fill)
		analyze(t, st)
		plans, err := st.Plans(t.Context(), func(ctx context.Context, tx ports.Tx) error {
			from, to := exitlog.Query{At: time.Unix(3_000_000, 0), Within: time.Hour}.Stored()
			return tx.ExitLog().Between(ctx, from, to, func(exitlog.Connection) {})
		})
		all := strings.Join(plans, "\n")
		if err != nil && !strings.Contains(err.Error(), "chunk") { // the bodies are empty
			t.Fatal(err)
		}
		if !strings.Contains(all, "exit_log_at") || strings.Contains(all, "Seq Scan") || strings.Contains(all, "SCAN") || removed.MatchString(all) {
			t.Errorf("it reads more than its time:\n%s", all)
		}
	}
	t.Run("SQLite", func(t *testing.T) { check(t, openAt(t, filepath.Join(t.TempDir(), "plans.db")), "x''") })
	t.Run("PostgreSQL", func(t *testing.T) { check(t, openURL(t, pg.Database(t)), "''") })
}

func TestDaysOfTheFeedAreDropped(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	at := time.Now().UTC()
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(url), Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	today := at.Unix() / 86400
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := st.Writer().Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	days := func() (n int, first, last int64) {
		t.Helper()
		err := st.Writer().QueryRow(`SELECT COUNT(*), MIN(substring(c.relname FROM 15)::bigint), MAX(substring(c.relname FROM 15)::bigint)
			FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
			WHERE i.inhparent = 'event_chunks'::regclass AND c.relname LIKE 'event_chunks_d%'`).Scan(&n, &first, &last)
		if err != nil {
			t.Fatal(err)
		}
		return n, first, last
	}
	if n, first, last := days(); n != 14 || first != today+1 || last != today+14 {
		t.Errorf("the migration made %d days, %d to %d, today is %d", n, first, last, today)
	}
	for day := today; day < today+15; day++ {
		exec(`INSERT INTO event_chunks (session, last_no, n, last_at, body, day) VALUES (1, $1::bigint, 1, $1::bigint * 86400000000, '', $1::bigint)`, day)
	}
	left := func(table string) (n int) {
		t.Helper()
		if err := st.Writer().QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := left("event_chunks_rest"); n != 1 {
		t.Errorf("%d rows are in the default partition, want today's", n)
	}
	const week = 7 * 24 * time.Hour
	for _, step := range []struct {
		after             int64 // days
		days, rows        int
		firstDay, lastDay int64
	}{
		{0, 14, 15, 1, 14},
		{8, 14, 15, 1, 14}, // the day after this one ended less than a week ago
		{9, 13, 14, 2, 14},
		{13, 22, 10, 6, 27}, // one day is left, so those up to the fourteenth are made
	} {
		at = time.Unix((today+step.after)*86400+3600, 0).UTC()
		if err := st.MeasureClock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := st.KeepPartitions(t.Context(), week); err != nil {
			t.Fatal(err)
		}
		n, first, last := days()
		if n != step.days || first != today+step.firstDay || last != today+step.lastDay || left("event_chunks") != step.rows {
			t.Errorf("after %d days: %d days from %d to %d with %d rows, want %+v", step.after, n, first-today, last-today, left("event_chunks"), step)
		}
	}
	exec(`INSERT INTO event_chunks (session, last_no, n, last_at, body, day) VALUES (1, 1, 1, 0, '', $1)`, today+27)
	if n := left("event_chunks_d" + strconv.FormatInt(today+27, 10)); n != 1 {
		t.Error("a day that was made later does not take its rows")
	}
	if n, _, _ := days(); left("pg_indexes WHERE tablename LIKE 'event_chunks_d%'") != n {
		t.Errorf("the %d days have %d indexes, want one each", n, left("pg_indexes WHERE tablename LIKE 'event_chunks_d%'"))
	}
}

// A plan that is made before the table is analyzed finds the sessions of the agents that are asked for, and does
// not read those of all: it stays until the table is analyzed.
func TestABalanceReadsTheSessionsOfItsAgentBeforeTheyAreAnalyzed(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	tx, err := st.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	for _, statement := range []string{"SET LOCAL plan_cache_mode = force_generic_plan", "SET LOCAL enable_seqscan = off",
		"PREPARE holding (text[]) AS " + storage.HoldingAhead} {
		if _, err := tx.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	rows, _ := tx.Query(t.Context(), "EXPLAIN EXECUTE holding ('{agt_1}')", pgx.QueryExecModeSimpleProtocol)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if text := strings.Join(plan, "\n"); err != nil || !regexp.MustCompile(`Index Cond: .*agent_id = `).MatchString(text) {
		t.Errorf("the plan is %s (%v)", text, err)
	}
}
