package pg_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentproxy/test/pg"
)

// connect opens a connection that is closed when the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// ask runs a query and returns the text that it selects.
func ask(t *testing.T, url, query string) (text string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// What a test leaves behind does not reach the next one, which gets the same
// database unless the schema has changed.
func TestADatabaseIsReset(t *testing.T) {
	const (
		identity = `SELECT oid::text FROM pg_database WHERE datname = current_database()`
		content  = `SELECT format('%s changes up to %s, %s migrations, %s tables, %s triggers', (SELECT count(*) FROM changes),
			(SELECT last_value FROM changes_no), (SELECT count(*) FROM goose_db_version), (SELECT count(*) FROM pg_tables WHERE schemaname = 'public'),
			(SELECT count(*) FROM pg_trigger WHERE tgenabled = 'O'))`
	)
	var oid, pristine string
	t.Run("pristine", func(t *testing.T) {
		url := pg.Database(t)
		oid, pristine = ask(t, url, identity), ask(t, url, content)
	})
	for _, c := range []struct {
		left, statement string
		reused          bool
	}{
		{"nothing", ``, true},
		{"rows", `INSERT INTO changes (agent_id, session_id, at) VALUES ('a', 's', 1)`, true},
		{"a migration", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, true},
		{"the same migration", `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`, true},
		{"a missing row", `DELETE FROM goose_db_version WHERE id = 1`, true},
		{"a table", `CREATE TABLE left_over AS SELECT 1 AS n`, true},
		{"a dropped trigger", `DROP TRIGGER ledger_entries_keep ON ledger_entries`, false},
		{"a disabled trigger", `ALTER TABLE ledger_entries DISABLE TRIGGER USER`, false},
		{"a dropped index", `DROP INDEX sessions_agent`, false},
	} {
		t.Run(c.left, func(t *testing.T) {
			if _, err := connect(t, pg.Database(t)).Exec(t.Context(), c.statement); err != nil {
				t.Fatal(err)
			}
		})
		t.Run("after "+c.left, func(t *testing.T) {
			url := pg.Database(t)
			if got := ask(t, url, content); got != pristine {
				t.Errorf("the database has %s, want %s", got, pristine)
			}
			if got := ask(t, url, identity); (got == oid) != c.reused {
				t.Errorf("the database is reused: %t, want %t", got == oid, c.reused)
			} else {
				oid = got
			}
		})
	}
}

// A connection that a test leaves open is closed, and its name leads nowhere.
func TestADatabaseHasOneUser(t *testing.T) {
	var url string
	var conn *pgx.Conn
	t.Run("leaves a connection", func(t *testing.T) {
		url = pg.Database(t)
		var err error
		if conn, err = pgx.Connect(context.Background(), url); err != nil {
			t.Fatal(err)
		}
	})
	if err := conn.Ping(t.Context()); err == nil {
		t.Error("the connection is open after the test")
	}
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the database has its name after the test")
	}
}

// The second process finds the template that the first one has made.
func TestProcessesShareATemplate(t *testing.T) {
	s := pg.Start(t)
	const templates = `SELECT string_agg(oid || ' ' || datname, ', ') FROM pg_database WHERE datname LIKE 'agentproxy_template_%'`
	process := func() string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestADatabaseHasOneUser$")
		cmd.Env = append(os.Environ(), "TEST_POSTGRES_DSN="+s.URL("postgres"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return ask(t, s.URL("postgres"), templates)
	}
	first := process()
	if second := process(); second != first || strings.Contains(first, ",") {
		t.Errorf("the first process leaves %s, the second %s", first, second)
	}
}
