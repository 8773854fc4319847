package storage_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
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

// A unit writes a session once, whatever parts of it change: one that it inserts as it is in the end.
func TestAUnitWritesASessionOnce(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", 0)
		end := now.Add(time.Hour)
		change := func(ctx context.Context, tx ports.Tx) error {
			if err := charge(ctx, tx); err != nil {
				return err
			}
			return errors.Join(tx.Traffic().PutUsage(ctx, "sess_1", traffic.Delta{Up: 7, At: now}),
				tx.Traffic().SetSettleAt(ctx, "sess_1", end))
		}
		buy := func(ctx context.Context, tx ports.Tx) error {
			return errors.Join(insertHolding(ctx, tx), change(ctx, tx))
		}
		for _, unit := range []struct {
			what, write string
			run         func(context.Context, ports.Tx) error
		}{{"bought", "INSERT INTO sessions ", buy}, {"changed", "UPDATE sessions ", change}} {
			statements, err := st.Statements(t.Context(), unit.run)
			if err != nil {
				t.Fatal(err)
			}
			var writes []string
			for _, s := range statements {
				if strings.HasPrefix(s, "INSERT INTO sessions ") || strings.HasPrefix(s, "UPDATE sessions ") {
					writes = append(writes, s)
				}
			}
			// What it used is not inserted.
			if want := map[string]int{"bought": 2, "changed": 1}[unit.what]; len(writes) != want || !strings.HasPrefix(writes[0], unit.write) {
				t.Errorf("a session that is %s is written by %q", unit.what, writes)
			}
			update(t, st, unit.run)
			view(t, st, func(ctx context.Context, tx ports.Tx) error {
				read, err := tx.Sessions().Read(ctx, "agt_1", "sess_1")
				at, errAt := tx.Traffic().SettleAt(ctx, "sess_1")
				if read.Usage.Up != map[string]int64{"bought": 7, "changed": 14}[unit.what] || !at.Equal(end) ||
					read.Money.Charged.Own != map[string]domain.Money{"bought": 1, "changed": 2}[unit.what]*domain.Dollar {
					t.Errorf("a session that is %s has %+v, %+v, settled at %v", unit.what, read.Usage, read.Money, at)
				}
				return errors.Join(err, errAt)
			})
		}
	})
}

// What a unit has written is what later changes of it are compared with: a state or an end that it changes and then
// changes back is written both times.
func TestAStateThatIsChangedBackIsWritten(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		st := open(t)
		addAgent(t, st, "agt_1", 0)
		update(t, st, insertHolding)
		var before session.Session
		update(t, st, func(ctx context.Context, tx ports.Tx) (err error) {
			if before, err = tx.Sessions().Load(ctx, "sess_1"); err != nil {
				return err
			}
			changed := before
			changed.Status, changed.ExpiresAt = session.Terminated, now.Add(time.Hour)
			if err := tx.Sessions().Put(ctx, changed); err != nil {
				return err
			}
			if _, err := tx.Sessions().Count(ctx, "agt_1"); err != nil { // a query, before which it is written
				return err
			}
			return tx.Sessions().Put(ctx, before)
		})
		view(t, st, func(ctx context.Context, tx ports.Tx) error {
			got, err := tx.Sessions().Load(ctx, "sess_1")
			if got.Status != before.Status || !got.ExpiresAt.Equal(before.ExpiresAt) {
				t.Errorf("it is %s until %v, want %s until %v", got.Status, got.ExpiresAt, before.Status, before.ExpiresAt)
			}
			return err
		})
	})
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
