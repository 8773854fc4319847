// Package storage keeps everything in one database: GORM and hand-written SQL
// over SQLite. It implements ports.Store and ports.Audit.
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

	"gorm.io/gorm"

	"agentproxy/domain"
	"agentproxy/ports"
)

var (
	_ ports.Store = (*Store)(nil)
	_ ports.Audit = (*Store)(nil)
)

// Config says where the database is. Its zero values work, but for Path.
type Config struct {
	// Path is the SQLite file. It is made when it does not exist.
	Path string
	// Readers is how many snapshots are read at the same time; 0: eight.
	Readers int
	// Now tells when a change was noted; nil: the system's clock.
	Now func() time.Time
	// Logger is told of migrations; nil: nobody is.
	Logger *slog.Logger
}

// JobInserter inserts a job in the transaction of the running unit.
type JobInserter func(ctx context.Context, tx *sql.Tx, j ports.Job, now time.Time) error

// Store is a database. It is safe for concurrent use.
type Store struct {
	config  Config
	writer  *sql.DB // one connection
	orm     *gorm.DB
	lanes   *lanes
	commits *committer
	jobs    atomic.Pointer[JobInserter]
	closing sync.Once
}

// Open opens the database, which may still need Migrate. It refuses with
// ErrNewerSchema what a newer program has migrated.
func Open(ctx context.Context, config Config) (*Store, error) {
	if config.Path == "" {
		return nil, errors.New("open database: no path is configured")
	}
	if config.Readers <= 0 {
		config.Readers = 8
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
	// The writer comes first: it makes the file and turns on its WAL.
	if s.writer, err = openWriter(ctx, s.config.Path); err != nil {
		return err
	}
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	if s.orm, err = openORM(s.writer); err != nil {
		return err
	}
	if s.lanes, err = openLanes(ctx, s.config.Path, s.config.Readers); err != nil {
		return err
	}
	s.commits = newCommitter(s.writer)
	return nil
}

// Close waits for the running units and closes the database. Units that wait
// for their turn are refused.
func (s *Store) Close() error {
	var errs []error
	s.closing.Do(func() {
		if s.commits != nil {
			s.commits.close()
		}
		if s.lanes != nil {
			errs = append(errs, s.lanes.close())
		}
		if s.writer != nil {
			errs = append(errs, s.writer.Close())
		}
	})
	return errors.Join(errs...)
}

// Writer is the one connection that writes. River's client uses it too, so that
// database/sql makes it wait its turn instead of SQLite refusing it.
func (s *Store) Writer() *sql.DB { return s.writer }

// SetJobInserter says who inserts jobs. Until then Insert of Jobs is an error.
func (s *Store) SetJobInserter(insert JobInserter) { s.jobs.Store(&insert) }

// View runs fn on a consistent read-only snapshot.
func (s *Store) View(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return unreachable(s.lanes.view(ctx, func(l *lane) error {
		return fn(ctx, &tx{store: s, conn: l.conn})
	}))
}

// Look runs fn without a snapshot around it: its one query is one.
func (s *Store) Look(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return unreachable(s.lanes.look(ctx, func(l *lane) error {
		return fn(ctx, &tx{store: s, conn: l.conn})
	}))
}

// Update runs fn in a transaction that it may share with other units; see
// committer. A cancelled ctx refuses a unit that has not started. One that has
// started is not disturbed, because SQLite answers an interrupted write by
// rolling back the whole transaction, and so the units of others.
func (s *Store) Update(ctx context.Context, fn func(ctx context.Context, tx ports.Tx) error) error {
	return unreachable(s.commits.do(ctx, func(in *shared) error {
		return fn(context.WithoutCancel(ctx), &tx{store: s, conn: in.conn, shared: in})
	}))
}

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.lanes.view(ctx, func(l *lane) error {
		var n int
		if err := l.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&n); err != nil {
			return unavailable("ping", err)
		}
		return nil
	})
}

// unavailable marks a failure of the database itself, so that the caller is
// told to try again.
func unavailable(doing string, err error) error {
	return fmt.Errorf("%s: %w: %w", doing, domain.ErrUnavailable, err)
}
