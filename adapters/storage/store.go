// Package storage keeps everything in one database: GORM and hand-written SQL
// over SQLite or PostgreSQL. It implements ports.Store and ports.Audit.
package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"agentproxy/domain"
	"agentproxy/ports"
)

var (
	_ ports.Store = (*Store)(nil)
	_ ports.Audit = (*Store)(nil)
)

// Config says where the database is: a Path or a URL. The other zero values work.
type Config struct {
	// Path is the SQLite file. It is made when it does not exist.
	Path string
	// URL is that of a PostgreSQL database.
	URL URL
	// Readers is how many snapshots of SQLite are read at the same time; 0: eight.
	Readers int
	// MaxConns is how many connections to PostgreSQL are open at the same time;
	// 0: twenty.
	MaxConns int
	// Now tells when a change was noted; nil: the system's clock.
	Now func() time.Time
	// Logger is told of migrations, and of notices that do not come; nil: nobody is.
	Logger *slog.Logger
}

// JobTx is the transaction of a unit that inserts a job.
type JobTx struct {
	// Conn is the connection, and what runs on it is in the transaction.
	Conn *sql.Conn
	// Tx is the same on SQLite, and nil on PostgreSQL.
	Tx *sql.Tx
}

// JobInserter inserts a job in the transaction of the running unit.
type JobInserter func(ctx context.Context, tx JobTx, j ports.Job, now time.Time) error

// Store is a database. It is safe for concurrent use.
type Store struct {
	config  Config
	engine  engine
	orm     *gorm.DB
	jobs    atomic.Pointer[JobInserter]
	closing sync.Once
}

// Open opens the database, which may still need Migrate. It refuses with
// ErrNewerSchema what a newer program has migrated.
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
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: config}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) (err error) {
	if s.config.URL != "" {
		s.engine, err = openPostgres(ctx, s.config)
	} else {
		s.engine, err = openSQLite(ctx, s.config)
	}
	if err != nil {
		s.engine = nil
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	s.orm, err = openORM(s.engine.dialector())
	return err
}

// openORM gives GORM a database. The config is made anew for each: one that a
// SQLite and a PostgreSQL database share loses the row locks of PostgreSQL.
func openORM(dialector gorm.Dialector) (*gorm.DB, error) {
	orm, err := gorm.Open(dialector, &gorm.Config{
		TranslateError:         true,
		SkipDefaultTransaction: true,
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("gorm: %w", err)
	}
	return orm, nil
}

// Close waits for the running units and closes the database. Units that wait
// for their turn are refused.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		if s.engine != nil {
			err = s.engine.close()
		}
	})
	return err
}

// Writer is what writes: on SQLite one connection, which River's client uses
// too, so that database/sql makes it wait its turn instead of SQLite refusing it.
func (s *Store) Writer() *sql.DB { return s.engine.handle() }

// Pool is the pool of connections to PostgreSQL, nil on SQLite.
func (s *Store) Pool() *pgxpool.Pool {
	if e, ok := s.engine.(*postgresEngine); ok {
		return e.pool
	}
	return nil
}

// SetJobInserter says who inserts jobs. Until then Insert of Jobs is an error.
func (s *Store) SetJobInserter(insert JobInserter) { s.jobs.Store(&insert) }

// View runs fn on a consistent read-only snapshot.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.engine.fault(ctx, s.engine.view(ctx, s.unit(fn)))
}

// Look runs fn without a snapshot around it: its one query is one.
func (s *Store) Read(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.engine.fault(ctx, s.engine.look(ctx, s.unit(fn)))
}

// Update runs fn in a transaction. A cancelled ctx refuses a unit that has not
// started; one that has started is not disturbed.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return s.engine.fault(ctx, s.engine.update(ctx, s.unit(fn)))
}

// unit is fn with the tx of an engine, which learns whose it is.
func (s *Store) unit(fn func(context.Context, ports.Tx) error) func(context.Context, *tx) error {
	return func(ctx context.Context, t *tx) error {
		t.store, t.dialect = s, s.engine.dialect()
		return fn(ctx, t)
	}
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.engine.ping(ctx); err != nil {
		return unavailable("ping", err)
	}
	return nil
}

// Backup writes a copy of the database to a new file while the service runs,
// checks the copy, and brings it to the disk. It refuses a file that exists, and
// on PostgreSQL always.
func (s *Store) Backup(ctx context.Context, file string) error { return s.engine.backup(ctx, file) }

// unavailable marks a failure of the database itself, so that the caller is
// told to try again.
func unavailable(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, domain.ErrUnavailable, err)
}

// isDuplicate reports whether a unique index refused a row.
func (s *Store) isDuplicate(err error) bool {
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return true
	}
	translator, ok := s.orm.Dialector.(gorm.ErrorTranslator)
	return ok && errors.Is(translator.Translate(err), gorm.ErrDuplicatedKey)
}
