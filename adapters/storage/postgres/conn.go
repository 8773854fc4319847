package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
)

// conn is a connection as a unit of work uses it. It bypasses database/sql, and it queues statements
// whose results are not needed and sends them with the next query, which saves a round trip each.
type conn struct {
	acquired
	ctx    context.Context
	fail   func(error) error // records a failed statement; nil in a snapshot
	queued pgx.Batch
	names  []string // what each queued statement does, for its error
	wrote  bool     // a statement may have changed something
}

func (c *conn) Context() context.Context { return c.ctx }
func (c *conn) Concurrent() bool         { return true }
func (c *conn) Arrays() bool             { return true }
func (c *conn) Open() bool               { return inTransaction(c.pg) }

// SQL returns the connection, by which anything may be changed.
func (c *conn) SQL() *sql.Conn {
	c.wrote = true
	return c.conn
}

// ORM is like SQL for GORM.
func (c *conn) ORM() gorm.ConnPool {
	c.wrote = true
	return ormConn{c.conn}
}

// Queue defers a statement to the next round trip; its error is returned there.
func (c *conn) Queue(what, query string, args []any) error {
	c.wrote = c.wrote || changes(query)
	c.queued.Queue(rebind(query), arguments(args)...)
	c.names = append(c.names, what)
	return nil
}

// Flush sends what is queued.
func (c *conn) Flush() error {
	if len(c.names) == 0 {
		return nil
	}
	return c.send(c.ctx, func(pgx.BatchResults) error { return nil })
}

// send sends what is queued, and one statement more if the caller queued that too; last reads its
// result. After a failure the server runs none of the rest.
func (c *conn) send(ctx context.Context, last func(pgx.BatchResults) error) error {
	batch, names := c.queued, c.names
	c.queued, c.names = pgx.Batch{}, c.names[:0]
	results := c.pg.SendBatch(ctx, &batch)
	for _, what := range names {
		if _, err := results.Exec(); err != nil {
			_ = results.Close() // returns it once more
			err = fmt.Errorf("%s: %w", what, err)
			if c.fail != nil {
				err = c.fail(err)
			}
			return err
		}
	}
	err := last(results)
	return cmp.Or(err, results.Close())
}

func (c *conn) Exec(query string, args []any) (changed int64, err error) {
	c.wrote = c.wrote || changes(query)
	query, args = rebind(query), arguments(args)
	var tag pgconn.CommandTag
	if len(c.names) == 0 {
		tag, err = c.pg.Exec(c.ctx, query, args...)
		return tag.RowsAffected(), err
	}
	c.queued.Queue(query, args...)
	err = c.send(c.ctx, func(results pgx.BatchResults) (err error) {
		tag, err = results.Exec()
		return err
	})
	return tag.RowsAffected(), err
}

// Row sends the query when it is scanned.
func (c *conn) Row(query string, args []any) engine.Row { return queryRow{c, query, args} }

type queryRow struct {
	conn  *conn
	query string
	args  []any
}

// Scan runs the query.
func (r queryRow) Scan(into ...any) error {
	c, query, args, into := r.conn, rebind(r.query), arguments(r.args), flags(into)
	c.wrote = c.wrote || changes(query)
	if len(c.names) == 0 {
		return c.pg.QueryRow(c.ctx, query, args...).Scan(into...)
	}
	c.queued.Queue(query, args...)
	return c.send(c.ctx, func(results pgx.BatchResults) error { return results.QueryRow().Scan(into...) })
}

func (c *conn) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	c.wrote = c.wrote || changes(query)
	query, args = rebind(query), arguments(args)
	if len(c.names) > 0 {
		c.queued.Queue(query, args...)
		return c.send(ctx, func(results pgx.BatchResults) error {
			rows, err := results.Query()
			return each(rows, err, scan)
		})
	}
	rows, err := c.pg.Query(ctx, query, args...)
	return each(rows, err, scan)
}

func each(rows pgx.Rows, err error, scan func(engine.Row) error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(flagRows{rows}); err != nil {
			return err
		}
	}
	return rows.Err()
}

// flagRows are rows in which flags are numbers.
type flagRows struct{ pgx.Rows }

// Scan reads the current row.
func (r flagRows) Scan(into ...any) error { return r.Rows.Scan(flags(into)...) }

// flags lets the booleans among the targets of a scan take numbers too, as both schemas keep them.
func flags(into []any) []any {
	for i, to := range into {
		if b, ok := to.(*bool); ok {
			into[i] = flagInto{b}
		}
	}
	return into
}

type flagInto struct{ to *bool }

// ScanInt64 reads a stored flag.
func (f flagInto) ScanInt64(n pgtype.Int8) error {
	if !n.Valid {
		return fmt.Errorf("NULL is not a flag")
	}
	*f.to = n.Int64 != 0
	return nil
}

// ScanBool reads the result of a condition.
func (f flagInto) ScanBool(b pgtype.Bool) error {
	if !b.Valid {
		return fmt.Errorf("NULL is not a flag")
	}
	*f.to = b.Bool
	return nil
}
