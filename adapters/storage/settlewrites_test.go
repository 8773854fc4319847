package storage_test

import (
	"context"
	"database/sql"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"agentproxy/domain"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// charge moves a dollar of what a session holds, as a settlement does.
func charge(ctx context.Context, tx ports.Tx) error {
	s, err := tx.Sessions().Load(ctx, "sess_1")
	if err != nil {
		return err
	}
	s.Money.Held.Own -= domain.Dollar
	s.Money.Charged.Own += domain.Dollar
	return tx.Sessions().Put(ctx, s)
}

// insertHolding inserts the session that charge charges.
func insertHolding(ctx context.Context, tx ports.Tx) error {
	s := dynamicSession("agt_1", "sess_1")
	s.Money.Held.Own = 9 * domain.Dollar
	return tx.Sessions().Insert(ctx, s)
}

// The state and the end of a session are in indexes, and a settlement changes neither.
func TestASettlementChangesNoIndexOfSessionsOnSQLite(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	addAgent(t, st, "agt_1", 0)
	update(t, st, insertHolding)
	statements, err := st.Statements(t.Context(), charge)
	if err != nil {
		t.Fatal(err)
	}
	writes := 0
	for _, statement := range statements {
		if !strings.HasPrefix(statement, "UPDATE sessions ") {
			continue
		}
		writes++
		for _, index := range indexesOf(t, st.Writer(), statement) {
			if index != "sessions_ended" { // has sessions that were counted alone, which none is that can be charged
				t.Errorf("entries of the index %s are written:\n%s", index, statement)
			}
		}
	}
	if writes != 1 {
		t.Errorf("the session is written %d times: %q", writes, statements)
	}
}

// indexesOf lists the indexes into which SQLite may write entries for a statement.
func indexesOf(t *testing.T, db *sql.DB, statement string) (names []string) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN "+statement, make([]any, highest(statement))...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	roots, written := map[int]int{}, map[int]bool{} // by cursor
	for rows.Next() {
		var opcode string
		var cursor, root int
		var rest [5]any
		err := rows.Scan(&rest[0], &opcode, &cursor, &root, &rest[1], &rest[2], &rest[3], &rest[4])
		if err != nil {
			t.Fatal(err)
		}
		switch opcode {
		case "OpenWrite":
			roots[cursor] = root
		case "IdxInsert":
			written[cursor] = true
		}
	}
	if rows.Err() != nil || len(roots) == 0 {
		t.Fatalf("%d tables and indexes are opened, %v", len(roots), rows.Err())
	}
	for cursor := range written {
		var name string
		err := db.QueryRowContext(t.Context(), "SELECT name FROM sqlite_schema WHERE rootpage = ?", roots[cursor]).Scan(&name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// PostgreSQL keeps the entries of a row whose indexed values stay, and counts such updates.
func TestASettlementChangesNoIndexOfSessionsOnPostgreSQL(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	all, kept := updates(t, url)
	st := openURL(t, url)
	addAgent(t, st, "agt_1", 0)
	update(t, st, insertHolding)
	update(t, st, charge)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	after, keptAfter := updates(t, url)
	if after-all != 1 || keptAfter-kept != 1 {
		t.Errorf("of %d updates of sessions %d kept the entries", after-all, keptAfter-kept)
	}
}

// updates returns how many rows of sessions were updated since the statistics began, and how many of them kept
// their entries, once no other connection is open: each hands in its counts when it ends.
func updates(t *testing.T, url string) (all, kept int) {
	t.Helper()
	deadlocks(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
		WHERE relname = 'sessions'`).Scan(&all, &kept)
	if err != nil {
		t.Fatal(err)
	}
	return all, kept
}
