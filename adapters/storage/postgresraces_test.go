package storage_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// awaitLock blocks until a statement on the store's database waits for a lock.
func awaitLock(t *testing.T, st *storage.Store) {
	t.Helper()
	eventually(t, "a statement waits for a lock", func() bool { return lockWaits(t, st) > 0 })
}

// lockWaits returns how many statements on the store's database wait for locks.
func lockWaits(t *testing.T, st *storage.Store) float64 {
	t.Helper()
	n, err := st.LockWaits(context.Background())
	if err != nil {
		t.Error(err)
	}
	return n
}

// An old key that is stored anew while the purge waits for its row is not purged.
func TestThePurgeKeepsAKeyThatIsStoredAnew(t *testing.T) {
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	since := now.Add(-24 * time.Hour)
	put := func(at time.Time) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			return tx.Idempotency().Keep(ctx, ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k",
				Request: []byte{1}, Resource: "sess_1", CreatedAt: at})
		}
	}
	update(t, st, put(since.Add(-time.Hour)))
	written, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := put(now)(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Counters().Get(ctx, "agt_1") // a statement, before which the key is written
			close(written)
			awaitLock(t, st)
			return err
		})
	}()
	<-written
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		n, err := tx.Idempotency().Purge(ctx, since, 500)
		if n != 0 {
			t.Errorf("%d keys were purged", n)
		}
		return err
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		_, found, err := tx.Idempotency().Find(ctx, "agt_1", "/v1/sessions", "k", since)
		if !found {
			t.Error("the key of a purchase that was just made is gone")
		}
		return err
	})
}

// A key that a refusal drops while the answer to its call is stored stays dropped.
func TestADroppedKeyIsNotStoredAnew(t *testing.T) {
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Idempotency().Keep(ctx, ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k", Request: []byte{1},
			Resource: "sess_1", CreatedAt: now})
	})
	dropped, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			if err := tx.Idempotency().DropFor(ctx, "agt_1", "sess_1"); err != nil {
				return err
			}
			_, err := tx.Ledger().Wallet(ctx, "agt_1") // sends what is queued
			close(dropped)
			awaitLock(t, st)
			return err
		})
	}()
	<-dropped
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return tx.Idempotency().SetOutcome(ctx, "agt_1", "/v1/sessions", "k", "sess_1", ports.Pending)
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		_, found, err := tx.Idempotency().Find(ctx, "agt_1", "/v1/sessions", "k", time.Time{})
		if found {
			t.Error("the key of a failed session is there again")
		}
		return err
	})
}

// Purchases and terminations of one agent at the same time lock its agent, its wallet and its
// sessions in different orders, and the second update of a wallet checks its foreign key to the agent.
func TestPurchasesAndTerminationsOfOneAgentDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const callers, each = 24, 4
	url := pg.Database(t)
	before := deadlocks(t, url) // of tests that had the database before
	st, err := storage.Open(t.Context(), storage.Config{URL: storage.URL(url), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	addAgent(t, st, "agt_1", 1000*domain.Dollar)
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for n := range each {
				number := int64(caller*each + n)
				err := errors.Join(
					st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						if _, err := tx.Agents().Get(ctx, "agt_1"); err != nil {
							return err
						}
						return purchase(ctx, tx, "agt_1", number)
					}),
					st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
						return terminate(ctx, tx, "agt_1", sessionID(number))
					}))
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	verify(t, st)
	if err := st.Close(); err != nil { // its connections report what they counted when they end
		t.Fatal(err)
	}
	if n := deadlocks(t, url) - before; n != 0 {
		t.Errorf("%d deadlocks", n)
	}
}

func sessionID(n int64) string { return fmt.Sprintf("sess_%020d", n*7919%100_000_000_000_000_000) }

// terminate is the unit that ends a session without traffic.
func terminate(ctx context.Context, tx ports.Tx, agentID, id string) error {
	r, err := tx.Sessions().Read(ctx, agentID, id)
	if err != nil {
		return err
	}
	s, _ := r.Session.Terminate(session.AgentRequest, now)
	if err := tx.Ledger().SetLive(ctx, agentID, "", -1); err != nil {
		return err
	}
	release := billing.Entry{ID: "txn_end_" + id, AgentID: agentID, Type: billing.Release, Available: s.Money.Held,
		Held: s.Money.Held.Neg(), Ref: "release:" + id, SessionID: id, At: now}
	if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: release}); err != nil {
		return err
	}
	s.Money.Held = billing.Funds{}
	return tx.Sessions().Put(ctx, s)
}

