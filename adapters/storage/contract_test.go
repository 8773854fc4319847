package storage_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/ports"
	"agentproxy/test/contract"
)

func TestContract(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		contract.Store(t, func(t *testing.T) ports.Store { return withJobs(t, openStore(t)) })
	})
}

// jobStore counts its jobs in a table, as River would keep them.
type jobStore struct{ *storage.Store }

func withJobs(t *testing.T, st *storage.Store) jobStore {
	t.Helper()
	if _, err := st.Writer().ExecContext(t.Context(), "CREATE TABLE test_jobs (kind TEXT)"); err != nil {
		t.Fatal(err)
	}
	st.SetJobInserter(func(ctx context.Context, tx *sql.Tx, j ports.Job, _ time.Time) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO test_jobs VALUES (?)", j.Kind)
		return err
	})
	return jobStore{st}
}

func (s jobStore) Jobs(ctx context.Context) (n int, err error) {
	err = s.Writer().QueryRowContext(ctx, "SELECT COUNT(*) FROM test_jobs").Scan(&n)
	return n, err
}
