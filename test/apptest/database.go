package apptest

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// Exec executes a statement whose parameters are ? on both databases. On SQLite it has a connection of its own, as the
// process of an operator has: the store keeps rows in memory until another connection changes the file.
func (w *World) Exec(statement string, args ...any) {
	w.T.Helper()
	db := w.DB.Writer()
	if !w.Postgres() {
		file, err := sql.Open("sqlite3", "file:"+w.Database+"?_busy_timeout=10000&_foreign_keys=on&_recursive_triggers=on")
		OK(w.T, err)
		defer file.Close()
		db = file
	}
	_, err := db.Exec(w.sql(statement), args...)
	OK(w.T, err)
}

// Column returns the first column of a query whose parameters are ? on both databases.
func (w *World) Column(query string, args ...any) (found []string) {
	w.T.Helper()
	rows, err := w.DB.Writer().Query(w.sql(query), args...)
	if err != nil {
		w.T.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var s string
		OK(w.T, rows.Scan(&s))
		found = append(found, s)
	}
	OK(w.T, rows.Err())
	return found
}

// Dump returns the rows of all tables as text, to compare before and after.
func (w *World) Dump() string {
	w.T.Helper()
	var b strings.Builder
	tables := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'
		AND name NOT LIKE 'river%' AND name NOT LIKE 'goose%' ORDER BY name`
	columns := `SELECT 'quote(' || name || ')' FROM pragma_table_info(?)`
	if w.Postgres() {
		tables = `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
			AND table_name NOT LIKE 'river%' AND table_name NOT LIKE 'goose%' ORDER BY 1`
		columns = `SELECT 'quote_nullable(' || column_name || ')' FROM information_schema.columns WHERE table_name = ? ORDER BY ordinal_position`
	}
	for _, table := range w.Column(tables) {
		columns := w.Column(columns, table)
		rows := w.Column("SELECT " + strings.Join(columns, " || '|' || ") + " FROM " + table + " ORDER BY 1")
		fmt.Fprintf(&b, "%s\n%s\n", table, strings.Join(rows, "\n"))
	}
	return b.String()
}

// LetArchive has the database let programs archive, as it does a week after it was migrated.
func (w *World) LetArchive() {
	w.T.Helper()
	w.Exec("UPDATE service_values SET value = ? WHERE name = 'archive-from'", []byte("0"))
}

// newDatabase returns the path of a new SQLite database, or the URL of a PostgreSQL database if
// TEST_STORE is postgres.
func newDatabase(t testing.TB, disk bool) string {
	switch {
	case os.Getenv("TEST_STORE") == "postgres":
		return pg.Database(t)
	case disk:
		return sqlitetest.File(t)
	}
	return sqlitetest.InMemory(t)
}

// OpenStore opens a store whose jobs are rows of the table test_jobs, written by the unit of work
// that inserts the job, as in River. The caller closes it.
func OpenStore(t testing.TB, c storage.Config) *storage.Store {
	t.Helper()
	db, err := storage.Open(context.Background(), c)
	OK(t, err)
	key := "INTEGER"
	if c.Path == "" {
		key = "BIGSERIAL"
	}
	_, err = db.Writer().Exec(`CREATE TABLE IF NOT EXISTS test_jobs
		(n ` + key + ` PRIMARY KEY, kind TEXT, session TEXT, due BIGINT)`)
	OK(t, err)
	db.SetJobInserter(func(ctx context.Context, tx storage.JobTx, jobs []ports.Job, now time.Time) error {
		for _, j := range jobs {
			_, err := tx.Conn.ExecContext(ctx, `INSERT INTO test_jobs (kind, session, due) VALUES ($1, $2, $3)`, j.Kind,
				j.SessionID+j.DeliveryID, cmp.Or(j.At, now.Add(j.After)).UnixMicro())
			if err != nil {
				return err
			}
		}
		return nil
	})
	return db
}

// OpenPostgres opens a world on PostgreSQL, which locks rows. When the test ends, it checks that no
// two of the world's transactions deadlocked: each deadlock delays its waiters by a second.
func OpenPostgres(t testing.TB) *World {
	t.Helper()
	w, done := Start(t, Options{Database: pg.Database(t)})
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, w.Database)
	OK(t, err)
	const counted = `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`
	var before, after int64
	OK(t, conn.QueryRow(ctx, counted).Scan(&before))
	t.Cleanup(func() {
		defer conn.Close(ctx)
		done()
		// A connection reports what it counted when it is closed, at the latest.
		for others := 1; others > 0; time.Sleep(10 * time.Millisecond) {
			OK(t, conn.QueryRow(ctx, `SELECT COUNT(*) FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others))
		}
		OK(t, conn.QueryRow(ctx, counted).Scan(&after))
		Equal(t, "the number of deadlocks", after-before, 0)
	})
	return w
}

// Postgres reports whether the database is PostgreSQL.
func (w *World) Postgres() bool { return strings.HasPrefix(w.Database, "postgres") }

// sql returns a statement with the placeholders of the database in place of each ?.
func (w *World) sql(statement string) string {
	for n := 1; w.Postgres() && strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}
