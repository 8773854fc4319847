package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/calls"
	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// NoteEvents notes for every process which agents have new events, until ctx ends. Close notes the rest.
func (s *Store) NoteEvents(ctx context.Context) { s.notes.Run(ctx, s.noteEvents) }

// FlushEventNotes notes the agents that have events now.
func (s *Store) FlushEventNotes(ctx context.Context) error { return s.notes.Flush(ctx, s.noteEvents) }

// noteEvents notes changes of agents by their names.
func (s *Store) noteEvents(ctx context.Context, names []string) error {
	return s.Update(ctx, ports.ReadSet{}, func(_ context.Context, t ports.Tx) error {
		for _, name := range names {
			if err := t.(*tx).NoteChange(name, ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// Update runs fn in a transaction. A cancelled ctx refuses a unit that has not started. It does not
// interrupt one that has: SQLite answers an interrupted write by rolling back the whole transaction,
// and with it the units of others.
func (s *Store) Update(
	ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error,
) error {
	var touched work.Touched
	var err error
	defer func() {
		s.recent.Drop(touched.Sessions...)
		if err == nil || errors.Is(err, engine.ErrUnknownOutcome) {
			s.notes.Add(touched.Feeds)
		}
	}()
	var sent *kept // by the batch of the last run
	err = s.update(ctx, &reads, func(in *engine.Transaction) error {
		t := s.unit(traced(ctx, s.config.Trace, in.Conn), in)
		t.Touched = &touched
		sent = t.join(in.Conn, !reads.Empty())
		if err := fn(context.WithoutCancel(ctx), t); err != nil || t.Set.Shared() {
			return err
		}
		return t.flush()
	})
	s.note(ctx, sent)
	return s.database.Classify(ctx, err)
}

// note notes what was sent for several units for one of them, whose answer came after it.
func (s *Store) note(ctx context.Context, k *kept) {
	if k == nil {
		return
	}
	for _, m := range k.made {
		s.config.Trace.Statement(ctx, m.what, m.began, m.err)
	}
}

// join has the unit use the rows of those that it shares its transaction with, if it does, and returns what is sent
// for all of them.
func (t *tx) join(c engine.Conn, named bool) *kept {
	if c, ok := c.(lent); ok {
		t.Set = c.rows
		t.Set.Use(t.Conn, named)
		return c.sent
	}
	b := batch.Of(c)
	if b == nil {
		return nil
	}
	t.share(b.Rows)
	return sentBy(b)
}

// defaultCommitters is the number of committers on PostgreSQL, and readers that of readers. With
// two of them one goes on while the other waits for the server, as for a lock. More make smaller
// batches, which cost more: four took 10 to 28 % more processor time a call than two with reads and
// writes mixed.
const defaultCommitters, readers = 2, 4

// maxQueued is how many units and views of an agent wait for batches, or are in them: half of a batch.
const maxQueued = commit.MaxBatch / 2

// committers is how many of them the next store has; benchmarks change it.
var committers = defaultCommitters

// onPostgres runs a unit in the batch of its agent's committer if what it reads is known ahead.
func (s *Store) onPostgres(ctx context.Context, a *ports.ReadSet, fn func(*engine.Transaction) error) error {
	if a.Empty() || !batchable(a) {
		return s.alone(ctx, a, fn)
	}
	release, err := s.queued.Take(ctx, a.Agent)
	if err != nil {
		return err
	}
	defer release()
	return s.commits[shardOf(a, len(s.commits))].Do(ctx, a, fn)
}

// onSQLite runs a unit in the next batch.
func (s *Store) onSQLite(ctx context.Context, a *ports.ReadSet, fn func(*engine.Transaction) error) error {
	release, err := s.queued.Take(ctx, commit.AgentOf(ctx, a))
	if err != nil {
		return err
	}
	defer release()
	return s.commits[0].Do(ctx, a, fn)
}

// alone runs a unit on PostgreSQL in a transaction of its own.
func (s *Store) alone(ctx context.Context, a *ports.ReadSet, fn func(*engine.Transaction) error) error {
	release, err := s.shares.Take(ctx, commit.AgentOf(ctx, a))
	if err != nil {
		return err
	}
	defer release()
	return s.postgres.Update(ctx, fn)
}

// shardOf returns which of n committers, or of n readers, an agent has.
func shardOf(a *ports.ReadSet, n int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(a.Agent))
	return int(h.Sum32() % uint32(n))
}

// batchable reports whether the server takes what is named: it would refuse the whole batch.
func batchable(a *ports.ReadSet) bool {
	unstorable := func(text string) bool { return !storable(text) }
	return storable(a.Path) && storable(a.Key) && !slices.ContainsFunc(a.Sessions, unstorable) &&
		!slices.ContainsFunc(a.Health, unstorable)
}

// storable reports whether PostgreSQL keeps a text as it is.
func storable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// beginBatch begins a transaction for units that read what the list names.
func (s *Store) beginBatch(list []*ports.ReadSet, _ bool) (*engine.Transaction, error) {
	pipe, err := s.postgres.Pipeline()
	if err != nil {
		return nil, err
	}
	b := s.newBatch(pipe)
	if err := b.ReadAhead(list); err != nil {
		_ = pipe.Rollback()
		return nil, err
	}
	in := &engine.Transaction{Conn: b.Conn(), Rollback: pipe.Rollback}
	in.Commit = func() error {
		claim := s.recent.Writing(b.Rows)
		err := b.Rows.WriteTo(batch.Writer{Pipeline: b.Pipe})
		if err == nil {
			err = s.writeJobs(b)
		}
		if err == nil {
			err = b.Pipe.Commit()
		} else {
			_ = pipe.Rollback()
		}
		s.recent.Wrote(claim, err)
		return err
	}
	in.End = func(failed bool) bool {
		alone := b.Rows.Alone()
		keep := !failed && !alone
		in.Wrote = keep && b.Rows.Wrote()
		b.Rows.End(keep)
		return alone
	}
	return in, nil
}

// writeJobs sends what is queued, and the jobs of the batch, which the job queue writes by itself.
func (s *Store) writeJobs(b *batch.Batch) error {
	list := calls.JobTable.Added(b.Rows)
	if len(list) == 0 {
		return nil
	}
	insert := s.jobs.Load()
	if insert == nil {
		return errNoJobs
	}
	if err := b.Pipe.Send(); err != nil {
		return err
	}
	ctx, conn := b.Pipe.SQL()
	jobs, now := calls.JobsOf(list)
	return (*insert)(ctx, JobTx{Conn: conn}, jobs, now)
}

// lent is the connection of the units that share a transaction on SQLite, with the rows that they have.
type lent struct {
	engine.Conn
	rows *rows.Set
	sent *kept // for all of them, nil where it is not noted
}

// beginOnFile begins a transaction on SQLite. What joint units change is written once they have run, or before a unit
// runs a statement of its own: each row once, and without what a unit did that failed. They find rows of the
// transaction before, if that was one of joint units and committed, and no other connection has changed the file.
func (s *Store) beginOnFile(_ []*ports.ReadSet, joint bool) (*engine.Transaction, error) {
	last := s.last
	s.last = nil
	in, others, err := s.sqlite.Begin()
	if err != nil || !joint {
		return in, err
	}
	if last == nil || others {
		last = new(rows.Set)
	}
	var claims []*batch.Claim
	ended := func(err error) error {
		for _, c := range claims {
			s.recent.Wrote(c, err)
		}
		return err
	}
	conn, commit, rollback := in.Conn, in.Commit, in.Rollback
	own := lent{conn, nil, keep(s.config.Trace)}
	own.rows = last.Next(conn, in, func(set *rows.Set) { claims = append(claims, s.recent.Writing(set)) })
	in.Conn = own
	in.Commit = func() error {
		all := s.unit(own.sent.on(conn), in)
		all.Set = own.rows
		all.Set.Use(all.Conn, false)
		if err := all.flush(); err != nil {
			_ = rollback()
			return ended(err)
		}
		if err := ended(commit()); err != nil {
			return err
		}
		s.last = own.rows
		return nil
	}
	in.Rollback = func() error {
		_ = ended(engine.ErrAborted)
		return rollback()
	}
	in.End = func(failed bool) bool {
		in.Wrote = in.Wrote || !failed && own.rows.Wrote()
		own.rows.End(!failed)
		return false
	}
	return in, nil
}

// flush writes what the unit has changed in memory, and its jobs.
func (t *tx) flush() error {
	if err := t.Set.Flush(); err != nil {
		return err
	}
	return t.insertJobs()
}

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

var errNoJobs = errors.New("insert jobs: no job inserter is set")

// insertJobs inserts the jobs of a unit with a transaction of its own.
func (t *tx) insertJobs() error {
	list := calls.JobTable.Added(t.Set)
	if len(list) == 0 {
		return nil
	}
	insert := t.store.jobs.Load()
	if insert == nil {
		return errNoJobs
	}
	in, err := JobTxOf(t)
	if err == nil {
		jobs, now := calls.JobsOf(list)
		err = (*insert)(t.Conn.Context(), in, jobs, now)
	}
	if err != nil {
		return fmt.Errorf("insert jobs: %w", t.Failed(err))
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
