package storage

import (
	"context"
	"database/sql"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/exitlog"
)

// exits keeps the exit log in chunks: a row for each batch, found by the time when it was
// stored. Rows by connection would cost several times as much as the connections.
type exits struct{ *tx }

func (r exits) Append(_ context.Context, replica string, at time.Time, records []exitlog.Connection) error {
	for part := range slices.Chunk(records, codec.MaxExits) {
		body := codec.AppendExits(make([]byte, 0, 64+64*len(part)), part)
		if _, err := r.exec(`INSERT INTO exit_log (at, replica, n, body) VALUES (?1, ?2, ?3, ?4)`,
			micros(at), replica, len(part), body); err != nil {
			return fmt.Errorf("append to the exit log: %w", err)
		}
	}
	return nil
}

func (r exits) Between(ctx context.Context, from, to time.Time, fn func(exitlog.Connection)) error {
	err := r.rows(ctx, `SELECT replica, body FROM exit_log WHERE at >= ?1 AND at <= ?2 ORDER BY at, seq`,
		[]any{micros(from), micros(to)}, func(rows engine.Row) error {
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
	return wrap("read the exit log", err)
}

// purgeExits leaves what a hold needs: its days and what is stored within a margin after them.
const purgeExits = `DELETE FROM exit_log WHERE seq IN (SELECT e.seq FROM exit_log e WHERE e.at < ?1
	AND NOT EXISTS (SELECT 1 FROM exit_holds h WHERE h.ended_at = 0 AND e.at >= h.from_at AND e.at < h.to_at + ?2)
	ORDER BY e.at LIMIT ?3)`

func (r exits) Purge(_ context.Context, before time.Time, margin time.Duration, limit int) (int, error) {
	n, err := r.exec(purgeExits, micros(before), margin.Microseconds(), limit)
	return int(n), wrap("purge the exit log", err)
}

func (r exits) AddHold(_ context.Context, h exitlog.Hold) error {
	_, err := r.exec(`INSERT INTO exit_holds (id, from_at, to_at, operator, reason, created_at, ended_at)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)`, h.ID, micros(h.From), micros(h.To), h.Operator, h.Reason,
		micros(h.CreatedAt), micros(h.EndedAt))
	return wrap("hold days of the exit log", err)
}

func (r exits) EndHold(_ context.Context, id string, at time.Time) (bool, error) {
	n, err := r.exec(`UPDATE exit_holds SET ended_at = ?2 WHERE id = ?1 AND ended_at = 0`, id, micros(at))
	return n > 0, wrap("end a hold of the exit log", err)
}

func (r exits) Holds(ctx context.Context) (list []exitlog.Hold, err error) {
	err = r.rows(ctx, `SELECT id, from_at, to_at, operator, reason, created_at, ended_at FROM exit_holds
		ORDER BY seq DESC`, nil, func(rows engine.Row) error {
		var h exitlog.Hold
		var from, to, created, ended int64
		err := rows.Scan(&h.ID, &from, &to, &h.Operator, &h.Reason, &created, &ended)
		h.From, h.To = fromMicros(from), fromMicros(to)
		h.CreatedAt, h.EndedAt = fromMicros(created), fromMicros(ended)
		list = append(list, h)
		return err
	})
	return list, wrap("list holds of the exit log", err)
}

func (r exits) AddLookup(_ context.Context, l exitlog.Lookup) error {
	q := l.Query
	_, err := r.exec(`INSERT INTO exit_lookups (id, at, operator, reason, exit_ip, exit_port, target, used_at, within,
		found) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)`, l.ID, micros(l.At), l.Operator, l.Reason, q.Exit.String(),
		int64(q.Port), q.Target, micros(q.At), q.Within.Microseconds(), l.Found)
	return wrap("keep a look-up of the exit log", err)
}

func (r exits) Lookups(ctx context.Context, limit int) (list []exitlog.Lookup, err error) {
	err = r.rows(ctx, `SELECT id, at, operator, reason, exit_ip, exit_port, target, used_at, within, found
		FROM exit_lookups ORDER BY seq DESC LIMIT ?1`, []any{limit}, func(rows engine.Row) error {
		var l exitlog.Lookup
		var exit string
		var at, used, within, port int64
		err := rows.Scan(&l.ID, &at, &l.Operator, &l.Reason, &exit, &port, &l.Query.Target, &used, &within, &l.Found)
		if err != nil {
			return err
		}
		l.At, l.Query.At, l.Query.Port = fromMicros(at), fromMicros(used), uint16(port)
		l.Query.Within = time.Duration(within) * time.Microsecond
		l.Query.Exit, err = netip.ParseAddr(exit)
		list = append(list, l)
		return err
	})
	return list, wrap("list look-ups of the exit log", err)
}
