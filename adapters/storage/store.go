// Package storage keeps everything in one database, SQLite or PostgreSQL, by GORM and by
// hand-written SQL on the hot paths. It implements ports.Store and ports.Audit.
//
// A unit of work is a tx, which hands out the repositories. Its statements run on an engine.Conn of
// the package sqlite or postgres. A committer lets units that wait share one commit, on PostgreSQL
// those whose rows are known ahead. Here are the repositories that such batches read or write, and
// what reads across families; the others are in packages by family.
package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/postgres"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/sqlite"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

var (
	_ ports.Store = (*Store)(nil)
	_ ports.Audit = (*Store)(nil)
)

// URL is the connection URL of a PostgreSQL database.
type URL = postgres.URL

// Config locates the database by a Path or a URL. Its other fields may be zero.
type Config struct {
	// Path is the SQLite file, which is created if it does not exist.
	Path string
	// URL is that of a PostgreSQL database.
	URL URL
	// Readers is the number of SQLite snapshots that are read at the same time; 0 means eight.
	Readers int
	// MaxConns is the number of connections to PostgreSQL; 0 means twenty.
	MaxConns int
	// Now replaces the database's clock; tests set it.
	Now func() time.Time
	// Host is the clock of this host, which is compared with the database's; nil means time.Now.
	Host func() time.Time
	// Logger logs migrations and lost notifications; nil discards them.
	Logger *slog.Logger
	// Trace notes each statement; nil notes none.
	Trace Tracer
	// Migrations replaces the files of the migrations; tests set it.
	Migrations func(fs.FS) fs.FS
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

// database is an engine below the store.
type database interface {
	// Writer returns the connection of SQLite that writes, or PostgreSQL's pool.
	Writer() *sql.DB
	Dialector() gorm.Dialector
	// View runs fn on a snapshot, Read without one, and Audit on one that may last long.
	View(ctx context.Context, fn func(engine.Conn) error) error
	Read(ctx context.Context, fn func(engine.Conn) error) error
	Audit(ctx context.Context, fn func(engine.Conn) error) error
	Ping(ctx context.Context) error
	Backup(ctx context.Context, file string) error
	// Migrations returns the files of the migrations, Migrate applies them, and Migrated reports
	// whether it ever ran.
	Migrations() (fs.FS, error)
	Migrate(ctx context.Context, files fs.FS, log *slog.Logger) error
	Migrated(ctx context.Context) (bool, error)
	// Classify marks failures of the database itself as unavailable.
	Classify(ctx context.Context, err error) error
	LastChange(c engine.Conn) (ports.Cursor, error)
	ChangesSince(ctx context.Context, c engine.Conn, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error)
	PurgeChanges() string
	Close() error
}

// Store is a database. It is safe for concurrent use.
type Store struct {
	*proof.Prover
	config   Config
	database database
	update   func(ctx context.Context, fn func(*engine.Transaction) error) error
	commits  []*commit.Committer // SQLite's one, or those of PostgreSQL among which agents are divided
	reads    []*reader           // of PostgreSQL, among which agents are divided
	recent   *recent             // sessions that were read lately, nil until Remember
	postgres *postgres.Database  // the database, or nil
	shares   *commit.Shares      // of its connections, by agent
	queued   *commit.Shares      // of the units and views that wait for batches, by agent
	work     *work.Database
	metrics  *metrics
	clock    *clock
	now      func() time.Time // the time at which changes are noted
	leases   leaseSQL
	timed    func(args ...any) []any // appends the time to the arguments of leaseSQL, if it is one
	jobs     atomic.Pointer[JobInserter]
	closing  sync.Once
}

// Open opens the database, which may still need Migrate. It returns ErrNewerSchema for one whose
// schema needs a newer program.
func Open(ctx context.Context, config Config) (*Store, error) {
	if (config.Path == "") == (config.URL == "") {
		return nil, errors.New("open database: give a path or a URL")
	}
	if config.Readers <= 0 {
		config.Readers = 8
	}
	if config.MaxConns <= 0 {
		config.MaxConns = 20
	}
	if config.Host == nil {
		config.Host = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: config, metrics: newMetrics()}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	counts := commit.Counts{Units: s.metrics.units, Batches: s.metrics.batches}
	if s.config.URL != "" {
		db, err := postgres.Open(ctx, s.config.URL, s.config.MaxConns)
		if err != nil {
			return err
		}
		s.shares, s.queued = commit.NewShares(max(1, db.Slots()/2)), commit.NewShares(maxQueued)
		db.Retried = func(reason string) { s.metrics.retries.WithLabelValues(reason).Inc() }
		s.database, s.postgres, s.update = db, db, s.onPostgres
		for range committers {
			s.commits = append(s.commits, commit.New(counts, s.beginBatch, s.alone))
		}
		for range readers {
			s.reads = append(s.reads, newReader(s))
		}
	} else {
		db, err := sqlite.Open(ctx, s.config.Path, s.config.Readers)
		if err != nil {
			return err
		}
		begin := func([]*ports.ReadSet) (*engine.Transaction, error) { return db.Begin() }
		s.commits = []*commit.Committer{commit.New(counts, begin, nil)}
		s.database, s.update = db, s.commits[0].Do
	}
	if err := s.startClock(ctx); err != nil {
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	orm, err := openORM(s.database.Dialector())
	s.work = &work.Database{ORM: orm, Now: s.now}
	s.Prover = proof.New(proofDatabase{s}, s.clock, s.postgres != nil, proofBounds)
	return err
}

// openORM opens GORM on a database. Each needs a config of its own: one that a SQLite and a
// PostgreSQL database share loses the row locks of PostgreSQL.
func openORM(dialector gorm.Dialector) (*gorm.DB, error) {
	orm, err := gorm.Open(dialector, &gorm.Config{
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("gorm: %w", err)
	}
	return orm, nil
}

// Close waits for the running units and closes the database. Units that wait for the writer are
// refused as unavailable.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		for _, c := range s.commits {
			c.Close()
		}
		for _, r := range s.reads {
			r.close()
		}
		if s.database != nil {
			err = s.database.Close()
		}
	})
	return err
}

