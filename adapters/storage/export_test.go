package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/margins"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/usage"
	"agentproxy/ports"
)

// SetCommit replaces how transactions are committed.
func (s *Store) SetCommit(commit func(*engine.Transaction) error) {
	for _, c := range s.commits {
		c.Commit = commit
	}
}

// Config returns what the store was opened with.
func (s *Store) Config() Config { return s.config }

// SetNow replaces the clock by which units may join a transaction.
func (s *Store) SetNow(now func() time.Time) {
	for _, c := range s.commits {
		c.Now = now
	}
}

// Waiting returns the number of queued units.
func (s *Store) Waiting() (n int) {
	for _, c := range s.commits {
		n += c.Waiting()
	}
	return n
}

// Closing reports whether Close was called.
func (s *Store) Closing() bool { return s.commits[0].Closing() }

// Reader runs fn on a connection that reads.
func (s *Store) Reader(ctx context.Context, fn func(*sql.Conn) error) error {
	return s.database.View(ctx, func(c engine.Conn) error { return fn(c.SQL()) })
}

// SessionColumns are the columns of sessions, id and agent first.
var SessionColumns = sessions.Columns

// SetProofRanges sets how many entries and agents a range of agents has for the next stores.
func SetProofRanges(entries int64, agents int) {
	proofBounds = proof.Bounds{Entries: entries, Agents: agents, New: entries, Seal: proof.Usual.Seal}
}

// Statements returns the statements that fn runs in a unit, which is rolled back.
func (s *Store) Statements(ctx context.Context, fn func(context.Context, ports.Tx) error) (list []string, err error) {
	undo := errors.New("undo")
	err = s.update(ctx, &ports.ReadSet{}, func(in *engine.Transaction) error {
		list = nil
		unit := s.unit(&recorder{Conn: in.Conn, list: &list}, in)
		return errors.Join(fn(ctx, unit), unit.Set.Flush(), undo)
	})
	if err == undo || err.Error() == undo.Error() {
		return list, nil
	}
	return list, err
}

// Plans returns how the database executes the queries of fn, a text for each.
func (s *Store) Plans(ctx context.Context, fn func(context.Context, ports.Tx) error) (plans []string, err error) {
	how := "EXPLAIN QUERY PLAN "
	if s.postgres != nil {
		how = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
	}
	err = s.database.View(ctx, func(c engine.Conn) error {
		return fn(ctx, s.unit(&explainer{Conn: c, how: how, plans: &plans}, nil))
	})
	return plans, err
}

// Later puts the clock of a store forward. It returns how.
func (s *Store) Later() (by func(time.Duration)) {
	var off atomic.Int64
	for _, clock := range []*func() time.Time{&s.clock.host, &s.work.Now} {
		was := *clock
		*clock = func() time.Time { return was().Add(time.Duration(off.Load())) }
	}
	return func(d time.Duration) { off.Add(int64(d)) }
}

// SumDays sums what is new by day.
func (s *Store) SumDays(ctx context.Context) error { return ledger.SumDays(ctx, proofDatabase{s}) }

// SumDaysAfter is how old a number is before the entries up to it are summed by day on PostgreSQL.
const SumDaysAfter = margins.EntriesAfter

// LastHours reads the last counted hour of a session.
func LastHours(ctx context.Context, unit ports.Tx, sessionID string) error {
	_, err := ledger.LastHours(ctx, &unit.(*tx).Unit, []usage.HourRow{{SessionID: sessionID}})
	return err
}

// explainer asks for the plans of the queries that it passes on.
type explainer struct {
	engine.Conn
	how   string
	plans *[]string
}

func (e *explainer) explain(query string, args []any) {
	text := query
	err := e.Conn.Rows(e.Context(), e.how+query, args, func(row engine.Row) error {
		var line string
		var id, parent, unused int
		err := row.Scan(&line)
		if err != nil { // SQLite has three numbers before the text
			err = row.Scan(&id, &parent, &unused, &line)
		}
		text += "\n" + line
		return err
	})
	if err != nil {
		text += "\n" + err.Error()
	}
	*e.plans = append(*e.plans, text)
}

func (e *explainer) Row(query string, args []any) engine.Row {
	e.explain(query, args)
	return e.Conn.Row(query, args)
}

func (e *explainer) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	e.explain(query, args)
	return e.Conn.Rows(ctx, query, args, scan)
}

// recorder keeps the statements that it passes on.
type recorder struct {
	engine.Conn
	list *[]string
}

func (r *recorder) add(query string) { *r.list = append(*r.list, query) }

func (r *recorder) Row(query string, args []any) engine.Row {
	r.add(query)
	return r.Conn.Row(query, args)
}

func (r *recorder) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	r.add(query)
	return r.Conn.Rows(ctx, query, args, scan)
}

func (r *recorder) Exec(query string, args []any) (int64, error) {
	r.add(query)
	return r.Conn.Exec(query, args)
}

func (r *recorder) Queue(what, query string, args []any) error {
	r.add(query)
	return r.Conn.Queue(what, query, args)
}

func (r *recorder) ORM() gorm.ConnPool { return recordingPool{r.Conn.ORM(), r} }

type recordingPool struct {
	gorm.ConnPool
	*recorder
}

func (p recordingPool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	p.add(query)
	return p.ConnPool.ExecContext(ctx, query, args...)
}

func (p recordingPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	p.add(query)
	return p.ConnPool.QueryContext(ctx, query, args...)
}

func (p recordingPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	p.add(query)
	return p.ConnPool.QueryRowContext(ctx, query, args...)
}

// Slots is how many units may have a connection to PostgreSQL at the same time.
func (s *Store) Slots() int { return s.postgres.Slots() }

