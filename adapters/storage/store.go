// Package storage keeps everything in one database, SQLite or PostgreSQL, by GORM and by
// hand-written SQL on the hot paths. It implements ports.Store and ports.Audit.
//
// A unit of work is a tx, which hands out the repositories. They are in packages by family, which keep the hot
// rows in a rows.Set: declared once, read into memory, and written by one statement a table. Its statements run
// on an engine.Conn of the package sqlite or postgres. A committer lets units that wait share one commit, on
// PostgreSQL those whose rows are known ahead, which the package batch reads.
package storage

import (
	"context"
	"database/sql"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/calls"
	"agentproxy/adapters/storage/commit"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/postgres"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
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
	// Seen is a file that keeps the newest timeline of PostgreSQL's servers, so that one that was replaced is
	// refused by a process that starts too; empty: none.
	Seen string
	// Capacity is how many bytes the operator lets a PostgreSQL database take; 0 means that it is not known.
	Capacity int64
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
	// Free returns the bytes that are left, Scarce whether that is little, and DiskFull whether there were none lately.
	Free() (bytes uint64, known bool, err error)
	Scarce() (bool, error)
	DiskFull() bool
	Backup(ctx context.Context, file string) error
	// Migrations returns the files of the migrations, Migrate applies them, and Migrated reports
	// whether it ever ran.
	Migrations() (fs.FS, error)
	Migrate(ctx context.Context, files fs.FS, log *slog.Logger) error
	Migrated(ctx context.Context) (bool, error)
	// Classify marks failures of the database itself as unavailable.
	Classify(ctx context.Context, err error) error
	calls.Feed
	// Hints reports whether queries name partial indexes, because there are no statistics before ANALYZE.
	Hints() bool
	// OldEvents returns the table of events that are removed as rows.
	OldEvents() string
	// Feed returns the order of the events of agents.
	Feed() engine.Feed
	// MendFeed has places rise again in a database that another server restored, and RaiseFeed in any.
	MendFeed(ctx context.Context) error
	RaiseFeed(ctx context.Context) error
	// FeedHeld returns for how long events are held up.
	FeedHeld(ctx context.Context, now time.Time) (time.Duration, error)
	// MonthOf returns the expression for the start of the UTC month of a time, both in microseconds since 1970.
	MonthOf(at string) string
	Close() error
}

// Store is a database. It is safe for concurrent use.
type Store struct {
	*proof.Prover
	config   Config
	database database
	update   func(ctx context.Context, a *ports.ReadSet, fn func(*engine.Transaction) error) error
	// view runs a view that names what it reads. It returns engine.ErrAlone for one that reads something else.
	view     func(ctx context.Context, a *ports.ReadSet, fn func(context.Context, ports.Tx) error) error
	commits  []*commit.Committer // SQLite's one, or those of PostgreSQL among which agents are divided
	reads    []*reader           // of PostgreSQL, among which agents are divided
	last     *rows.Set           // of the last transaction on SQLite, of its committer alone
	recent   *batch.Recent       // sessions that were read lately, nil until Remember
	postgres *postgres.Database  // the database, or nil
	sqlite   *sqlite.Database    // the same
	shares   *commit.Shares      // of its connections, by agent
	queued   *commit.Shares      // of the units and views that wait for batches, by agent

	restricted accounts.RestrictedAgents
	work       *work.Database
	metrics    *metrics
	clock      *clock
	now        func() time.Time // the time at which changes are noted
	leases     sessions.LeaseSQL
	jobs       atomic.Pointer[JobInserter]
	notes      *work.EventNotes // of the events that were committed last
	closing    sync.Once
}

// Writer returns the pool that writes. On SQLite it has one connection, which River's client uses
// too, so that database/sql makes it wait instead of SQLite refusing it. What changes rows of the service there uses a
// unit, or a connection of its own: see beginOnFile.
func (s *Store) Writer() *sql.DB { return s.database.Writer() }

// Pool returns the pool of connections to PostgreSQL, nil on SQLite.
func (s *Store) Pool() *pgxpool.Pool { return s.postgres.Pool() }

// RateLimits returns the limits that processes share, nil on SQLite, which serves one process.
func (s *Store) RateLimits() ports.RateLimits { return s.postgres.RateLimits() }

// Listen calls notify, which must not block, when another process may have committed a change, until
// ctx ends. On SQLite it returns at once: changes are polled with Since.
func (s *Store) Listen(ctx context.Context, notify func()) {
	s.postgres.Listen(ctx, s.config.Logger, notify)
}

// LossyPromotions returns how often a PostgreSQL server that was promoted lacked commits of this process; 0 on SQLite.
func (s *Store) LossyPromotions() int64 { return s.postgres.LossyPromotions() }

// Remember has views take sessions that were read within the last second from memory. What it returns must be notified
// of the changes of other processes. It is called before the first view.
func (s *Store) Remember() ports.Watcher {
	s.recent = batch.NewRecent()
	return s.recent
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.database.Ping(ctx); err != nil {
		return engine.Unavailable("ping", err)
	}
	return nil
}

// traceparent returns the trace of a unit, "" where it is not traced.
func (s *Store) traceparent(ctx context.Context) string {
	if s.config.Trace == nil {
		return ""
	}
	return s.config.Trace.Traceparent(ctx)
}
