package engine

import (
	"database/sql"
	"errors"
)

// Transaction is an open transaction, which several units of work may share.
type Transaction struct {
	Conn
	// Tx is the transaction for database/sql, nil where Conn begins and commits it by statements.
	Tx *sql.Tx
	// Commit and Rollback end the transaction and release its connection. Rollback after either does
	// nothing.
	Commit, Rollback func() error
	// Wrote reports whether the current unit changed something, as far as is known.
	Wrote bool
	// End, if set, is called when a unit has ended. It keeps or drops what the unit did, sets Wrote, and
	// reports whether the unit needs a transaction of its own instead.
	End func(failed bool) (alone bool)

	fault error
	ended bool
}

// ErrReadOnly refuses a write inside a view before the database does.
var ErrReadOnly = errors.New("a view cannot write")

// ErrAlone ends the run of a unit in a shared transaction that needs one of its own.
var ErrAlone = errors.New("the unit needs a transaction of its own")

// ErrAborted means that a transaction is aborted, as PostgreSQL calls it: it holds what must not be committed, or
// ended under its units.
var ErrAborted = errors.New("the transaction cannot be committed")

// Fail records a failed statement and returns its error. It looks whether the transaction is still
// open: SQLite rolls it back by itself when the disk is full or an interrupt hits it, and a unit
// that went on would commit statement by statement.
func (t *Transaction) Fail(err error) error {
	t.ended = t.ended || !t.Open()
	if t.fault == nil {
		t.fault = err
	}
	return err
}

// Fault returns the error of the first statement that failed, or nil.
func (t *Transaction) Fault() error { return t.fault }

// Ended reports whether the transaction was found to have ended under its units.
func (t *Transaction) Ended() bool { return t.ended }