// SetRecentClock sets the clock of the sessions in memory.
func (s *Store) SetRecentClock(now func() time.Time) { s.recent.Now = now }

// ReadWhile reads what a view names, and runs meanwhile before it is kept in memory.
func (s *Store) ReadWhile(a ports.ReadSet, meanwhile func()) error {
	list := []*ports.ReadSet{&a}
	claim := s.recent.Reading(list)
	read := func() (*rows.Set, error) { return s.readOne(context.Background(), a.Sessions[0]) }
	if s.postgres != nil {
		read = func() (*rows.Set, error) {
			b, err := s.readBatch(list)
			return b.Rows, err
		}
	}
	found, err := read()
	meanwhile()
	s.recent.Read(claim, found)
	return err
}

// WriteWhile claims the health of a session as a transaction of group commit does, and runs
// meanwhile before its state is kept in memory.
func (s *Store) WriteWhile(id string, state []byte, meanwhile func()) {
	changed := rows.NewAhead()
	sessions.HealthTable.Load(changed, id, sessions.StoredHealth{})
	if err := sessions.HealthTable.Put(changed, id, sessions.StoredHealth{State: state}); err != nil {
		panic(err)
	}
	changed.End(true)
	claim := s.recent.Writing(changed)
	meanwhile()
	s.recent.Wrote(claim, nil)
}

// ReadsAlone is how many views that named what they read had statements of their own.
func (s *Store) ReadsAlone() int64 {
	var m dto.Metric
	_ = s.metrics.alone.Write(&m)
	return int64(m.Counter.GetValue())
}

// Remembered is how many sessions are in memory.
func (s *Store) Remembered() int { return s.recent.Len() }

// RecentMax is how many may be.
const RecentMax = batch.RecentMax

// FillRecent claims sessions for a view that asks for them.
func (s *Store) FillRecent(ids ...string) {
	s.recent.Reading([]*ports.ReadSet{{Recent: true, Sessions: ids}})
}

// SetCommitters sets how many committers the next stores on PostgreSQL have; 0 is as many as usual.
func SetCommitters(n int) { committers = cmp.Or(n, defaultCommitters) }

// MaxQueued is how many units of an agent wait for batches.
const MaxQueued = maxQueued

// AtWork returns how many units and views of an agent wait for a batch, are in one, or wait for that.
func (s *Store) AtWork(agentID string) int { return s.queued.AtWork(agentID) }

// Shard returns the number of the committer of an agent.
func (s *Store) Shard(agentID string) int {
	return shardOf(&ports.ReadSet{Agent: agentID}, len(s.commits))
}

// SetLockTimeout sets how many milliseconds a batch waits for a lock.
func (s *Store) SetLockTimeout(ms int) { s.postgres.LockTimeout = ms }

// SetPatience sets how long is waited for a free connection to PostgreSQL.
func (s *Store) SetPatience(d time.Duration) { s.postgres.Patience = d }

// Bounds are how long is waited for a free connection to PostgreSQL, and for a unit.
func (s *Store) Bounds() (patience, unit time.Duration) {
	return s.postgres.Patience, s.postgres.UnitWithin
}

// Losses is how often the connections to PostgreSQL were replaced.
func (s *Store) Losses() int64 { return s.postgres.Losses() }

// HoldingAhead is the statement that reads for a balance which sessions hold money.
var HoldingAhead = strings.ReplaceAll(batch.HoldingAhead, "?", "$")

// BoundUnits sets how long a unit may take on PostgreSQL.
func (s *Store) BoundUnits(within time.Duration) { s.postgres.UnitWithin = within }

// Promotions is how often another server of PostgreSQL was found promoted.
func (s *Store) Promotions() int64 { return s.postgres.Promotions() }

// CountingProver returns the Prover of a store, and how many snapshots it has taken.
func (s *Store) CountingProver() (p *proof.Prover, snapshots func() int) {
	c := &countingDatabase{proofDatabase: proofDatabase{s}}
	return proof.New(c, s.clock, s.postgres != nil, proofBounds), func() int { return c.n }
}

type countingDatabase struct {
	proofDatabase
	n int
}

func (c *countingDatabase) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	c.n++
	return c.proofDatabase.Audit(ctx, fn)
}

// Asked returns the statements of a complete proof.
func (s *Store) Asked(ctx context.Context) (list []string, faults []ports.Fault, err error) {
	asking := &askingDatabase{proofDatabase{s}, &list}
	faults, _, err = proof.New(asking, s.clock, s.postgres != nil, proofBounds).Verify(ctx)
	return list, faults, err
}

type askingDatabase struct {
	proofDatabase
	list *[]string
}

func (a *askingDatabase) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return a.proofDatabase.Audit(ctx, func(c engine.Conn) error { return fn(&recorder{Conn: c, list: a.list}) })
}

// MappedInAudit and MappedInView return how much of the SQLite file is mapped at most while they read it.
func (s *Store) MappedInAudit() (int64, error) { return mapped(s.database.Audit) }

// MappedInView is as MappedInAudit.
func (s *Store) MappedInView() (int64, error) { return mapped(s.database.View) }

func mapped(run func(context.Context, func(engine.Conn) error) error) (n int64, err error) {
	err = run(context.Background(), func(c engine.Conn) error {
		var last string
		return errors.Join(c.Row("SELECT MAX(name) FROM sqlite_master", nil).Scan(&last), c.Row("PRAGMA mmap_size", nil).Scan(&n))
	})
	return n, err
}

// OnFile reports whether the database is SQLite.
func (s *Store) OnFile() bool { return s.sqlite != nil }
