package queue

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var _ pgx.Tx = unitTx{}

// unitTx is the open transaction of a connection as a pgx.Tx, which River needs. The unit of work
// begins and ends it.
type unitTx struct{ conn *pgx.Conn }

var errOwned = errors.New("the unit of work owns the transaction")

// Begin returns errOwned.
func (t unitTx) Begin(context.Context) (pgx.Tx, error) { return nil, errOwned }

// Commit returns errOwned: the unit of work owns the transaction.
func (t unitTx) Commit(context.Context) error { return errOwned }

// Rollback returns errOwned.
func (t unitTx) Rollback(context.Context) error { return errOwned }

// Conn returns the connection.
func (t unitTx) Conn() *pgx.Conn { return t.conn }

// LargeObjects returns an unusable value: no job has large objects.
func (t unitTx) LargeObjects() pgx.LargeObjects { return pgx.LargeObjects{} }

// CopyFrom copies rows into a table.
func (t unitTx) CopyFrom(
	ctx context.Context, table pgx.Identifier, columns []string, rows pgx.CopyFromSource,
) (int64, error) {
	return t.conn.CopyFrom(ctx, table, columns, rows)
}

// SendBatch runs several statements.
func (t unitTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	return t.conn.SendBatch(ctx, b)
}

// Prepare prepares a statement.
func (t unitTx) Prepare(ctx context.Context, name, sql string) (*pgconn.StatementDescription, error) {
	return t.conn.Prepare(ctx, name, sql)
}

// Exec runs a statement.
func (t unitTx) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	return t.conn.Exec(ctx, sql, args...)
}

// Query runs a query.
func (t unitTx) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	return t.conn.Query(ctx, sql, args...)
}

// QueryRow runs a query for one row.
func (t unitTx) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return t.conn.QueryRow(ctx, sql, args...)
}