// Writer returns the pool that writes. On SQLite it has one connection, which River's client uses
// too, so that database/sql makes it wait instead of SQLite refusing it.
func (s *Store) Writer() *sql.DB { return s.database.Writer() }

// Pool returns the pool of connections to PostgreSQL, nil on SQLite.
func (s *Store) Pool() *pgxpool.Pool {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.Pool()
}

// RateLimits returns the limits that processes share, nil on SQLite, which serves one process.
func (s *Store) RateLimits() ports.RateLimits {
	if s.postgres == nil {
		return nil
	}
	return s.postgres.RateLimits()
}

// Listen calls notify, which must not block, when another process may have committed a change, until
// ctx ends. On SQLite it returns at once: changes are polled with Since.
func (s *Store) Listen(ctx context.Context, notify func()) {
	if s.postgres != nil {
		s.postgres.Listen(ctx, s.config.Logger, notify)
	}
}

// Remember has views take sessions that were read within the last second from memory, on
// PostgreSQL. What it returns must be notified of the changes of other processes. It is called
// before the first view.
func (s *Store) Remember() ports.Watcher {
	if s.postgres != nil {
		s.recent = newRecent()
	}
	return s.recent
}

// SetJobInserter sets what inserts jobs. Until then Insert of Jobs returns an error.
func (s *Store) SetJobInserter(insert JobInserter) { s.jobs.Store(&insert) }

// View runs fn on a consistent read-only snapshot.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	if a := ports.ReadSetOf(ctx); a != nil && s.postgres != nil && batchable(a) {
		if err := s.reads[shardOf(a, len(s.reads))].view(ctx, a, fn); err != commit.ErrAlone {
			return s.database.Classify(ctx, err)
		}
	}
	return s.read(ctx, s.database.View, fn)
}

// Read runs fn without a snapshot around it: its one query is a snapshot.
func (s *Store) Read(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.read(ctx, s.database.Read, fn)
}

func (s *Store) read(
	ctx context.Context, run func(context.Context, func(engine.Conn) error) error,
	fn func(ctx context.Context, tx ports.Tx) error,
) error {
	release, err := s.shares.Take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.database.Classify(ctx, run(ctx, func(conn engine.Conn) error {
		return fn(ctx, s.unit(s.traced(ctx, conn), nil))
	}))
}

// Update runs fn in a transaction. A cancelled ctx refuses a unit that has not started. It does not
// interrupt one that has: SQLite answers an interrupted write by rolling back the whole transaction,
// and with it the units of others.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	var touched []string
	defer func() { s.recent.drop(touched...) }()
	var shared *batch // of the last run
	err := s.update(ctx, func(in *engine.Transaction) error {
		t := s.unit(s.traced(ctx, in.Conn), in)
		if s.recent != nil {
			t.Touched = &touched
		}
		if b, ok := in.Conn.(batchConn); ok {
			shared = b.batch
			t.join(shared)
		}
		return fn(context.WithoutCancel(ctx), t)
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
func (s *Store) onPostgres(ctx context.Context, fn func(*engine.Transaction) error) error {
	a := ports.ReadSetOf(ctx)
	if a == nil || !batchable(a) {
		return s.alone(ctx, fn)
	}
	release, err := s.queued.Take(ctx)
	if err != nil {
		return err
	}
	defer release()
	return s.commits[shardOf(a, len(s.commits))].Do(ctx, fn)
}

// alone runs a unit on PostgreSQL in a transaction of its own.
func (s *Store) alone(ctx context.Context, fn func(*engine.Transaction) error) error {
	release, err := s.shares.Take(ctx)
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

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.database.Ping(ctx); err != nil {
		return engine.Unavailable("ping", err)
	}
	return nil
}
