package postgres

import (
	"context"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// LastChange returns the cursor behind everything that is committed: the current snapshot.
func (d *Database) LastChange(c engine.Conn) (last ports.Cursor, err error) {
	err = c.Row("SELECT pg_current_snapshot()::text", nil).Scan(&last)
	return last, err
}

// ChangesSince lists what the snapshot of a cursor does not see and the current one does: that was
// committed in between, whatever its number. Numbers from beyond the current transactions are in a
// database that was restored from another server, and are ignored.
func (d *Database) ChangesSince(
	ctx context.Context, c engine.Conn, after ports.Cursor, limit int,
) (list []ports.Change, next ports.Cursor, err error) {
	var missed bool
	err = c.Row(`SELECT pg_current_snapshot()::text, (SELECT MIN(seq) FROM changes WHERE `+currentChange+`)
		> `+firstOf(`pg_snapshot_xmin(?1::text::pg_snapshot)`), []any{string(after)}).Scan(&next, nullIsFalse{&missed})
	if err == nil && !missed {
		err = c.Rows(ctx, `SELECT agent_id, session_id FROM changes WHERE `+currentChange+`
			AND seq >= `+firstOf(`pg_snapshot_xmin(?1::text::pg_snapshot)`)+`
			AND NOT pg_visible_in_snapshot((seq >> 20)::text::xid8, ?1::text::pg_snapshot) ORDER BY seq LIMIT ?2`,
			[]any{string(after), limit + 1}, func(rows engine.Row) error {
				var change ports.Change
				err := rows.Scan(&change.Agent, &change.Session)
				list = append(list, change)
				return err
			})
	}
	switch {
	case err != nil:
		return nil, "", err
	case missed || len(list) > limit:
		return nil, next, ports.ErrMissed
	}
	return list, next, nil
}

// firstOf returns the lowest number of a change of a transaction.
func firstOf(xid string) string { return "(" + xid + "::text::bigint << 20)" }

// currentChange holds for the numbers that a transaction of this server may have given.
var currentChange = "seq < " + firstOf("pg_snapshot_xmax(pg_current_snapshot())")

// nullIsFalse scans a condition that may be NULL.
type nullIsFalse struct{ into *bool }

// Scan implements sql.Scanner.
func (n nullIsFalse) Scan(v any) error {
	*n.into, _ = v.(bool)
	return nil
}

// PurgeChanges returns the statement that removes about ?2 changes from before ?1, the oldest
// first. It keeps the newest of those that it looks at, which marks from where on none is
// missing.
func (d *Database) PurgeChanges() string {
	return `WITH oldest AS (SELECT seq, at FROM changes WHERE ` + currentChange + ` ORDER BY seq LIMIT ?2::bigint + 1)
		DELETE FROM changes WHERE seq IN (
		SELECT seq FROM oldest WHERE seq < (SELECT MAX(seq) FROM oldest WHERE at < ?1)
		UNION ALL (SELECT seq FROM changes WHERE NOT ` + currentChange + ` LIMIT ?2::bigint))`
}

// Feed returns the order of events: by their transactions, those that are under way left out. Places from beyond
// the current transactions are in a database that was restored from another server, and are left out too.
func (d *Database) Feed() engine.Feed {
	end := firstOf("pg_snapshot_xmin(pg_current_snapshot())")
	return engine.Feed{Place: "place", End: end,
		Later: "place >= " + end + " AND place < " + firstOf("pg_snapshot_xmax(pg_current_snapshot())")}
}

// MonthOf returns the expression for the start of the UTC month of a time, both in microseconds since 1970.
func (d *Database) MonthOf(at string) string {
	return "CAST(extract(epoch FROM date_trunc('month', to_timestamp(" + at +
		" / 1000000) AT TIME ZONE 'UTC')) AS BIGINT) * 1000000"
}
