// Package postgres is the PostgreSQL engine of storage: a server that several processes share. A unit
// of work has a transaction of its own and locks the rows that it reads.
package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
)

// PipelineLockTimeout is how long a statement of a pipeline waits for a lock that another
// transaction has, in milliseconds. It is shorter than deadlock_timeout, and one busy row must not
// hold up the units of everyone. Tests that look at what waits set another in a Database.
const PipelineLockTimeout = 100

// feedLag is an event that a transaction under way holds up, the newest one when it was noticed; zero: none.
type feedLag struct {
	mu        sync.Mutex
	place, at int64
}

// Database is a pool of connections to a server.
type Database struct {
	url     URL
	pool    *pgxpool.Pool
	db      *sql.DB // the same connections for database/sql
	losses  *losses // of connections of the pool
	servers *servers
	// slots are the connections that units and snapshots may have. The others of the pool are for
	// pipelines, which never wait for a unit, and for single statements.
	slots  chan struct{}
	waits  atomic.Int64 // for a slot
	waited atomic.Int64 // nanoseconds
	// Retried, if set, is called for each try of a unit after its first, with why.
	Retried func(reason string)
	// Space is what is known of the space that is left. Its capacity and clock are set before its first use.
	Space
	// LockTimeout is that of pipelines, in milliseconds. Open sets PipelineLockTimeout.
	LockTimeout int
	// Patience is how long is waited for a free connection, and for the end of what was done on one.
	Patience time.Duration
	// UnitWithin bounds a unit, a snapshot or a transaction of a pipeline.
	UnitWithin time.Duration
	lag        feedLag
}

// Open connects to a server, and checks its version and that it was not replaced. The newest timeline that was seen
// is kept in a file, unless its path is empty.
func Open(ctx context.Context, url URL, connections int, seenFile string, log *slog.Logger) (*Database, error) {
	c, err := poolConfig(url, connections)
	if err != nil {
		return nil, err
	}
	statements, settings := session(c.ConnConfig, nil)
	s := &servers{settings: statements, log: log}
	if s.seen, err = readSeen(seenFile); err != nil {
		return nil, err
	}
	s.watch(c.ConnConfig)
	s.look(ctx, c.ConnConfig)
	l := &losses{}
	l.watch(c, s)
	var statement time.Duration
	if l.pool, statement, err = connect(ctx, c, settings); err != nil {
		return nil, err
	}
	slots := make(chan struct{}, connections-Reserved(connections))
	d := &Database{url: url, pool: l.pool, db: stdlib.OpenDBFromPool(l.pool), losses: l, servers: s, slots: slots,
		LockTimeout: PipelineLockTimeout}
	d.Patience, d.UnitWithin = bounds(c.ConnConfig.ConnectTimeout, statement)
	d.Space.Now, d.Space.size = time.Now, d.Size
	return d, nil
}

// bounds returns how long is waited for a free connection and what a unit may take, by the time that a dial and a
// statement may take.
func bounds(dial, statement time.Duration) (patience, unit time.Duration) {
	return max(connWithin, dial), max(unitWithin, statement+time.Second)
}

// Reserved returns how many connections of a pool units and snapshots leave to pipelines.
func Reserved(connections int) int { return min(8, connections/2) }

// Slots returns how many units and snapshots may have a connection at the same time.
func (d *Database) Slots() int { return cap(d.slots) }

// Waits returns how many units and snapshots waited for a connection, and for how long.
func (d *Database) Waits() (n int64, sum time.Duration) {
	return d.waits.Load(), time.Duration(d.waited.Load())
}

// Losses returns how often the connections of the pool were replaced, because one of them was lost.
func (d *Database) Losses() int64 { return d.losses.count() }

// Promotions returns how often another server than before was found promoted.
func (d *Database) Promotions() int64 { return d.servers.promotions() }

// LossyPromotions returns how often a server that was promoted lacked commits of this process; 0 without a database.
func (d *Database) LossyPromotions() int64 {
	if d == nil {
		return 0
	}
	return d.servers.lossy()
}

// Writer returns the pool for database/sql.
func (d *Database) Writer() *sql.DB { return d.db }

// Pool returns the pool of connections, nil without a database.
func (d *Database) Pool() *pgxpool.Pool {
	if d == nil {
		return nil
	}
	return d.pool
}

// Dialector returns GORM's dialect.
func (d *Database) Dialector() gorm.Dialector { return postgres.New(postgres.Config{Conn: d.db}) }

// Size returns how many bytes the tables and indexes of the database take. The log of writes is not among them.
func (d *Database) Size(ctx context.Context) (bytes int64, err error) {
	err = d.pool.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
	return bytes, d.Classify(ctx, err)
}

// Close waits for the units that run.
func (d *Database) Close() error {
	err := d.db.Close()
	d.pool.Close()
	return err
}

// acquired is a connection taken from the pool.
type acquired struct {
	conn *sql.Conn
	pg   *pgx.Conn // the same
	free func()    // gives the slot back
	// within bounds the statement that ends the transaction.
	within time.Duration
}

// close releases the connection.
func (a acquired) close() {
	_ = a.conn.Close()
	a.free()
}

