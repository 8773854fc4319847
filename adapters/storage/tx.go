package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentproxy/ports"
)

var _ ports.Tx = (*tx)(nil)

// tx is one unit of work. Hot queries are written by hand, with parameters
// numbered as ?1, ?2; the rest goes through GORM.
type tx struct {
	store  *Store
	conn   *sql.Conn // a lane, or the one that writes, inside its transaction
	writes *sql.Tx   // that transaction, for GORM and River; nil in View
}

func (t *tx) Agents() ports.Agents           { return agents{t} }
func (t *tx) Referrers() ports.Referrers     { return referrers{t} }
func (t *tx) Ledger() ports.Ledger           { return ledger{t} }
func (t *tx) Sessions() ports.Sessions       { return sessions{t} }
func (t *tx) Traffic() ports.Traffic         { return usages{t} }
func (t *tx) Health() ports.Health           { return healths{t} }
func (t *tx) Events() ports.Events           { return events{t} }
func (t *tx) Counters() ports.Counters       { return counters{t} }
func (t *tx) Idempotency() ports.Idempotency { return calls{t} }
func (t *tx) Addresses() ports.Addresses     { return addresses{t} }
func (t *tx) Changes() ports.Changes         { return changes{t} }
func (t *tx) Jobs() ports.Jobs               { return jobs{t} }

// errReadOnly is what a write inside View gets, before the database sees it.
var errReadOnly = errors.New("a view cannot write")

// quiet is the context of every statement of a unit that writes, whatever
// context its caller passes on, and of reads of a few rows. The driver
// interrupts a statement when its context ends, which rolls back more than that
// statement, and a context that can end costs it a goroutine.
var quiet = context.Background()

// ctx is the context for a query that may take long.
func (t *tx) ctx(ctx context.Context) context.Context {
	if t.writes != nil {
		return quiet
	}
	return ctx
}

// row runs a query for one row.
func (t *tx) row(query string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(quiet, query, args...)
}

// rows runs a query and calls scan for each row.
func (t *tx) rows(ctx context.Context, query string, args []any, scan func(*sql.Rows) error) error {
	rows, err := t.conn.QueryContext(t.ctx(ctx), query, args...)
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

// exec runs a statement and returns how many rows it changed.
func (t *tx) exec(statement string, args ...any) (int64, error) {
	if t.writes == nil {
		return 0, errReadOnly
	}
	result, err := t.conn.ExecContext(quiet, statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// orm is GORM inside this unit.
func (t *tx) orm(ctx context.Context) *gorm.DB {
	db := t.store.orm.Session(&gorm.Session{NewDB: true, Context: t.ctx(ctx)})
	db.Statement.ConnPool = t.conn
	if t.writes != nil {
		db.Statement.ConnPool = t.writes
	}
	return db
}

// read is orm for rows that stay locked until the end of the unit.
func (t *tx) read(ctx context.Context) *gorm.DB {
	db := t.orm(ctx)
	if t.writes == nil {
		return db
	}
	return db.Clauses(clause.Locking{Strength: "UPDATE"})
}

// texts runs a query for one column of text.
func (t *tx) texts(ctx context.Context, query string, args ...any) ([]string, error) {
	var found []string
	err := t.rows(ctx, query, args, func(rows *sql.Rows) error {
		var s string
		err := rows.Scan(&s)
		found = append(found, s)
		return err
	})
	return found, err
}

// micros is how a time is stored: 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// flag is how a boolean is stored.
func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

type jobs struct{ *tx }

func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	if r.writes == nil {
		return errReadOnly
	}
	insert := r.store.jobs.Load()
	if insert == nil {
		return errors.New("insert job: nobody is set to insert jobs")
	}
	if err := (*insert)(context.WithoutCancel(ctx), r.writes, j, now); err != nil {
		return fmt.Errorf("insert job %s: %w", j.Kind, err)
	}
	return nil
}
