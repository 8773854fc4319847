package storage

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"unicode/utf8"

	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// Update runs fn in a transaction. A cancelled ctx refuses a unit that has not started. It does not
// interrupt one that has: SQLite answers an interrupted write by rolling back the whole transaction,
// and with it the units of others.
func (s *Store) Update(
	ctx context.Context, reads ports.ReadSet, fn func(ctx context.Context, tx ports.Tx) error,
) error {
	var touched work.Touched
	var err error
	defer func() {
		s.recent.drop(touched.Sessions...)
		if err == nil || errors.Is(err, engine.ErrUnknownOutcome) {
			s.notes.Add(touched.Feeds)
		}
	}()
	var shared *batch // of the last run
	err = s.update(ctx, &reads, func(in *engine.Transaction) error {
		t := s.unit(traced(ctx, s.config.Trace, in.Conn), in)
		t.Touched = &touched
		if b, ok := in.Conn.(batchConn); ok {
			shared = b.batch
			t.join(shared)
		}
		if err := fn(context.WithoutCancel(ctx), t); err != nil {
			return err
		}
		return t.Set.Flush()
	})
	s.noteRoundTrips(ctx, shared)
	return s.database.Classify(ctx, err)
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
