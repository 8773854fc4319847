// Package work runs the statements of one unit of work on either database, by hand and by GORM. The
// repositories of a unit embed its Unit.
package work

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
)

// Database is what the units of a database have in common.
type Database struct {
	// ORM makes the statements of cold tables.
	ORM *gorm.DB
	// Now returns the time at which changes are noted.
	Now func() time.Time
	// Feed is the order of the events of agents.
	Feed engine.Feed
	// MonthOf returns the expression for the start of the UTC month of a time, both in microseconds since 1970.
	MonthOf func(at string) string
	// Hints is whether the database has no statistics, so that queries name partial indexes.
	Hints bool
	// OldEvents is the table whose events are removed as rows.
	OldEvents string
}

// Units runs units of work.
type Units interface {
	// Read runs fn without a snapshot around it.
	Read(ctx context.Context, fn func(*Unit) error) error
	// Update runs fn in a transaction, and again after a serialization failure.
	Update(ctx context.Context, fn func(*Unit) error) error
}

// Unit is a unit of work, or a view. Statements on hot paths are written by hand, with parameters
// numbered as ?1, ?2; the others go through GORM. It is used by one goroutine at a time.
type Unit struct {
	// Conn is the connection. What runs on it is in the transaction or on the snapshot.
	Conn engine.Conn
	// In is the transaction, nil in a view.
	In *engine.Transaction
	// Database is the one that the unit runs on.
	Database *Database
	// Rows are those that the unit has in memory.
	Set *rows.Set
	// Touched collects what is notified of the unit once it has ended; nil collects nothing.
	Touched *Touched
}

// Touched are the sessions that a unit changed, and the agents that it appended events of.
type Touched struct{ Sessions, Feeds []string }

// ListContext returns the context for a query that may take long. In View the caller's ends it.
func (u *Unit) ListContext(ctx context.Context) context.Context {
	if u.In != nil {
		return u.Conn.Context()
	}
	return ctx
}

// Locks reports whether the rows that are read must be locked.
func (u *Unit) Locks() bool { return u.In != nil && u.Conn.Concurrent() }

// Row returns a query for one row. One of a row that the unit may change ends with ForUpdate.
func (u *Unit) Row(query string, args ...any) engine.Row {
	if err := u.Set.Flush(); err != nil {
		return failedRow{err}
	}
	return u.Conn.Row(query, args)
}

// failedRow is the result of a query that was not made.
type failedRow struct{ error }

// Scan returns the failure.
func (r failedRow) Scan(...any) error { return r.error }

// RowLock is the strength of the locks on rows that a unit reads and may change.
const RowLock = "NO KEY UPDATE"

// ForUpdate returns the end of a query whose rows of a table, by its name in the query, stay locked
// until the end of the unit. The lock is that of an UPDATE which changes no key: FOR UPDATE would
// block the foreign key checks of other units too, which lock rows in an order of their own, and so
// deadlock.
func (u *Unit) ForUpdate(table string) string {
	if !u.Locks() {
		return ""
	}
	return " FOR " + RowLock + " OF " + table
}

// Serialize takes an advisory lock on a name until the end of the unit, for what has no row yet. The
// next statement reads what units that held it before have committed.
func (u *Unit) Serialize(parts ...string) {
	u.Set.Serialize(strings.Join(parts, "\n"))
}

// Attempt runs a statement that a unique index may refuse, in a savepoint where the database would
// refuse every statement after that.
func (u *Unit) Attempt(run func() error) error {
	if err := u.Set.Forget(); err != nil {
		return err
	}
	if !u.Locks() {
		return run()
	}
	if _, err := u.Conn.Exec("SAVEPOINT attempt", nil); err != nil {
		return u.Failed(err)
	}
	err, end := run(), "RELEASE attempt"
	if err != nil {
		end = "ROLLBACK TO attempt"
	}
	if _, endErr := u.Conn.Exec(end, nil); endErr != nil {
		return errors.Join(err, u.Failed(endErr))
	}
	return err
}

