package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// appendEvent appends an event of agt_1 that is a second old.
func appendEvent(t *testing.T, st ports.Store, id string) {
	t.Helper()
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Outbox().Append(ctx, webhook.Event{ID: id, AgentID: "agt_1", Type: webhook.BalanceLow, At: now.Add(-time.Second),
			Data: map[string]string{"n": "1"}})
	})
}

// readEvents reads the feed of agt_1 once: the ids, and the place behind them.
func readEvents(t *testing.T, st ports.Store, after int64) (ids string, next int64, later bool, err error) {
	t.Helper()
	err = st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		page, err := tx.Outbox().Feed(ctx, ports.FeedQuery{AgentID: "agt_1", After: after, Types: webhook.Types, Limit: 50})
		for _, e := range page.Events {
			ids = strings.TrimSpace(ids + " " + e.ID)
		}
		next, later = page.Next, page.Later
		return err
	})
	return ids, next, later, err
}

func expectEvents(t *testing.T, st ports.Store, after int64, want string) (next int64) {
	t.Helper()
	ids, next, _, err := readEvents(t, st, after)
	if err != nil || ids != want {
		t.Errorf("behind %d are %q, want %q: %v", after, ids, want, err)
	}
	return next
}

// A server begins to count transactions anew, and a dump has places from beyond.
func TestEventsOfADumpThatAnotherServerRestored(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("pg_dump"); err != nil {
		t.Skip(err)
	}
	first, second := pg.Start(t), pg.Start(t)
	from, to := first.Database(t), second.URL("postgres")
	plain, _, _ := strings.Cut(from, "?") // without what the driver of Go alone understands
	_, host, _ := strings.Cut(first.URL("postgres"), "?")
	// The second server has not given these numbers.
	burn, err := pgx.Connect(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer burn.Close(context.Background())
	if _, err := burn.Exec(t.Context(), "DO $$BEGIN FOR i IN 1..3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END$$"); err != nil {
		t.Fatal(err)
	}
	old := openURL(t, from)
	appendEvent(t, old, "evt_1")
	cursor := expectEvents(t, old, 0, "evt_1")
	appendEvent(t, old, "evt_2")
	dump, err := exec.CommandContext(t.Context(), "pg_dump", plain+"?"+host).Output()
	if err != nil {
		t.Fatal(err)
	}
	restore := exec.CommandContext(t.Context(), "psql", "-q", "-v", "ON_ERROR_STOP=1", to)
	restore.Stdin = bytes.NewReader(dump)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	st := openURL(t, to)
	expectEvents(t, st, 0, "evt_1 evt_2")
	next := expectEvents(t, st, cursor, "evt_2")
	appendEvent(t, st, "evt_3")
	next = expectEvents(t, st, next, "evt_3")
	again := openURL(t, to) // another process changes nothing more
	expectEvents(t, again, next, "")
	appendEvent(t, again, "evt_4")
	next = expectEvents(t, st, next, "evt_4")
	goesOnBehindWhatWasLost(t, st, next+5000<<20)
}

// goesOnBehindWhatWasLost follows a cursor that was given out before the database went back in time.
func goesOnBehindWhatWasLost(t *testing.T, st *storage.Store, lost int64) {
	t.Helper()
	if ids, _, _, err := readEvents(t, st, lost); !errors.Is(err, ports.ErrMissed) {
		t.Errorf("behind a place of the future are %q: %v", ids, err)
	}
	for n := range 2 {
		if err := st.RaiseFeed(t.Context()); err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("evt_later_", n)
		expectEvents(t, st, lost, "")
		appendEvent(t, st, id)
		lost = expectEvents(t, st, lost, id)
	}
	if ids, _, _, err := readEvents(t, st, 0); err != nil || !strings.HasSuffix(ids, "evt_later_0 evt_later_1") {
		t.Errorf("all are %q: %v", ids, err)
	}
}

func TestEventsGoOnBehindACopyThatIsRestored(t *testing.T) {
	t.Parallel()
	st := openStore(t)
	goesOnBehindWhatWasLost(t, st, 1<<31)
}

// A transaction that is under way in another database of the server holds no event up; one of this database does, as
// it may still write an event in front.
func TestTransactionsOfOtherDatabasesHoldNoEventUp(t *testing.T) {
	t.Parallel()
	server := pg.Start(t)
	url := server.Database(t)
	st := openURL(t, url)
	begin := func(url string) func() {
		t.Helper()
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		if _, err := c.Exec(t.Context(), "BEGIN; SELECT pg_current_xact_id()"); err != nil {
			t.Fatal(err)
		}
		return func() {
			t.Helper()
			if _, err := c.Exec(t.Context(), "COMMIT"); err != nil {
				t.Fatal(err)
			}
		}
	}
	held := func(want time.Duration) {
		t.Helper()
		if got, err := st.FeedHeld(t.Context()); got != want || err != nil {
			t.Errorf("the feeds are held up for %v, want %v: %v", got, want, err)
		}
	}
	held(0)
	endOther := begin(server.URL("postgres"))
	appendEvent(t, st, "evt_1")
	held(0)
	next := expectEvents(t, st, 0, "evt_1")
	expectEvents(t, st, next, "")
	end := begin(url)
	appendEvent(t, st, "evt_2")
	if ids, _, later, err := readEvents(t, st, next); ids != "" || !later || err != nil {
		t.Errorf("in front of a transaction of this database are %q, %t, %v", ids, later, err)
	}
	held(time.Second)
	update(t, st, func(ctx context.Context, tx ports.Tx) error { // a newer one changes nothing
		return tx.Outbox().Append(ctx, webhook.Event{ID: "evt_3", AgentID: "agt_2", Type: webhook.BalanceLow, At: now})
	})
	held(time.Second)
	end()
	next = expectEvents(t, st, next, "evt_2")
	held(0)
	if ids, _, later, err := readEvents(t, st, next); ids != "" || later || err != nil {
		t.Errorf("at the end are %q, %t, %v", ids, later, err)
	}
	endOther()
	expectEvents(t, st, next, "")
}

// A process whose start has to mend the order of events does not fail because a transaction has the table, as that of
// a dump under way: it asks again, and holds others up for moments alone.
func TestAStartWaitsForTheEventsThatItMends(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	appendEvent(t, st, "evt_1")
	execAll(t, st, "UPDATE outbox SET place = place + (5000::bigint << 20)")
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), "BEGIN; LOCK TABLE outbox IN ACCESS SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() {
		again, err := storage.Open(context.Background(), storage.Config{URL: storage.URL(url)})
		if err == nil {
			err = again.Close()
		}
		started <- err
	}()
	waits := func() (n int) {
		select {
		case err := <-started:
			t.Fatalf("the start ended: %v", err)
		default:
		}
		query := "SELECT COUNT(*) FROM pg_locks WHERE relation = 'outbox'::regclass AND NOT granted"
		if err := c.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		eventually(t, "the start asks for the lock", func() bool { return waits() == 1 })
		eventually(t, "it gives up for the moment", func() bool { return waits() == 0 })
	}
	if _, err := c.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	if err := <-started; err != nil {
		t.Error(err)
	}
	expectEvents(t, st, 0, "evt_1")
}
