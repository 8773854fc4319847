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
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
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
