// Package sqlite is the SQLite engine of storage: a file with one connection that writes and several
// that read snapshots.
package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mattn/go-sqlite3"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
)

// Database is an open file.
type Database struct {
	path    string
	writer  *sql.DB
	readers *readers
	closed  atomic.Bool
	// listedTo is up to where outbox_feeds has events, as far as is known, or listedUnknown. It belongs to who has the
	// writing connection.
	listedTo int64
	seen     seen
}

// seen is the version of the file that a connection has seen, which changes when another connection commits.
type seen struct {
	conn    *sqlite3.SQLiteConn
	version int64
}

// Open opens a file, which is created if it does not exist, with a number of connections that read.
// On a full disk it uses the space that it kept there.
func Open(ctx context.Context, path string, connections int) (_ *Database, err error) {
	d, err := open(ctx, path, connections)
	if err != nil && freeReserve(path, err) {
		return open(ctx, path, connections)
	}
	if err == nil {
		keepReserve(path)
	}
	return d, err
}

func open(ctx context.Context, path string, connections int) (_ *Database, err error) {
	d := &Database{path: path, listedTo: listedUnknown}
	// The writer comes first: it creates the file and turns on its WAL.
	if d.writer, err = openWriter(ctx, path); err != nil {
		return nil, err
	}
	if d.readers, err = openReaders(ctx, path, connections); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Writer returns the pool of the one connection that writes. Beside transactions of Begin it changes no table of which
// rows are kept.
func (d *Database) Writer() *sql.DB { return d.writer }

// Dialector returns GORM's dialect.
func (d *Database) Dialector() gorm.Dialector { return sqlite.New(sqlite.Config{Conn: d.writer}) }

// View runs fn on a snapshot.
func (d *Database) View(ctx context.Context, fn func(engine.Conn) error) error {
	return d.readers.view(ctx, false, func(r *reader) error { return fn(conn{r.conn}) })
}

// Read runs fn on a connection without a snapshot, which is enough for one query.
func (d *Database) Read(ctx context.Context, fn func(engine.Conn) error) error {
	return d.readers.read(ctx, func(r *reader) error { return fn(conn{r.conn}) })
}

// Audit is as View, for one that reads much: a snapshot has no time limit.
func (d *Database) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return d.readers.view(ctx, true, func(r *reader) error { return fn(conn{r.conn}) })
}

// Begin takes the writing connection for one transaction. Between transactions River's client has
// it. others reports whether another connection, also of another process, may have changed the file since the last
// transaction began.
func (d *Database) Begin() (in *engine.Transaction, others bool, err error) {
	ctx := context.Background()
	c, err := d.writer.Conn(ctx)
	if err != nil {
		return nil, false, engine.Unavailable("begin", err)
	}
	tx, err := c.BeginTx(ctx, nil)
	if err != nil {
		_ = c.Close()
		return nil, false, engine.Unavailable("begin", err)
	}
	last := d.seen
	d.seen = see(ctx, c)
	return &engine.Transaction{
		Conn:     conn{c},
		Tx:       tx,
		Commit:   func() error { defer c.Close(); return d.commit(c, tx) },
		Rollback: func() error { defer c.Close(); return tx.Rollback() },
	}, d.seen != last || d.seen.conn == nil, nil
}

// see returns what a connection has seen in a transaction that has begun, nothing if that cannot be read. The version
// of another connection begins anew: https://www.sqlite.org/pragma.html#pragma_data_version.
func see(ctx context.Context, c *sql.Conn) (now seen) {
	if err := c.QueryRowContext(ctx, "PRAGMA data_version").Scan(&now.version); err != nil {
		return seen{}
	}
	_ = c.Raw(func(driver any) error {
		now.conn, _ = driver.(*sqlite3.SQLiteConn)
		return nil
	})
	return now
}

// commit lists events by their agents if there are enough, and commits a transaction.
func (d *Database) commit(c *sql.Conn, tx *sql.Tx) error {
	listedTo, err := d.listEvents(c)
	d.listedTo = listedUnknown
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	d.listedTo = listedTo
	return nil
}

// Ping reports whether the file can be read.
func (d *Database) Ping(ctx context.Context) error {
	return d.readers.view(ctx, false, func(r *reader) error {
		var n int
		return r.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM sqlite_master").Scan(&n)
	})
}

// Close waits for the snapshots in use and closes the file.
func (d *Database) Close() error {
	d.closed.Store(true)
	var errs []error
	if d.readers != nil {
		errs = append(errs, d.readers.close())
	}
	return errors.Join(append(errs, d.writer.Close())...)
}

// DiskFull returns false: the space is read.
func (d *Database) DiskFull() bool { return false }

// Classify marks failures of the database itself as unavailable, among them those of a closed one,
// and returns every other error as it is. database/sql has no sentinel for a closed pool.
func (d *Database) Classify(_ context.Context, err error) error {
	if _, refusal := errors.AsType[*domain.Error](err); err != nil && !refusal && d.closed.Load() {
		return engine.Unavailable("closed database", err)
	}
	fault, ok := errors.AsType[sqlite3.Error](err)
	if !ok {
		return err
	}
	switch fault.Code {
	case sqlite3.ErrBusy, sqlite3.ErrLocked, sqlite3.ErrFull, sqlite3.ErrIoErr, sqlite3.ErrCantOpen, sqlite3.ErrNomem:
		return engine.Unavailable("database", err)
	}
	return err
}

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the files of the migrations.
func (d *Database) Migrations() (fs.FS, error) { return fs.Sub(migrations, "migrations") }

// Migrate applies the migrations in files.
func (d *Database) Migrate(ctx context.Context, files fs.FS, log *slog.Logger) error {
	provider, err := engine.Migrator(goose.DialectSQLite3, files, d.writer)
	if err != nil {
		return err
	}
	if err := retry(ctx, func() error { return engine.MigrateOwn(ctx, log, provider) }); err != nil {
		return err
	}
	return retry(ctx, func() error { return engine.MigrateRiver(ctx, riversqlite.New(d.writer)) })
}

// retry repeats a migration for two seconds. Of two processes that start together the second waits
// for the lock and then fails, because its tables exist, until the first has finished.
func retry(ctx context.Context, migrate func() error) error {
	const tries, pause = 20, 100 * time.Millisecond
	for try := 1; ; try++ {
		err := migrate()
		if err == nil || try == tries || ctx.Err() != nil {
			return err
		}
		time.Sleep(pause)
	}
}

// Migrated reports whether Migrate ever ran.
func (d *Database) Migrated(ctx context.Context) (done bool, err error) {
	err = d.writer.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'goose_db_version')").Scan(&done)
	return done, err
}