// deadlocks returns the number of deadlocks in a database to which no other connection is open, or is
// about to be closed.
func deadlocks(t *testing.T, url string) (n int64) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	eventually(t, "no other connection is open", func() bool {
		var others int
		err := conn.QueryRow(t.Context(), `SELECT COUNT(*) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others)
		if err != nil {
			t.Fatal(err)
		}
		return others == 0
	})
	err = conn.QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The uses of keys are stored in the order in which batches lock agents, whatever the order of the
// rows.
func TestUsesOfKeysLockInOrder(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	for _, id := range []string{"agt_3", "agt_1", "agt_2"} {
		addAgent(t, st, id, domain.Dollar)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; SELECT 1 FROM agents WHERE id = 'agt_2' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	stored := make(chan error, 1)
	go func() {
		stored <- st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			return tx.Keys().Used(ctx, now, []string{"agt_2", "agt_3", "agt_1"}, nil)
		})
	}()
	awaitLock(t, st)
	if _, err := conn.Exec(t.Context(), "SELECT 1 FROM agents WHERE id = 'agt_3' FOR UPDATE NOWAIT"); err != nil {
		t.Errorf("an agent behind the one that it waits for: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	if err := <-stored; err != nil {
		t.Error(err)
	}
}

// A batch locks agents, sessions and wallets in the order of their keys, whatever the order in
// which its units name them: while it waits for the second row it has the first, and not the third.
func TestABatchLocksInOrder(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	st.SetLockTimeout(10_000)
	for n := range int64(3) {
		addAgent(t, st, agentNo(n), domain.Dollar)
		if err := buyAhead(t.Context(), st, agentNo(n), n, nothing); err != nil {
			t.Fatal(err)
		}
	}
	reads := ports.ReadSet{Sessions: []string{sessionID(2), sessionID(0), sessionID(1)}, Owners: true}
	for _, c := range []struct {
		table, key string
		of         func(int64) string
	}{{"agents", "id", agentNo}, {"sessions", "id", sessionID}, {"wallets", "agent_id", agentNo}} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		lock := func(n int64, wait string) error {
			_, err := conn.Exec(t.Context(), "SELECT 1 FROM "+c.table+" WHERE "+c.key+" = $1 FOR NO KEY UPDATE "+wait, c.of(n))
			return err
		}
		if _, err := conn.Exec(t.Context(), "BEGIN"); err != nil {
			t.Fatal(err)
		}
		if err := lock(1, ""); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			ended <- st.Update(context.Background(), reads, func(context.Context, ports.Tx) error { return nil })
		}()
		awaitLock(t, st)
		if err := lock(2, "NOWAIT"); err != nil {
			t.Errorf("the third of %s: %v", c.table, err)
		}
		if lock(0, "NOWAIT") == nil {
			t.Errorf("the first of %s is not locked", c.table)
		}
		if err := conn.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// Batches of two replicas that share keys lock them in one order, whatever that of their units.
func TestABatchLocksKeysInOrder(t *testing.T) {
	t.Parallel()
	url := pg.Database(t)
	st := openURL(t, url)
	st.SetLockTimeout(10_000)
	addAgent(t, st, "agt_1", domain.Dollar)
	ctx := context.Background()
	var conns []*pgx.Conn
	for range 2 {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(ctx) })
		conns = append(conns, conn)
	}
	free := func(conn *pgx.Conn, key string) (got bool) {
		t.Helper()
		err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock(hashtextextended($1, 0))", "call\nagt_1\n/p\n"+key).Scan(&got)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if !free(conns[0], "b") {
		t.Fatal("a key is locked at first")
	}
	g := closeGateFor(ctx, ofAgent, t, st)
	for _, key := range []string{"c", "b", "a"} {
		g.queue(want(t, key, nil, func() error {
			return st.Update(ctx, ports.ReadSet{Agent: "agt_1", Path: "/p", Key: key}, nothing)
		}))
	}
	g.pull()
	awaitLock(t, st)
	if free(conns[1], "a") {
		t.Error("the first is not locked")
	}
	if !free(conns[1], "c") {
		t.Error("the third is locked before the second")
	}
	for _, conn := range conns {
		if err := conn.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	g.pass()
}

// A unit that others blocked may then insert what one of them has inserted, and runs once more, to find it.
func TestAUnitThatWasBlockedRunsAgainForWhatIsThere(t *testing.T) {
	t.Parallel()
	st := openPostgres(t)
	const blocked, there = "40P01", "23505"
	for _, c := range []struct {
		fails []string
		want  int // runs
	}{
		{[]string{blocked, blocked, there}, 4},
		{[]string{there, blocked, blocked, there}, 5},
		{[]string{there, blocked, there, there}, 4},
		{slices.Repeat([]string{blocked}, 9), 8},
	} {
		runs := 0
		err := st.Update(t.Context(), ports.ReadSet{}, func(context.Context, ports.Tx) error {
			if runs++; runs <= len(c.fails) {
				return &pgconn.PgError{Code: c.fails[runs-1]}
			}
			return nil
		})
		if runs != c.want || (err == nil) != (c.want > len(c.fails)) {
			t.Errorf("%v: %d runs, want %d; %v", c.fails, runs, c.want, err)
		}
	}
}
