package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"agentproxy/domain"
)

// postgresEngine is a server that several processes share. A unit has a
// transaction of its own and locks the rows that it reads.
type postgresEngine struct {
	config Config
	pool   *pgxpool.Pool
	db     *sql.DB // the same connections for database/sql
	forgot atomic.Int64
}

var postgresDialect = dialect{
	folder:     "migrations/postgres",
	postgres:   true,
	lastChange: `SELECT pg_current_snapshot()::text`,
	// The newest of the old ones is kept: it says from where on none is missing.
	purgeChanges: `DELETE FROM changes WHERE seq < (SELECT MAX(seq) FROM changes WHERE at < ?1 AND ` + presentChange + `)
		OR NOT ` + presentChange,
}

func openPostgres(ctx context.Context, config Config) (*postgresEngine, error) {
	c, err := poolConfig(config.URL, config.MaxConns)
	if err != nil {
		return nil, err
	}
	pool, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	return &postgresEngine{config: config, pool: pool, db: stdlib.OpenDBFromPool(pool)}, nil
}

func (e *postgresEngine) handle() *sql.DB   { return e.db }
func (e *postgresEngine) dialect() *dialect { return &postgresDialect }
func (e *postgresEngine) dialector() gorm.Dialector {
	return postgres.New(postgres.Config{Conn: e.db})
}

// close waits for the units that run.
func (e *postgresEngine) close() error {
	err := e.db.Close()
	e.pool.Close()
	return err
}

// forget drops the connections that nobody uses, once one was found broken: the
// server has most likely been restarted, and the others are broken too.
func (e *postgresEngine) forget() {
	now, last := time.Now().UnixNano(), e.forgot.Load()
	if now-last > int64(200*time.Millisecond) && e.forgot.CompareAndSwap(last, now) {
		e.pool.Reset()
	}
}

// borrowed is a connection from the pool that somebody uses alone.
type borrowed struct {
	conn *sql.Conn
	pg   *pgx.Conn // the same
}

// take waits for a connection and says something on it. Nothing is done yet, so
// one that turns out to be broken is given up for another.
func (e *postgresEngine) take(ctx context.Context, say string) (s borrowed, answer []*pgconn.Result, err error) {
	for try := 0; ; try++ {
		if s, err = e.borrow(ctx); err != nil {
			return s, nil, err
		}
		if say == "" {
			return s, nil, nil
		}
		answer, err = s.pg.PgConn().Exec(ctx, say).ReadAll()
		if err == nil {
			return s, answer, nil
		}
		_ = s.conn.Close()
		switch {
		case ctx.Err() != nil:
			return s, nil, ctx.Err()
		case !lost(err) || try == 2:
			return s, nil, unavailable("begin", err)
		}
		e.forget()
	}
}

func (e *postgresEngine) borrow(ctx context.Context) (s borrowed, err error) {
	if err := ctx.Err(); err != nil {
		return s, err
	}
	soon, cancel := context.WithTimeout(ctx, connWithin)
	defer cancel()
	if s.conn, err = e.db.Conn(soon); err != nil {
		if ctx.Err() != nil {
			return s, ctx.Err()
		}
		return s, unavailable("connect", err)
	}
	err = s.conn.Raw(func(c any) error {
		s.pg = c.(*stdlib.Conn).Conn()
		return nil
	})
	if err != nil {
		return s, errors.Join(unavailable("connect", err), s.conn.Close())
	}
	return s, nil
}

// end says the last word of a transaction and gives the connection back. Should
// that fail, the pool finds it inside the transaction and closes it. A connection
// that was given back before, as database/sql does when the driver calls it bad,
// may be somebody else's by now: nothing is said on it.
func (s borrowed) end(say string) {
	_ = s.conn.Raw(func(any) error {
		if !s.pg.IsClosed() && s.pg.PgConn().TxStatus() != outsideTx {
			ctx, cancel := context.WithTimeout(context.Background(), connWithin)
			defer cancel()
			_, _ = s.pg.PgConn().Exec(ctx, say).ReadAll()
		}
		return nil
	})
	_ = s.conn.Close()
}

// What a connection says of its transaction.
const outsideTx = 'I'

func (e *postgresEngine) view(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.snapshot(ctx, unitWithin, "", run)
}

// audit has no limit of a statement: the ledger may be long.
func (e *postgresEngine) audit(ctx context.Context, run func(context.Context, *tx) error) error {
	return e.snapshot(ctx, auditWithin, "; SET LOCAL statement_timeout = 0", run)
}

func (e *postgresEngine) snapshot(ctx context.Context, within time.Duration, and string, run func(context.Context, *tx) error) error {
	s, _, err := e.take(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"+and)
	if err != nil {
		return err
	}
	defer s.end("COMMIT")
	return e.read(ctx, s, within, run)
}

func (e *postgresEngine) look(ctx context.Context, run func(context.Context, *tx) error) error {
	s, _, err := e.take(ctx, "")
	if err != nil {
		return err
	}
	defer s.end("ROLLBACK")
	return e.read(ctx, s, unitWithin, run)
}

func (e *postgresEngine) read(ctx context.Context, s borrowed, within time.Duration, run func(context.Context, *tx) error) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	return run(ctx, &tx{conn: s.conn, wire: &wire{conn: s.pg}, quiet: bounded})
}

