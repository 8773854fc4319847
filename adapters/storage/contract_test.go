package storage_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/contract"
	"agentproxy/test/pg"
)

func TestContract(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *storage.Store) {
		contract.Store(t, func(t *testing.T) ports.Store { return withJobs(t, open(t)) })
	})
}

// PostgreSQL's snapshots include the transactions of the server's other databases. With one of those
// open, changes may be reported as missed that were not: the server is the test's alone.
func TestChangesKeepTheContract(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		contract.Changes(t, func(t *testing.T) ports.Store { return openStore(t) })
	})
	t.Run("postgres", func(t *testing.T) {
		server := pg.Start(t)
		contract.Changes(t, func(t *testing.T) ports.Store { return openURL(t, server.Database(t)) })
	})
}

// jobStore counts its jobs in a table, as River would keep them.
type jobStore struct{ *storage.Store }

func withJobs(t *testing.T, st *storage.Store) jobStore {
	t.Helper()
	if _, err := st.Writer().ExecContext(t.Context(), "CREATE TABLE test_jobs (kind TEXT)"); err != nil {
		t.Fatal(err)
	}
	st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, jobs []ports.Job, _ time.Time) error {
		for _, j := range jobs {
			if _, err := tx.Conn.ExecContext(ctx, "INSERT INTO test_jobs VALUES ($1)", j.Kind); err != nil {
				return err
			}
		}
		return nil
	})
	return jobStore{st}
}

func (s jobStore) Jobs(ctx context.Context) (n int, err error) {
	err = s.Writer().QueryRowContext(ctx, "SELECT COUNT(*) FROM test_jobs").Scan(&n)
	return n, err
}
