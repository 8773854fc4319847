package storage

import (
	"context"
	"errors"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// beginBatch begins a transaction for units that read what the list names.
func (s *Store) beginBatch(list []*ports.ReadSet) (*engine.Transaction, error) {
	pipe, err := s.postgres.Pipeline()
	if err != nil {
		return nil, err
	}
	b := s.newBatch(pipe)
	if err := b.readAhead(list); err != nil {
		_ = pipe.Rollback()
		return nil, err
	}
	in := &engine.Transaction{Conn: batchConn{b}, Rollback: pipe.Rollback}
	in.Commit = func() error {
		err := b.queueWrites()
		if err == nil {
			err = s.writeJobs(b)
		}
		if err != nil {
			_ = pipe.Rollback()
			return err
		}
		claim := s.recent.writing(b)
		err = b.pipe.Commit()
		s.recent.wrote(claim, b, err)
		return err
	}
	in.End = func(failed bool) bool {
		alone := b.alone || b.rows.Alone()
		keep := !failed && !alone
		in.Wrote = keep && (b.wrote || b.rows.Wrote())
		b.end(keep)
		return alone
	}
	return in, nil
}

var errNoJobs = errors.New("insert jobs: no job inserter is set")

// writeJobs sends what is queued, and the jobs of the batch, which the job queue writes by itself.
func (s *Store) writeJobs(b *batch) error {
	if len(b.writes.base.jobs) == 0 {
		return nil
	}
	insert := s.jobs.Load()
	if insert == nil {
		return errNoJobs
	}
	if err := b.pipe.Send(); err != nil {
		return err
	}
	ctx, conn := b.pipe.SQL()
	return (*insert)(ctx, JobTx{Conn: conn}, b.writes.base.jobs, time.Time{})
}

// noteRoundTrips notes the round trips of a batch for one of its units, whose answer came
// after the last.
func (s *Store) noteRoundTrips(ctx context.Context, b *batch) {
	if b == nil {
		return
	}
	if t, ok := b.pipe.(*tracedPipeline); ok {
		for _, made := range t.made {
			s.config.Trace.Statement(ctx, made.what, made.began, made.err)
		}
	}
}
