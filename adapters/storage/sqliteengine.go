package storage

import (
	"context"
	"database/sql"
	"errors"

	"github.com/mattn/go-sqlite3"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
)

// sqliteEngine is a file: one connection that writes, for units that share its
// transactions, and several that read.
type sqliteEngine struct {
	path    string
	writer  *sql.DB
	lanes   *lanes
	commits *committer
}

var sqliteDialect = dialect{
	folder:     "migrations/sqlite",
	lastChange: `SELECT CAST(COALESCE(MAX(seq), 0) AS TEXT) FROM changes`,
	// The newest is kept, so that the numbers go on from it.
	purgeChanges: `DELETE FROM changes WHERE at < ?1 AND seq < (SELECT MAX(seq) FROM changes)`,
}

func openSQLite(ctx context.Context, config Config) (_ *sqliteEngine, err error) {
	e := &sqliteEngine{path: config.Path}
	// The writer comes first: it makes the file and turns on its WAL.
	if e.writer, err = openWriter(ctx, e.path); err != nil {
		return nil, err
	}
	if e.lanes, err = openLanes(ctx, e.path, config.Readers); err != nil {
		return nil, errors.Join(err, e.close())
	}
	e.commits = newCommitter(e.writer)
	return e, nil
}

func (e *sqliteEngine) handle() *sql.DB           { return e.writer }
func (e *sqliteEngine) dialect() *dialect         { return &sqliteDialect }
func (e *sqliteEngine) dialector() gorm.Dialector { return sqlite.New(sqlite.Config{Conn: e.writer}) }

// quiet is the context of every statement of a unit that writes, whatever
// context its caller passes on, and of reads of a few rows. The driver
// interrupts a statement when its context ends, which rolls back more than that
// statement, and a context that can end costs it a goroutine.
var quiet = context.Background()

func (e *sqliteEngine) view(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.lanes.view(ctx, func(l *lane) error { return run(ctx, &tx{conn: l.conn, quiet: quiet}) })
}

func (e *sqliteEngine) look(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.lanes.look(ctx, func(l *lane) error { return run(ctx, &tx{conn: l.conn, quiet: quiet}) })
}

func (e *sqliteEngine) audit(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.view(ctx, run)
}

// update runs a unit in a transaction that it may share with others; see
// committer. A unit that has started is not disturbed when ctx ends, because
// SQLite answers an interrupted write by rolling back the whole transaction, and
// so the units of others.
func (e *sqliteEngine) update(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.commits.do(ctx, func(in *shared) error {
		return run(context.WithoutCancel(ctx), &tx{conn: in.conn, quiet: quiet, shared: in})
	})
}

func (e *sqliteEngine) ping(ctx context.Context) error {
	return e.lanes.view(ctx, func(l *lane) error {
		var n int
		return l.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&n)
	})
}

func (e *sqliteEngine) close() error {
	var errs []error
	if e.commits != nil {
		e.commits.close()
	}
	if e.lanes != nil {
		errs = append(errs, e.lanes.close())
	}
	return errors.Join(append(errs, e.writer.Close())...)
}

func (e *sqliteEngine) fault(_ context.Context, err error) error {
	fault, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return err
	}
	switch fault.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrCantOpen, sqlite3.ErrNomem:
		return unavailable("database", err)
	}
	return err
}