// Rows runs a query and calls scan for each row.
func (u *Unit) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	if err := u.Set.Flush(); err != nil {
		return err
	}
	return u.Conn.Rows(u.ListContext(ctx), query, args, scan)
}

// MayWrite returns an error in a view, and after the transaction has ended.
func (u *Unit) MayWrite() error {
	switch {
	case u.In == nil:
		return engine.ErrReadOnly
	case u.In.Ended():
		return engine.ErrAborted
	}
	return nil
}

// Failed records a failed statement of a unit that writes.
func (u *Unit) Failed(err error) error {
	if u.In == nil {
		return err
	}
	return u.In.Fail(err)
}

// change comes before a statement that changes rows: it writes what the unit has changed in memory, and
// drops what it has read.
func (u *Unit) change() error {
	if err := u.MayWrite(); err != nil {
		return err
	}
	return u.Set.Forget()
}

// Exec runs a statement and returns how many rows it changed.
func (u *Unit) Exec(statement string, args ...any) (int64, error) {
	if err := u.change(); err != nil {
		return 0, err
	}
	n, err := u.Conn.Exec(statement, args)
	if err != nil {
		return 0, u.Failed(err)
	}
	u.In.Wrote = u.In.Wrote || n > 0
	return n, nil
}

// Touch has views of this process read a session anew, once the unit has ended.
func (u *Unit) Touch(sessionID string) {
	if u.Touched != nil && sessionID != "" {
		u.Touched.Sessions = append(u.Touched.Sessions, sessionID)
	}
}

// Later runs a statement whose result is not needed before the end of the unit: it changes something,
// or the unit fails. What it does is part of its error, which the next statement or the end of the
// unit may return.
func (u *Unit) Later(what, statement string, args ...any) error {
	if err := u.change(); err != nil {
		return err
	}
	if err := u.Conn.Queue(what, statement, args); err != nil {
		return u.Failed(err)
	}
	u.In.Wrote = true
	return nil
}

// Beside is as Later, for a statement that changes no table of which rows are kept: what was read stays true.
func (u *Unit) Beside(what, statement string, args ...any) error {
	err := u.MayWrite()
	if err == nil {
		err = u.Set.Flush()
	}
	if err != nil {
		return err
	}
	if err := u.Conn.Queue(what, statement, args); err != nil {
		return u.Failed(err)
	}
	u.In.Wrote = true
	return nil
}

// Returning runs a statement that changes one row, and scans what it returns. It returns
// sql.ErrNoRows if no row was changed.
func (u *Unit) Returning(statement string, args []any, into ...any) error {
	if err := u.change(); err != nil {
		return err
	}
	err := u.Conn.Row(statement, args).Scan(into...)
	if errors.Is(err, sql.ErrNoRows) {
		return err
	}
	u.In.Wrote = true
	if err != nil {
		return u.Failed(err)
	}
	return nil
}

// Texts runs a query for one column of text.
func (u *Unit) Texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var found []string
	err := u.Rows(ctx, query, args, func(rows engine.Row) error {
		var s string
		err := rows.Scan(&s)
		found = append(found, s)
		return err
	})
	return found, err
}

// LockFirst queues a query that locks rows before the statement that reads them: a row that a query
// had to wait for is read anew, but not what the query joins with it. The next statement returns its
// error too. It does nothing where rows need no locks.
func (u *Unit) LockFirst(what, query string, args ...any) error {
	if !u.Locks() {
		return nil
	}
	return u.Conn.Queue(what, query, args)
}

// SQL returns the connection for database/sql, for a change.
func (u *Unit) SQL() (*sql.Conn, error) {
	if err := u.change(); err != nil {
		return nil, err
	}
	if err := u.Conn.Flush(); err != nil {
		return nil, u.Failed(err)
	}
	u.In.Wrote = true
	return u.Conn.SQL(), nil
}

// IsDuplicate reports whether a unique index refused a row.
func (u *Unit) IsDuplicate(err error) bool {
	translator, ok := u.Database.ORM.Dialector.(gorm.ErrorTranslator)
	return ok && errors.Is(translator.Translate(err), gorm.ErrDuplicatedKey)
}

// Wrap adds what failed to an error, and returns nil for nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
