package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"

	"agentproxy/adapters/storage/engine"
	_ "agentproxy/adapters/storage/sqlite/needscgo"
)

// conn is a connection as units of work use it. A query on a *sql.Conn is inside the transaction
// that was begun on it, and saves the goroutine that database/sql starts for each query of a
// *sql.Tx.
type conn struct{ sql *sql.Conn }

// uninterrupted is the context of every statement of a unit that writes, whatever its caller passes
// on, and of reads of a few rows. The driver interrupts a statement when its context ends, which
// rolls back the whole transaction, and a context that can end costs it a goroutine.
var uninterrupted = context.Background()

func (c conn) Context() context.Context { return uninterrupted }
func (c conn) SQL() *sql.Conn           { return c.sql }
func (c conn) ORM() gorm.ConnPool       { return c.sql }
func (c conn) Concurrent() bool         { return false }
func (c conn) Arrays() bool             { return false }
func (c conn) Flush() error             { return nil }

func (c conn) Row(query string, args []any) engine.Row {
	return c.sql.QueryRowContext(uninterrupted, query, args...)
}

func (c conn) Rows(ctx context.Context, query string, args []any, scan func(engine.Row) error) error {
	rows, err := c.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := &plainRow{Rows: rows}
	for rows.Next() {
		if err := scan(row); err != nil {
			return err
		}
	}
	return rows.Err()
}

// plainRow is the current row of a list. Its Scan assigns numbers and texts to what has these types without the
// reflection of database/sql, to which it leaves the others.
type plainRow struct {
	*sql.Rows
	values, into []any
}

func (r *plainRow) Scan(into ...any) error {
	if len(r.values) != len(into) {
		r.values, r.into = make([]any, len(into)), make([]any, len(into))
		for i := range r.values {
			r.into[i] = &r.values[i]
		}
	}
	if err := r.Rows.Scan(r.into...); err != nil {
		return err
	}
	for i, to := range into {
		switch to := to.(type) {
		case *int64:
			n, ok := r.values[i].(int64)
			if !ok {
				return r.Rows.Scan(into...)
			}
			*to = n
		case *string:
			text, ok := r.values[i].(string)
			if !ok {
				return r.Rows.Scan(into...)
			}
			*to = text
		default:
			return r.Rows.Scan(into...)
		}
	}
	return nil
}

func (c conn) Exec(statement string, args []any) (int64, error) {
	result, err := c.sql.ExecContext(uninterrupted, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c conn) Queue(what, statement string, args []any) error {
	if _, err := c.Exec(statement, args); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (c conn) Open() (open bool) {
	_ = c.sql.Raw(func(driver any) error {
		open = !driver.(*sqlite3.SQLiteConn).AutoCommit()
		return nil
	})
	return open
}
