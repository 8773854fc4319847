package engine

import (
	"context"
	"database/sql"
	"errors"
)

// Pipeline is a transaction whose statements are sent together, so that many cost one round trip. It
// is used by one goroutine at a time.
type Pipeline interface {
	// Queue adds a statement, with parameters as those of Conn. What it does is part of its error. Scan
	// is called for each row of its result; nil ignores them.
	Queue(what, statement string, args []any, scan func(Row) error)
	// Send sends what is queued. After an error nothing but Rollback is left to do.
	Send() error
	// SQL returns the connection for database/sql, and the context of its statements. What is queued must be
	// sent before.
	SQL() (context.Context, *sql.Conn)
	// Commit sends what is queued and commits in the same round trip.
	Commit() error
	// Rollback ends a transaction that was not committed and releases its connection. It does nothing
	// after Commit.
	Rollback() error
}

// ErrUnknownOutcome means that a commit was not answered and could not be looked up.
var ErrUnknownOutcome = errors.New("the outcome of the commit is unknown")

// ErrUndone means that a transaction whose commit was not answered did not take effect.
var ErrUndone = errors.New("the connection was lost and the transaction rolled back")
