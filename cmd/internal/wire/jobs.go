package wire

import (
	"context"
	"database/sql"

	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/ports"
)

// Jobs is what the operator does with background jobs, in units of work of the store.
type Jobs struct {
	store ports.Store
	queue *queue.Queue
}

func newJobs(store ports.Store, q *queue.Queue) *Jobs { return &Jobs{store, q} }

// List lists jobs, newest first.
func (j *Jobs) List(ctx context.Context, f queue.Filter) ([]queue.Job, error) {
	return j.queue.List(ctx, f)
}

// Retry runs a job again at once.
func (j *Jobs) Retry(ctx context.Context, id int64) (queue.Job, error) {
	return j.inUnit(ctx, j.queue.Retry, id)
}

// Discard removes a job for good.
func (j *Jobs) Discard(ctx context.Context, id int64) (queue.Job, error) {
	return j.inUnit(ctx, j.queue.Discard, id)
}

// inUnit changes a job in a unit of work.
func (j *Jobs) inUnit(ctx context.Context,
	change func(context.Context, *sql.Conn, *sql.Tx, int64) (queue.Job, error), id int64,
) (job queue.Job, err error) {
	err = j.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		unit, err := storage.JobTxOf(tx)
		if err == nil {
			job, err = change(ctx, unit.Conn, unit.Tx, id)
		}
		return err
	})
	return job, err
}
