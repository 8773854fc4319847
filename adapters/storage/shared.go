package storage

import (
	"context"
	"database/sql"
	"errors"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/mattn/go-sqlite3"
)

// shared is a transaction and the connection it is on. A query on the connection
// is inside the transaction as well, and saves the goroutine that database/sql
// starts for each query of a *sql.Tx.
type shared struct {
	conn  *sql.Conn
	tx    *sql.Tx // SQLite's; PostgreSQL begins and commits on the connection
	wrote bool    // in this turn, as far as is known
	fault error   // of the first statement that failed
}

// begin takes the connection for one transaction; River has it in between.
func (c *committer) begin() (*shared, error) {
	ctx := context.Background()
	conn, err := c.db.Conn(ctx)
	if err != nil {
		return nil, unavailable("begin", err)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		_ = conn.Close()
		return nil, unavailable("begin", err)
	}
	return &shared{conn: conn, tx: tx}, nil
}

// rollback cannot be helped when it fails: an unusable transaction has ended.
func (s *shared) rollback() {
	_ = s.tx.Rollback()
	_ = s.conn.Close()
}

func (s *shared) commit(how func(*sql.Tx) error) error {
	err := how(s.tx)
	_ = s.conn.Close()
	return err
}

// ended reports whether there is no transaction any more. SQLite rolls it back by
// itself when the disk is full or an interrupt hits it, and what is written
// after that would be committed at once. PostgreSQL refuses everything until the
// end of the transaction.
func (s *shared) ended() bool {
	ended := true
	_ = s.conn.Raw(func(c any) error {
		switch c := c.(type) {
		case *sqlite3.SQLiteConn:
			ended = c.AutoCommit()
		case *stdlib.Conn:
			ended = c.Conn().PgConn().TxStatus() == outsideTx
		}
		return nil
	})
	return ended
}

// errSpoiled says that a transaction holds what must not be committed, or has
// ended under its units.
var errSpoiled = errors.New("the transaction cannot be committed")