// How often a unit runs before its failure counts. Of units that insert the same
// row one finds it when it runs again, unless it does not look.
const (
	maxTries       = 8
	maxUniqueTries = 3
)

// update runs a unit, again when the server could not put it in a row with the
// others, or says after a lost connection that it did not take effect.
func (e *postgresEngine) update(ctx context.Context, run func(context.Context, *tx) error) error {
	for try := 1; ; try++ {
		err := e.once(ctx, run)
		if !again(err, try) || ctx.Err() != nil {
			return err
		}
		// At first the others are only let go by, then they are waited for.
		pause := time.Duration(rand.Int64N(int64(2*time.Millisecond) << try))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}

func again(err error, try int) bool {
	switch sqlState(err) {
	case serializationFailure, deadlockDetected:
		return try < maxTries
	case uniqueViolation, planChanged:
		return try < maxUniqueTries
	}
	return errors.Is(err, errUndone) && try < maxUniqueTries
}

// once runs a unit in a transaction. Its number is asked for in one breath with
// the beginning, so that the outcome can be looked up when the connection is lost
// with the answer to the commit.
func (e *postgresEngine) once(ctx context.Context, run func(context.Context, *tx) error) error {
	s, answer, err := e.take(ctx, "BEGIN; SELECT pg_current_xact_id()")
	if err != nil {
		return err
	}
	// Also after a panic and runtime.Goexit.
	defer s.end("ROLLBACK")
	if len(answer) != 2 || len(answer[1].Rows) != 1 {
		return fmt.Errorf("begin: the server answers without the number of the transaction")
	}
	xid := string(answer[1].Rows[0][0])
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), unitWithin)
	defer cancel()
	in := &shared{conn: s.conn}
	t := &tx{conn: s.conn, wire: &wire{conn: s.pg}, quiet: bounded, shared: in}
	if err = run(context.WithoutCancel(ctx), t); err == nil {
		err = t.say()
	}
	switch {
	case in.fault != nil && sqlState(err) == transactionAborted, err != nil && sqlState(err) == "" && again(in.fault, 1):
		return fmt.Errorf("%w, and then: %w", in.fault, err) // it went on after what made it fail
	case err != nil:
		return err
	}
	return e.finish(bounded, s, xid, in)
}

// finish commits.
func (e *postgresEngine) finish(ctx context.Context, s borrowed, xid string, in *shared) error {
	tag, err := commit(ctx, s.pg.PgConn())
	switch {
	case err == nil && tag == "COMMIT":
		return nil
	case err == nil:
		return errors.Join(fmt.Errorf("commit: %w", errSpoiled), in.fault)
	case !s.pg.IsClosed() && sqlState(err) != "":
		return fmt.Errorf("commit: %w", err) // refused, and so rolled back
	}
	e.forget()
	return e.outcome(ctx, xid, err)
}

func commit(ctx context.Context, c *pgconn.PgConn) (string, error) {
	answer, err := c.Exec(ctx, "COMMIT").ReadAll()
	if err != nil || len(answer) == 0 {
		return "", errors.Join(err, errIfNone(answer))
	}
	return answer[0].CommandTag.String(), nil
}

func errIfNone(answer []*pgconn.Result) error {
	if len(answer) == 0 {
		return pgconn.ErrConnClosed
	}
	return nil
}

// errUndone says that a transaction whose commit was not answered did not take
// effect.
var errUndone = errors.New("the connection was lost and the transaction rolled back")

// outcomeWithin is how long the server is asked for the outcome of a commit; one
// that was restarted is back by then.
const outcomeWithin = 6 * time.Second

// outcome reads back whether a transaction was committed whose commit nobody
// answered. Running the unit again instead might do everything twice.
func (e *postgresEngine) outcome(ctx context.Context, xid string, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeWithin)
	defer cancel()
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		var status *string
		err := e.pool.QueryRow(ctx, "SELECT pg_xact_status($1::text::xid8)", xid).Scan(&status)
		switch {
		case err == nil && status != nil && *status == "committed":
			return nil
		case err == nil && status != nil && *status == "aborted":
			return fmt.Errorf("commit: %w: %w: %w", domain.ErrUnavailable, errUndone, cause)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return unavailable("commit, with unknown outcome", errors.Join(cause, err))
		}
	}
}

func (e *postgresEngine) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connWithin)
	defer cancel()
	return e.pool.Ping(ctx)
}

// ErrBackup refuses to copy what the server's own tools copy.
var ErrBackup = &domain.Error{Kind: domain.Invalid, Code: "BACKUP_UNSUPPORTED",
	Message: "backup copies SQLite only; copy a PostgreSQL database with pg_dump"}

func (e *postgresEngine) backup(context.Context, string) error { return ErrBackup }
