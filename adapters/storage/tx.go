package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/ports"
)

var _ ports.Tx = (*tx)(nil)

// tx is one unit of work. Hot queries are written by hand, with parameters
// numbered as ?1, ?2; the rest goes through GORM.
type tx struct {
	store   *Store
	dialect *dialect
	conn    *sql.Conn       // that reads, or writes, inside its transaction
	wire    *wire           // the same connection; nil on SQLite
	quiet   context.Context // of statements that their caller's end must not disturb
	shared  *shared         // the transaction; nil in View
	ended   bool            // it ended under this unit
}

func (t *tx) Agents() ports.Agents           { return agents{t} }
func (t *tx) Referrers() ports.Referrers     { return referrers{t} }
func (t *tx) Ledger() ports.Ledger           { return ledger{t} }
func (t *tx) Sessions() ports.Sessions       { return sessions{t} }
func (t *tx) Traffic() ports.Traffic         { return usages{t} }
func (t *tx) Health() ports.Health           { return healths{t} }
func (t *tx) Events() ports.Events           { return events{t} }
func (t *tx) Counters() ports.Counters       { return counters{t} }
func (t *tx) Idempotency() ports.Idempotency { return calls{t} }
func (t *tx) Addresses() ports.Addresses     { return addresses{t} }
func (t *tx) Changes() ports.Changes         { return changes{t} }
func (t *tx) Jobs() ports.Jobs               { return jobs{t} }
func (t *tx) Recharges() ports.Recharges     { return recharges{t} }
func (t *tx) Outbox() ports.Outbox           { return outbox{t} }
func (t *tx) Webhooks() ports.Webhooks       { return webhooks{t} }
func (t *tx) Devchain() ports.Devchain       { return devchain{t} }
func (t *tx) Orders() ports.Orders           { return orders{t} }

// errReadOnly is what a write inside View gets, before the database sees it.
var errReadOnly = errors.New("a view cannot write")

// ctx is the context for a query that may take long.
func (t *tx) ctx(ctx context.Context) context.Context {
	if t.shared != nil {
		return t.quiet
	}
	return ctx
}

// locks reports whether what is read must be locked, for others write too.
func (t *tx) locks() bool { return t.dialect.postgres && t.shared != nil }

// row is a query for one row, which is scanned at once. One that a unit may change
// ends with t.lock.
func (t *tx) row(query string, args ...any) cursor {
	if t.wire != nil {
		return wireRow{t, query, args}
	}
	return t.conn.QueryRowContext(t.quiet, query, args...)
}

// lock ends a query whose rows of a table, by its name in the query, stay locked
// until the end of the unit.
func (t *tx) lock(table string) string {
	if !t.locks() {
		return ""
	}
	return " FOR UPDATE OF " + table
}

// serialize makes units that name the same thing wait for each other, from here
// to their ends: a lock for what has no row yet. The next statement sees what
// those before have committed.
func (t *tx) serialize(parts ...string) {
	if !t.locks() {
		return
	}
	t.wire.hold("wait for a turn", "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", []any{strings.Join(parts, "\n")})
}

// attempt runs a statement that a unique index may refuse, when the unit may go
// on after that: PostgreSQL would refuse all that follows.
func (t *tx) attempt(run func() error) error {
	if !t.locks() {
		return run()
	}
	if _, err := t.wire.exec(t.quiet, "SAVEPOINT attempt", nil); err != nil {
		return t.failed(err)
	}
	err, end := run(), "RELEASE attempt"
	if err != nil {
		end = "ROLLBACK TO attempt"
	}
	if _, endErr := t.wire.exec(t.quiet, end, nil); endErr != nil {
		return errors.Join(err, t.failed(endErr))
	}
	return err
}

