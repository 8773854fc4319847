package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/ports"
)

// JobTx is the transaction of a unit that inserts a job.
type JobTx struct {
	// Conn is the connection. What runs on it is in the transaction.
	Conn *sql.Conn
	// Tx is the same on SQLite, and nil on PostgreSQL.
	Tx *sql.Tx
}

// JobInserter inserts jobs in the transaction of the running unit, or of the batch of units that ran.
type JobInserter func(ctx context.Context, tx JobTx, jobs []ports.Job, now time.Time) error

// SetJobInserter sets what inserts jobs. Until then Insert of Jobs returns an error.
func (s *Store) SetJobInserter(insert JobInserter) { s.jobs.Store(&insert) }

// jobs inserts jobs with a unit, or with its batch.
type jobs struct{ *tx }

func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	if err := r.MayWrite(); err != nil {
		return err
	}
	if tracer := r.store.config.Trace; tracer != nil {
		j.Traceparent = tracer.Traceparent(ctx)
	}
	if r.batch != nil {
		r.batch.insertJob(j, now)
		return nil
	}
	insert := r.store.jobs.Load()
	if insert == nil {
		return errors.New("insert job: no job inserter is set")
	}
	in, err := JobTxOf(r.tx)
	if err != nil {
		return err
	}
	if err := (*insert)(r.Conn.Context(), in, []ports.Job{j}, now); err != nil {
		return fmt.Errorf("insert job %s: %w", j.Kind, r.Failed(err))
	}
	return nil
}

// JobTxOf returns the transaction of a running unit, for what changes jobs. It ends with the unit.
func JobTxOf(unit ports.Tx) (JobTx, error) {
	t, ok := unit.(*tx)
	if !ok {
		return JobTx{}, errors.New("the unit is not of this store")
	}
	conn, err := t.SQL()
	if err != nil {
		return JobTx{}, err
	}
	return JobTx{Conn: conn, Tx: t.In.Tx}, nil
}
