package storage

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// cursor is a row, or the row at which a list stands.
type cursor interface{ Scan(...any) error }

// wire is a connection to PostgreSQL as a unit speaks on it: past database/sql, and
// with statements whose answers nobody needs yet held back, so that they travel
// with the next one. A server in another building is a round trip away for each
// statement sent alone.
type wire struct {
	conn *pgx.Conn
	held pgx.Batch
	of   []string // what each held statement does, for its error
}

// hold keeps a statement for the next word. Its failure is that one's.
func (w *wire) hold(what, query string, args []any) {
	w.held.Queue(rebind(query), values(args)...)
	w.of = append(w.of, what)
}

// heldError is the failure of a statement that was held back.
type heldError struct {
	what  string
	cause error
}

func (e *heldError) Error() string { return e.what + ": " + e.cause.Error() }
func (e *heldError) Unwrap() error { return e.cause }

// flush sends what is held.
func (w *wire) flush(ctx context.Context) error {
	if len(w.of) == 0 {
		return nil
	}
	return w.send(ctx, func(pgx.BatchResults) error { return nil })
}

// send sends what is held, and one statement more when that was queued too; last
// takes its answer. After a failure the server does none of the rest.
func (w *wire) send(ctx context.Context, last func(pgx.BatchResults) error) error {
	held, of := w.held, w.of
	w.held, w.of = pgx.Batch{}, w.of[:0]
	answers := w.conn.SendBatch(ctx, &held)
	for _, what := range of {
		if _, err := answers.Exec(); err != nil {
			_ = answers.Close() // tells it once more
			return &heldError{what, err}
		}
	}
	err := last(answers)
	return cmp.Or(err, answers.Close())
}

func (w *wire) exec(ctx context.Context, query string, args []any) (tag pgconn.CommandTag, err error) {
	query, args = rebind(query), values(args)
	if len(w.of) == 0 {
		return w.conn.Exec(ctx, query, args...)
	}
	w.held.Queue(query, args...)
	err = w.send(ctx, func(answers pgx.BatchResults) (err error) {
		tag, err = answers.Exec()
		return err
	})
	return tag, err
}

func (w *wire) scan(ctx context.Context, query string, args, into []any) error {
	query, args, into = rebind(query), values(args), flags(into)
	if len(w.of) == 0 {
		return w.conn.QueryRow(ctx, query, args...).Scan(into...)
	}
	w.held.Queue(query, args...)
	return w.send(ctx, func(answers pgx.BatchResults) error { return answers.QueryRow().Scan(into...) })
}

func (w *wire) rows(ctx context.Context, query string, args []any, scan func(cursor) error) error {
	query, args = rebind(query), values(args)
	if len(w.of) > 0 {
		w.held.Queue(query, args...)
		return w.send(ctx, func(answers pgx.BatchResults) error {
			rows, err := answers.Query()
			return each(rows, err, scan)
		})
	}
	rows, err := w.conn.Query(ctx, query, args...)
	return each(rows, err, scan)
}

func each(rows pgx.Rows, err error, scan func(cursor) error) error {
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

// wireRow is a query that is sent when its row is scanned.
type wireRow struct {
	tx    *tx
	query string
	args  []any
}

// Scan runs the query.
func (r wireRow) Scan(into ...any) error {
	err := r.tx.wire.scan(r.tx.quiet, r.query, r.args, into)
	if held, ok := errors.AsType[*heldError](err); ok {
		return r.tx.failed(held)
	}
	return err
}

// flagRows are rows in which flags are numbers.
type flagRows struct{ pgx.Rows }

// Scan takes the row at which the list stands.
func (r flagRows) Scan(into ...any) error { return r.Rows.Scan(flags(into)...) }

// flags are the places of a row with those of booleans taking numbers too, as
// both schemas keep them.
func flags(into []any) []any {
	for i, to := range into {
		if b, ok := to.(*bool); ok {
			into[i] = flagInto{b}
		}
	}
	return into
}

type flagInto struct{ to *bool }

// ScanInt64 takes a flag that is stored.
func (f flagInto) ScanInt64(n pgtype.Int8) error {
	if !n.Valid {
		return fmt.Errorf("NULL is no flag")
	}
	*f.to = n.Int64 != 0
	return nil
}

// ScanBool takes the outcome of a condition.
func (f flagInto) ScanBool(b pgtype.Bool) error {
	if !b.Valid {
		return fmt.Errorf("NULL is no flag")
	}
	*f.to = b.Bool
	return nil
}