// rows runs a query and calls scan for each row.
func (t *tx) rows(ctx context.Context, query string, args []any, scan func(cursor) error) error {
	if t.wire != nil {
		return t.wire.rows(t.ctx(ctx), query, args, scan)
	}
	rows, err := t.conn.QueryContext(t.ctx(ctx), query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// mayWrite refuses in a view, and after the transaction has ended.
func (t *tx) mayWrite() error {
	switch {
	case t.shared == nil:
		return errReadOnly
	case t.ended:
		return errSpoiled
	}
	return nil
}

// failed looks after a failed statement whether the transaction still stands: a
// unit that goes on without one would commit statement by statement.
func (t *tx) failed(err error) error {
	if t.shared == nil {
		return err
	}
	t.ended = t.ended || t.shared.ended()
	if t.shared.fault == nil {
		t.shared.fault = err
	}
	return err
}

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(statement string, args ...any) (int64, error) {
	if err := t.mayWrite(); err != nil {
		return 0, err
	}
	n, err := t.run(statement, args)
	if err != nil {
		return 0, t.failed(err)
	}
	t.shared.wrote = t.shared.wrote || n > 0
	return n, nil
}

func (t *tx) run(statement string, args []any) (changed int64, err error) {
	if t.wire != nil {
		tag, err := t.wire.exec(t.quiet, statement, args)
		return tag.RowsAffected(), err
	}
	result, err := t.conn.ExecContext(t.quiet, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// later runs a statement whose outcome the unit needs no sooner than its end: it
// changes something, or the unit fails. What it does is said for its error, which
// may come from the next statement or from the end of the unit.
func (t *tx) later(what, statement string, args ...any) error {
	if err := t.mayWrite(); err != nil {
		return err
	}
	if t.wire != nil {
		t.wire.hold(what, statement, args)
		t.shared.wrote = true
		return nil
	}
	if _, err := t.exec(statement, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// say sends what is held back, before somebody else speaks on the connection.
func (t *tx) say() error {
	if t.wire == nil {
		return nil
	}
	if err := t.wire.flush(t.quiet); err != nil {
		return t.failed(err)
	}
	return nil
}

// returning runs a statement that changes one row, and scans what it returns.
// It is sql.ErrNoRows when no row was changed.
func (t *tx) returning(statement string, args []any, into ...any) error {
	if err := t.mayWrite(); err != nil {
		return err
	}
	err := t.row(statement, args...).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	t.shared.wrote = true
	if err != nil {
		return t.failed(err)
	}
	return nil
}

// write is GORM for a change, which counts as made.
func (t *tx) write(ctx context.Context) *gorm.DB {
	db := t.orm(ctx)
	if err := t.mayWrite(); err != nil {
		_ = db.AddError(err)
		return db
	}
	t.shared.wrote = true
	return db
}

// read is GORM for rows that stay locked until the end of the unit.
func (t *tx) read(ctx context.Context) *gorm.DB {
	return t.locking(ctx, clause.LockingStrengthUpdate)
}

// share is read for rows that this unit does not change: others may read them
// meanwhile.
func (t *tx) share(ctx context.Context) *gorm.DB {
	return t.locking(ctx, clause.LockingStrengthShare)
}

func (t *tx) locking(ctx context.Context, strength string) *gorm.DB {
	db := t.orm(ctx)
	if t.shared == nil {
		return db
	}
	return db.Clauses(clause.Locking{Strength: strength})
}

// orm is GORM inside this unit.
func (t *tx) orm(ctx context.Context) *gorm.DB {
	db := t.store.orm.Session(&gorm.Session{NewDB: true, Context: t.ctx(ctx)})
	if err := t.say(); err != nil {
		_ = db.AddError(err)
	}
	switch {
	case t.dialect.postgres:
		db.Statement.ConnPool = postgresConn{t.conn}
	case t.shared != nil:
		db.Statement.ConnPool = t.shared.tx
	default:
		db.Statement.ConnPool = t.conn
	}
	return db
}

// texts runs a query for one column of text.
func (t *tx) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var found []string
	err := t.rows(ctx, query, args, func(rows cursor) error {
		var s string
		err := rows.Scan(&s)
		found = append(found, s)
		return err
	})
	return found, err
}

type jobs struct{ *tx }

func (r jobs) Insert(_ context.Context, j ports.Job, now time.Time) error {
	if err := r.mayWrite(); err != nil {
		return err
	}
	insert := r.store.jobs.Load()
	if insert == nil {
		return errors.New("insert job: nobody is set to insert jobs")
	}
	if err := r.say(); err != nil {
		return err
	}
	r.shared.wrote = true
	if err := (*insert)(r.quiet, JobTx{Conn: r.shared.conn, Tx: r.shared.tx}, j, now); err != nil {
		return fmt.Errorf("insert job %s: %w", j.Kind, r.failed(err))
	}
	return nil
}
