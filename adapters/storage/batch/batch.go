// Package batch has units of work on PostgreSQL share a transaction, and views a snapshot: what they name is read
// ahead for all of them in one round trip. It keeps sessions that were read lately, too.
//
// A ReadSet of ports names what a unit or a view reads; what is read ahead for several is a rows.Set that they
// share. A unit that needs a row which is not in it ends with engine.ErrAlone and runs again in a transaction of its
// own. In an aborted transaction (engine.ErrAborted) every unit runs again. Recent keeps sessions of the last second
// for views; a Claim on one is the right to replace it, which a unit that changes the session takes away. The marks of
// an agent (webhooks.Marks) are the notifications that were sent already, and are rows as others.
package batch

import (
	"context"
	"database/sql"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
)

// Batch is what the units of one transaction on PostgreSQL share: the rows that were read and locked
// ahead for all of them, and what they write, which is sent by one statement a table when they have
// run. A unit that fails has sent nothing, so what it wrote is just dropped. Every statement of a unit is
// refused by Conn, and the unit runs again alone.
type Batch struct {
	Pipe engine.Pipeline
	Rows *rows.Set

	restricted *accounts.RestrictedAgents
}

// New returns a batch on a pipeline, which notes in restricted the agents that have restricted keys.
func New(pipe engine.Pipeline, restricted *accounts.RestrictedAgents) *Batch {
	return &Batch{Pipe: pipe, Rows: rows.NewAhead(), restricted: restricted}
}

// conn is the connection of a unit in a batch, or of a view of what was read: it takes no statement.
type conn struct {
	set   *rows.Set
	batch *Batch // of a unit, nil for a view
}

var _ engine.Conn = conn{}

// Conn returns the connection of the units of a batch.
func (b *Batch) Conn() engine.Conn { return conn{b.Rows, b} }

// ConnOf returns the connection of a view of what was read.
func ConnOf(s *rows.Set) engine.Conn { return conn{set: s} }

// Of returns the batch of a connection, nil if it is of no unit in one.
func Of(c engine.Conn) *Batch {
	in, _ := c.(conn)
	return in.batch
}

func (c conn) Context() context.Context          { return context.Background() }
func (c conn) Concurrent() bool                  { return true }
func (c conn) Arrays() bool                      { return true }
func (c conn) Open() bool                        { return true }
func (c conn) Flush() error                      { return c.set.Escape() }
func (c conn) SQL() *sql.Conn                    { _ = c.set.Escape(); return nil }
func (c conn) ORM() gorm.ConnPool                { _ = c.set.Escape(); return refusedPool{} }
func (c conn) Row(string, []any) engine.Row      { return refusedRow{c.set.Escape()} }
func (c conn) Exec(string, []any) (int64, error) { return 0, c.set.Escape() }
func (c conn) Queue(string, string, []any) error { return c.set.Escape() }
func (c conn) Rows(context.Context, string, []any, func(engine.Row) error) error {
	return c.set.Escape()
}

type refusedRow struct{ err error }

func (r refusedRow) Scan(...any) error { return r.err }

// refusedPool refuses the statements of GORM.
type refusedPool struct{}

func (refusedPool) PrepareContext(context.Context, string) (*sql.Stmt, error) {
	return nil, engine.ErrAlone
}
func (refusedPool) ExecContext(context.Context, string, ...any) (sql.Result, error) {
	return nil, engine.ErrAlone
}
func (refusedPool) QueryContext(context.Context, string, ...any) (*sql.Rows, error) {
	return nil, engine.ErrAlone
}
func (refusedPool) QueryRowContext(context.Context, string, ...any) *sql.Row { return &sql.Row{} }

// Writer sends what the units of a batch have changed.
type Writer struct{ engine.Pipeline }

// Queue implements rows.Writer.
func (w Writer) Queue(what, statement string, args []any) error {
	w.Pipeline.Queue(what, statement, args, nil)
	return nil
}

// Arrays implements rows.Writer.
func (Writer) Arrays() bool { return true }
