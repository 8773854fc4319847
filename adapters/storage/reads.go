package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/workers"
	"agentproxy/domain"
	"agentproxy/ports"
)

// View runs fn on a consistent read-only snapshot.
func (s *Store) View(ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error) error {
	if a := &reads; !a.Empty() && batchable(a) {
		if err := s.view(ctx, a, fn); err != engine.ErrAlone {
			return s.database.Classify(ctx, err)
		}
	}
	return s.read(ctx, commit.AgentOf(ctx, &reads), s.database.View, fn)
}

// Read runs fn without a snapshot around it: its one query is a snapshot.
func (s *Store) Read(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.read(ctx, ports.AgentOf(ctx), s.database.Read, fn)
}

func (s *Store) read(
	ctx context.Context, agentID string, run func(context.Context, func(engine.Conn) error) error,
	fn func(ctx context.Context, tx ports.Tx) error,
) error {
	release, err := s.shares.Take(ctx, agentID)
	if err != nil {
		return err
	}
	defer release()
	return s.database.Classify(ctx, run(ctx, func(conn engine.Conn) error {
		return fn(ctx, s.unit(traced(ctx, s.config.Trace, conn), nil))
	}))
}

// reader reads for the views that wait, on PostgreSQL: what they named is read for all of them in one
// round trip, from one snapshot that is taken after the last of them began. A reader has one
// connection at a time, which units cannot take, so reads go on while units have all others.
type reader struct {
	store *Store
	queue chan *readAsk
	stop  chan struct{}
	done  chan struct{}
	once  sync.Once
}

// readAsk is a view that waits. Its answer is buffered, for a caller that has left.
type readAsk struct {
	reads  *ports.ReadSet
	answer chan readAnswer
}

type readAnswer struct {
	batch *batch.Batch
	err   error
}

func newReader(s *Store) *reader {
	r := &reader{store: s, queue: make(chan *readAsk, 4*commit.MaxBatch),
		stop: make(chan struct{}), done: make(chan struct{})}
	go r.run()
	return r
}

// close refuses the views that wait.
func (r *reader) close() {
	r.once.Do(func() { close(r.stop) })
	<-r.done
}

// view runs fn with what a names. It returns engine.ErrAlone for a view that reads something else.
func (r *reader) view(ctx context.Context, a *ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	if found := r.store.recent.Find(a); found != nil {
		return r.store.show(ctx, found, r.store.metrics.memory, fn)
	}
	release, err := r.store.queued.Take(ctx, a.Agent)
	if err != nil {
		return err
	}
	defer release()
	ask := &readAsk{reads: a, answer: make(chan readAnswer, 1)}
	select {
	case r.queue <- ask:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.stop:
		return domain.ErrUnavailable
	}
	var found readAnswer
	select {
	case found = <-ask.answer:
	case <-ctx.Done():
		return ctx.Err()
	case <-r.done:
		select {
		case found = <-ask.answer:
		default:
			return domain.ErrUnavailable
		}
	}
	r.store.note(ctx, sentBy(found.batch))
	if found.err != nil {
		return found.err
	}
	return r.store.show(ctx, found.batch.Rows, r.store.metrics.shared, fn)
}

// show runs fn with what was read, and counts the view by where that was.
func (s *Store) show(
	ctx context.Context, found *rows.Set, from prometheus.Counter, fn func(context.Context, ports.Tx) error,
) error {
	view := s.unit(nil, nil)
	view.own = found.Frozen() // what it has is read by all, and written by none
	view.share(&view.own)
	err := fn(ctx, view)
	if view.own.Alone() || view.own.Wrote() { // a view that writes is refused by a connection of its own
		err = engine.ErrAlone
	}
	if err == engine.ErrAlone {
		from = s.metrics.alone
	}
	from.Inc()
	return err
}

// viewShared runs fn, on PostgreSQL, by the reader of its agent.
func (s *Store) viewShared(ctx context.Context, a *ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	return s.reads[shardOf(a, len(s.reads))].view(ctx, a, fn)
}

// viewRecent runs fn, on SQLite, with a session from memory, or reads that and keeps it for the views that follow. It
// returns engine.ErrAlone for a view that reads something else.
func (s *Store) viewRecent(ctx context.Context, a *ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	if !s.recent.Takes(a) {
		return engine.ErrAlone
	}
	if found := s.recent.Find(a); found != nil {
		return s.show(ctx, found, s.metrics.memory, fn)
	}
	claim := s.recent.Reading([]*ports.ReadSet{a})
	found, err := s.readOne(ctx, a.Sessions[0])
	s.recent.Read(claim, found)
	switch {
	case err == engine.ErrAlone:
		s.metrics.alone.Inc()
		return err
	case err != nil:
		return err
	}
	return s.show(ctx, found, s.metrics.alone, fn)
}

// readWithWorkers reads a session, and whether it has workers, or had some that may be in the archive.
var readWithWorkers = "SELECT s.ended_at > 0 OR EXISTS (SELECT 1 FROM workers w WHERE w.session = s.seq), " +
	sessions.ReadColumns + "WHERE s.id = ?1"

// readOne reads a session by one statement, on SQLite. It returns engine.ErrAlone if that has workers, which take
// another.
func (s *Store) readOne(ctx context.Context, id string) (*rows.Set, error) {
	found := rows.NewAhead()
	sessions.Table.Ask(found, id)
	workers.HealthTable.Ask(found, id)
	err := s.Read(ctx, func(_ context.Context, view ports.Tx) error {
		var hasWorkers bool
		err := sessions.LoadWhole(found, batch.Behind{Row: view.(*tx).Row(readWithWorkers, id), First: []any{&hasWorkers}})
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return fmt.Errorf("read session %s: %w", id, err)
		case hasWorkers:
			return engine.ErrAlone
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// run reads batches until the reader is closed; it runs in a goroutine of its own.
func (r *reader) run() {
	defer close(r.done)
	for {
		select {
		case ask := <-r.queue:
			r.read(ask)
		case <-r.stop:
			return
		}
	}
}

// read reads for a view and those that wait behind it.
func (r *reader) read(first *readAsk) {
	asks := []*readAsk{first}
	for len(asks) < commit.MaxBatch && len(r.queue) > 0 {
		asks = append(asks, <-r.queue)
	}
	list := make([]*ports.ReadSet, len(asks))
	for i, ask := range asks {
		list[i] = ask.reads
	}
	claim := r.store.recent.Reading(list)
	b, err := r.store.readBatch(list)
	if err != nil {
		r.store.recent.Read(claim, nil)
	} else {
		r.store.recent.Read(claim, b.Rows)
	}
	if err != nil && commit.Lasting(err) == nil {
		err = engine.ErrAlone
	}
	for _, ask := range asks {
		ask.answer <- readAnswer{b, err}
	}
}

// readBatch reads what views name.
func (s *Store) readBatch(list []*ports.ReadSet) (*batch.Batch, error) {
	pipe, err := s.postgres.Snapshot()
	if err != nil {
		return nil, err
	}
	defer func() { _ = pipe.Rollback() }()
	b := s.newBatch(pipe)
	return b, b.ReadViews(list)
}
