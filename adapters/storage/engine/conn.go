// Package engine holds what the databases below storage have in common: a connection on which a
// unit of work runs its statements, the transaction around it, and the migration of the schema.
package engine

import (
	"context"
	"database/sql"
	"fmt"

	"gorm.io/gorm"

	"agentproxy/domain"
)

// Row is the result of a query for one row, or the current row of a list.
type Row interface{ Scan(into ...any) error }

// Conn is a connection inside a transaction or a snapshot. Statements are written once for every
// database, with parameters numbered ?1, ?2 as SQLite numbers them. A Conn is used by one
// goroutine at a time.
type Conn interface {
	// Context returns the context of statements that the end of the caller's context must not
	// interrupt. Row, Exec, Queue and Flush use it.
	Context() context.Context
	// Row returns a query for one row, which runs when it is scanned. Scan returns sql.ErrNoRows if
	// there is none.
	Row(query string, args []any) Row
	// Rows runs a query and calls scan for each row.
	Rows(ctx context.Context, query string, args []any, scan func(Row) error) error
	// Exec runs a statement and returns how many rows it changed.
	Exec(statement string, args []any) (int64, error)
	// Queue runs a statement whose result is not needed, at once or in one round trip with the next
	// statement. What it does is part of its error, which that next statement may return.
	Queue(what, statement string, args []any) error
	// Flush runs the queued statements.
	Flush() error
	// Arrays reports whether a parameter may be an array, so that one statement writes many rows.
	Arrays() bool
	// Concurrent reports whether other transactions write at the same time, so that rows must be
	// locked when they are read.
	Concurrent() bool
	// Open reports whether the connection is inside a transaction.
	Open() bool
	// SQL returns the connection for database/sql. Queued statements must be flushed before.
	SQL() *sql.Conn
	// ORM returns the connection for GORM. Queued statements must be flushed before.
	ORM() gorm.ConnPool
}

// Unavailable marks a failure of the database itself, so that the caller may try again. What was done
// is the Cause of the error.
func Unavailable(doing string, err error) error { return UnavailableFor(doing, doing, err) }

// UnavailableFor is like Unavailable with a cause of its own. Causes are labels of a metric: few
// words of a fixed list.
func UnavailableFor(cause, doing string, err error) error {
	return unavailable{fmt.Errorf("%s: %w: %w", doing, domain.ErrUnavailable, err), cause}
}

type unavailable struct {
	error
	cause string
}

// Unwrap returns the failure.
func (u unavailable) Unwrap() error { return u.error }

// Cause names the kind of the failure.
func (u unavailable) Cause() string { return u.cause }

// Feed is how a database orders the events of agents, as expressions on a row of outbox.
type Feed struct {
	Place string // of an event
	// Of returns where the events of an agent are found, an expression, in the order of their places.
	Of    func(agent string) []FeedPart
	End   string // behind all places that no transaction under way will have
	Held  string // as End, not held up by what cannot write events, at a higher cost; empty: End never is
	Begun string // behind all places that a transaction under way may have
	// Mark adds a row of no agent if the newest event, from which places go on, is from before ?1; empty: none is needed.
	Mark string
}

// FeedPart is a part of an agent's events: what follows FROM, up to its condition of the agent, and their place in it.
type FeedPart struct{ From, Place string }
