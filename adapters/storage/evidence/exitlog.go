// Package evidence keeps what is looked up later: which connections left by which exit, and what
// operators did.
package evidence

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/exitlog"
	"agentproxy/ports"
)

// exits keeps the exit log in chunks: a row for each batch, found by the time when it was
// stored. Rows by connection would cost several times as much as the connections.
type exits struct{ *work.Unit }

// ExitLog returns the exit log in a unit.
func ExitLog(u *work.Unit) ports.ExitLog { return exits{u} }

func (r exits) Append(_ context.Context, replica string, at time.Time, records []exitlog.Connection) error {
	for part := range slices.Chunk(records, codec.MaxExits) {
		body := codec.AppendExits(make([]byte, 0, 64+64*len(part)), part)
		if _, err := r.Exec(`INSERT INTO exit_log (at, replica, n, body) VALUES (?1, ?2, ?3, ?4)`,
			column.Micros(at), replica, len(part), body); err != nil {
			return fmt.Errorf("append to the exit log: %w", err)
		}
	}
	return nil
}

func (r exits) Between(ctx context.Context, from, to time.Time, fn func(exitlog.Connection)) error {
	err := r.Rows(ctx, `SELECT replica, body FROM exit_log WHERE at >= ?1 AND at <= ?2 ORDER BY at, seq`,
		[]any{column.Micros(from), column.Micros(to)}, func(rows engine.Row) error {
			var replica string
			var body sql.RawBytes
			if err := rows.Scan(&replica, &body); err != nil {
				return err
			}
			return codec.DecodeExits(body, func(c exitlog.Connection) {
				c.Replica = replica
				fn(c)
			})
		})
	return work.Wrap("read the exit log", err)
}

// purgeExits leaves what a hold needs: its days and what is stored within a margin after them.
const purgeExits = `DELETE FROM exit_log WHERE seq IN (SELECT e.seq FROM exit_log e WHERE e.at < ?1
	AND NOT EXISTS (SELECT 1 FROM exit_holds h WHERE h.ended_at = 0 AND e.at >= h.from_at AND e.at < h.to_at + ?2)
	ORDER BY e.at LIMIT ?3)`

func (r exits) Purge(_ context.Context, before time.Time, margin time.Duration, limit int) (int, error) {
	n, err := r.Exec(purgeExits, column.Micros(before), margin.Microseconds(), limit)
	return int(n), work.Wrap("purge the exit log", err)
}