// acquire takes a connection from the pool and runs query on it. A connection that turns out to be lost is
// replaced by another: nothing was done on it yet.
func (d *Database) acquire(ctx context.Context, query string) (a acquired, results []*pgconn.Result, err error) {
	err = again(ctx, func() (err error) {
		if a, err = d.borrow(ctx); err != nil {
			return err
		}
		if results, err = a.pg.PgConn().Exec(ctx, query).ReadAll(); err != nil {
			d.losses.look(ctx, a.pg)
			a.close()
		}
		return err
	})
	switch {
	case err == nil || errors.Is(err, domain.ErrUnavailable):
		return a, results, err
	case ctx.Err() != nil:
		return a, nil, ctx.Err()
	}
	return a, nil, engine.UnavailableFor(cmp.Or(causes[sqlState(err)], "begin"), "begin", err)
}

// allInUse returns that the connections are all in use.
func (d *Database) allInUse() error {
	err := fmt.Errorf("no connection of the pool was free within %v", d.Patience)
	return engine.UnavailableFor("pool", "connect", err)
}

func (d *Database) borrow(ctx context.Context) (a acquired, err error) {
	if err := ctx.Err(); err != nil {
		return a, err
	}
	soon, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	if err := d.slot(ctx, soon); err != nil {
		return a, err
	}
	free := sync.OnceFunc(func() { <-d.slots })
	if a, err = d.lend(ctx, soon); err != nil {
		free()
	}
	a.free = free
	return a, err
}

// lend takes a connection before soon, which is part of ctx, ends.
func (d *Database) lend(ctx, soon context.Context) (a acquired, err error) {
	a.free, a.within = func() {}, d.Patience
	if a.conn, err = d.db.Conn(soon); err != nil {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		return a, d.noConnection(err)
	}
	err = a.conn.Raw(func(c any) error {
		a.pg = c.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return a, errors.Join(engine.Unavailable("connect", err), a.conn.Close())
	}
	return a, nil
}

// noConnection returns why the pool gave no connection.
func (d *Database) noConnection(err error) error {
	switch _, unreachable := errors.AsType[*pgconn.ConnectError](err); {
	case unreachable:
		return engine.Unavailable("connect", connectError(err))
	case errors.Is(err, context.DeadlineExceeded):
		return d.allInUse()
	}
	return engine.Unavailable("connect", err)
}

// slot takes a slot before soon, which is part of ctx, ends.
func (d *Database) slot(ctx, soon context.Context) error {
	select {
	case d.slots <- struct{}{}:
		return nil
	default:
	}
	began := time.Now()
	d.waits.Add(1)
	defer func() { d.waited.Add(int64(time.Since(began))) }()
	select {
	case d.slots <- struct{}{}:
		return nil
	case <-soon.Done():
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return d.allInUse()
	}
}

// inTransaction reports whether the server has a transaction open on the connection.
func inTransaction(c *pgx.Conn) bool { return c.PgConn().TxStatus() != 'I' }

// end commits or rolls back and releases the connection. If that fails, the pool finds the
// connection inside the transaction and closes it. Nothing is sent on a connection that was
// released before, as database/sql does when the driver calls it bad: another unit may use it.
func (a acquired) end(statement string) {
	_ = a.conn.Raw(func(any) error {
		if !a.pg.IsClosed() && inTransaction(a.pg) {
			ctx, cancel := context.WithTimeout(context.Background(), a.within)
			defer cancel()
			_, _ = a.pg.PgConn().Exec(ctx, statement).ReadAll()
		}
		return nil
	})
	a.close()
}

// View runs fn on a snapshot.
func (d *Database) View(ctx context.Context, fn func(engine.Conn) error) error {
	return d.snapshot(ctx, d.UnitWithin, "", fn)
}

// Audit is like View without a limit for one statement: the ledger may be long.
func (d *Database) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return d.snapshot(ctx, auditWithin, "; SET LOCAL statement_timeout = 0", fn)
}

func (d *Database) snapshot(ctx context.Context, within time.Duration, set string, fn func(engine.Conn) error) error {
	a, _, err := d.acquire(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"+set)
	if err != nil {
		return err
	}
	defer a.end("COMMIT")
	return read(ctx, a, within, fn)
}

// Read runs fn on a connection without a snapshot, which is enough for one query. It runs fn again on
// another connection if that was lost.
func (d *Database) Read(ctx context.Context, fn func(engine.Conn) error) error {
	return again(ctx, func() error {
		a, err := d.borrow(ctx)
		if err != nil {
			return err
		}
		defer a.end("ROLLBACK")
		return read(ctx, a, d.UnitWithin, fn)
	})
}

func read(ctx context.Context, a acquired, within time.Duration, fn func(engine.Conn) error) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	return fn(&conn{acquired: a, ctx: bounded})
}

// Ping reports whether the server answers.
func (d *Database) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	return again(ctx, func() error {
		_, err := d.pool.Exec(ctx, "") // losses sees no Ping
		return err
	})
}

// ErrBackup refuses to copy what the server's own tools copy.
var ErrBackup = &domain.Error{Kind: domain.Invalid, Code: "BACKUP_UNSUPPORTED",
	Message: "backup copies SQLite only; copy a PostgreSQL database with pg_dump"}

// Backup returns ErrBackup.
func (d *Database) Backup(context.Context, string) error { return ErrBackup }
