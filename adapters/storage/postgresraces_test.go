package storage_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/domain"
	"agentproxy/ports"
)

// awaitLock blocks until a statement on the store's database waits for a lock.
func awaitLock(t *testing.T, st *storage.Store) {
	t.Helper()
	const waiting = `SELECT EXISTS (SELECT 1 FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock')`
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		var found bool
		if err := st.Pool().QueryRow(context.Background(), waiting).Scan(&found); err != nil {
			t.Error(err)
			return
		}
		if found {
			return
		}
		if time.Now().After(end) {
			t.Error("no statement waits for a lock")
			return
		}
	}
}

// An old key that is stored anew while the purge waits for its row is not purged.
func TestThePurgeKeepsAKeyThatIsStoredAnew(t *testing.T) {
	st := openPostgres(t)
	addAgent(t, st, "agt_1", domain.Dollar)
	since := now.Add(-24 * time.Hour)
	put := func(at time.Time) func(context.Context, ports.Tx) error {
		return func(ctx context.Context, tx ports.Tx) error {
			return tx.Idempotency().Put(ctx, ports.Call{AgentID: "agt_1", Path: "/v1/sessions", Key: "k",
				Request: []byte{1}, Resource: "sess_1", CreatedAt: at})
		}
	}
	update(t, st, put(since.Add(-time.Hour)))
	written, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- st.Update(context.Background(), func(ctx context.Context, tx ports.Tx) error {
			if err := put(now)(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Ledger().Wallet(ctx, "agt_1") // sends what is queued
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
