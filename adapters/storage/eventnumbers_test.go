package storage_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/sqlitetest"
)

// purgeEvents has all events of appendEvent removed.
func purgeEvents(t *testing.T, st ports.Store, want int) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Outbox().Purge(ctx, now.Add(time.Hour), 50)
		if n != want {
			t.Errorf("%d events are removed, want %d", n, want)
		}
		return err
	})
	expectEvents(t, st, 0, "")
}

// The next number of an event on SQLite is behind the highest in the table, so a row with it stays whatever is removed.
func TestNoNumberOfAnEventIsGivenTwice(t *testing.T) {
	t.Parallel()
	path := sqlitetest.File(t)
	st := openAt(t, path)
	again := func() {
		t.Helper()
		if err := st.Close(); err != nil {
			t.Fatal(err)
		}
		st = openAt(t, path)
	}
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		appendEvent(t, st, id)
	}
	end := expectEvents(t, st, 0, "evt_1 evt_2 evt_3")
	purgeEvents(t, st, 3)
	purgeEvents(t, st, 0)
	again()
	if next := expectEvents(t, st, end, ""); next < end {
		t.Errorf("the end goes back from %d to %d", end, next)
	}
	appendEvent(t, st, "evt_4")
	end = expectEvents(t, st, end, "evt_4")

	// A program from before it removes them so.
	execAll(t, st, "DELETE FROM outbox WHERE seq > 0", "DELETE FROM outbox")
	again()
	appendEvent(t, st, "evt_5")
	end = expectEvents(t, st, end, "evt_5")

	if _, _, _, err := readEvents(t, st, end+1); !errors.Is(err, ports.ErrMissed) {
		t.Errorf("behind the end: %v", err)
	}
	purgeEvents(t, st, 2)
	var left int
	if err := st.Writer().QueryRow("SELECT COUNT(*) FROM outbox").Scan(&left); err != nil || left != 1 {
		t.Errorf("%d rows are left: %v", left, err)
	}
}

// Cursors that were given out since a backup was made are refused when it is restored, and later lead to what is new.
func TestNoNumberIsGivenTwiceBehindABackup(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	appendEvent(t, st, "evt_1")
	purgeEvents(t, st, 1)
	file := filepath.Join(t.TempDir(), "copy.db")
	if err := st.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	appendEvent(t, st, "evt_lost_1")
	appendEvent(t, st, "evt_lost_2")
	lost := expectEvents(t, st, 0, "evt_lost_1 evt_lost_2")
	back := openAt(t, file)
	goesOnBehindWhatWasLost(t, back, lost)
}

// Where every event was purged before its table is rebuilt, a row marks the number that was given last.
func TestNumbersOutliveTheRebuildingOfAnEmptyTable(t *testing.T) {
	t.Parallel()
	at := storage.Config{Path: filepath.Join(t.TempDir(), "old.db"), Now: func() time.Time { return now },
		Migrations: before(t, "00055_")}
	old, err := storage.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	execAll(t, old, `INSERT INTO outbox (seq, id, agent_id, type, at, data) VALUES (9, 'evt_9', 'agt_1', 'balance.low', 2, '{}')`,
		"DELETE FROM outbox")
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	st := openAt(t, at.Path)
	expectEvents(t, st, 9, "")
	appendEvent(t, st, "evt_10")
	if next := expectEvents(t, st, 9, "evt_10"); next != 10 {
		t.Errorf("its number is %d", next)
	}
}
