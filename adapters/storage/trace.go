package storage

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"gorm.io/gorm"

	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/engine"
)

// Tracer traces units and views by their contexts.
type Tracer interface {
	// Statement notes a statement that ended. It has placeholders and no values. One that is queued
	// is noted when it is queued; what is sent together for the units of a batch is noted for each
	// of them, by what it does.
	Statement(ctx context.Context, statement string, began time.Time, err error)
	// Traceparent returns what a job that the unit inserts goes on with, "" where the unit is not
	// traced.
	Traceparent(ctx context.Context) string
}

// traced returns a connection whose statements are noted for a context, if they are to be.
func traced(ctx context.Context, trace Tracer, c engine.Conn) engine.Conn {
	if trace == nil {
		return c
	}
	return tracedConn{c, ctx, trace}
}

type tracedConn struct {
	engine.Conn
	unit  context.Context
	trace Tracer
}

func (c tracedConn) note(statement string, began time.Time, err error) {
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	c.trace.Statement(c.unit, statement, began, err)
}

func (c tracedConn) Row(query string, args []any) engine.Row {
	return tracedRow{c.Conn.Row(query, args), c, query, time.Now()}
}

func (c tracedConn) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	began := time.Now()
	err := c.Conn.Rows(ctx, query, args, scan)
	c.note(query, began, err)
	return err
}

func (c tracedConn) Exec(statement string, args []any) (int64, error) {
	began := time.Now()
	n, err := c.Conn.Exec(statement, args)
	c.note(statement, began, err)
	return n, err
}

func (c tracedConn) Queue(what, statement string, args []any) error {
	began := time.Now()
	err := c.Conn.Queue(what, statement, args)
	c.note(statement, began, err)
	return err
}

func (c tracedConn) ORM() gorm.ConnPool { return tracedPool{c.Conn.ORM(), c} }

type tracedRow struct {
	engine.Row
	conn  tracedConn
	query string
	began time.Time
}

func (r tracedRow) Scan(into ...any) error {
	err := r.Row.Scan(into...)
	r.conn.note(r.query, r.began, err)
	return err
}

// tracedPool is the connection for GORM. What follows a query, such as its further rows, is not in it.
type tracedPool struct {
	gorm.ConnPool
	conn tracedConn
}

func (p tracedPool) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	began := time.Now()
	result, err := p.ConnPool.ExecContext(ctx, query, args...)
	p.conn.note(query, began, err)
	return result, err
}

func (p tracedPool) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	began := time.Now()
	rows, err := p.ConnPool.QueryContext(ctx, query, args...)
	p.conn.note(query, began, err)
	return rows, err
}

func (p tracedPool) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	began := time.Now()
	row := p.ConnPool.QueryRowContext(ctx, query, args...)
	p.conn.note(query, began, row.Err())
	return row
}

// kept are statements that were sent for several units, which note them once they have ended.
type kept struct{ made []made }

type made struct {
	what  string
	began time.Time
	err   error
}

// keep returns what keeps statements, if they are noted.
func keep(trace Tracer) *kept {
	if trace == nil {
		return nil
	}
	return new(kept)
}

// Statement implements Tracer.
func (k *kept) Statement(_ context.Context, what string, began time.Time, err error) {
	k.made = append(k.made, made{what, began, err})
}

// Traceparent implements Tracer.
func (k *kept) Traceparent(context.Context) string { return "" }

// on returns a connection whose statements are kept.
func (k *kept) on(c engine.Conn) engine.Conn {
	if k == nil {
		return c
	}
	return traced(context.Background(), k, c)
}

// tracedPipeline keeps the round trips of a batch.
type tracedPipeline struct {
	engine.Pipeline
	kept
	queued []string // since the last one
}

// counted returns a pipeline whose round trips can be noted, if they are to be.
func counted(trace Tracer, p engine.Pipeline) engine.Pipeline {
	if trace == nil {
		return p
	}
	return &tracedPipeline{Pipeline: p}
}

// sentBy returns the round trips of a batch.
func sentBy(b *batch.Batch) *kept {
	if b == nil {
		return nil
	}
	if t, ok := b.Pipe.(*tracedPipeline); ok {
		return &t.kept
	}
	return nil
}

func (t *tracedPipeline) Queue(what, statement string, args []any, scan func(engine.Row) error) {
	t.queued = append(t.queued, what)
	t.Pipeline.Queue(what, statement, args, scan)
}

func (t *tracedPipeline) Send() error {
	return t.roundTrip(t.Pipeline.Send)
}

func (t *tracedPipeline) Commit() error {
	t.queued = append(t.queued, "commit")
	return t.roundTrip(t.Pipeline.Commit)
}

func (t *tracedPipeline) roundTrip(send func() error) error {
	what, began := "batch: "+strings.Join(t.queued, ", "), time.Now()
	t.queued = nil
	err := send()
	t.kept.Statement(context.Background(), what, began, err)
	return err
}
