package wire

import (
	"context"

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
func (j *Jobs) Retry(ctx context.Context, id int64) (job queue.Job, err error) {
	err = j.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		unit, err := storage.JobTxOf(tx)
		if err != nil {
			return err
		}
		job, err = j.queue.Retry(ctx, unit.Conn, unit.Tx, id)
		return err
	})
	return job, err
}

// Discard removes a job for good.
func (j *Jobs) Discard(ctx context.Context, id int64) (job queue.Job, err error) {
	err = j.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		unit, err := storage.JobTxOf(tx)
		if err != nil {
			return err
		}
		job, err = j.queue.Discard(ctx, unit.Conn, unit.Tx, id)
		return err
	})
	return job, err
}
