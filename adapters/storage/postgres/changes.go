package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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

// MonthOf returns the expression for the start of the UTC month of a time, both in microseconds since 1970.
func (d *Database) MonthOf(at string) string {
	return "CAST(extract(epoch FROM date_trunc('month', to_timestamp(" + at +
		" / 1000000) AT TIME ZONE 'UTC')) AS BIGINT) * 1000000"
}

// The place of an event is its transaction plus the base of the database, and a number within it. The base is 0 until
// a database went back in time or came to another server, where transactions have numbers that were given out before:
// it keeps places rising, so that cursors stay what they are. It is kept in service_values, for readers, and
// in the default of the column, so that writers ask for nothing.
const feedBase = `COALESCE((SELECT convert_from(value, 'UTF8')::bigint FROM service_values
	WHERE name = 'feed-base'), 0)`

// feedJump is by how many transactions RaiseFeed raises places: more than a server that is lost can have been ahead.
// There is room for 2,000 of them.
const feedJump = 1 << 32

// placeFrom returns the lowest place of an event of a transaction.
func placeFrom(xid string) string { return "((" + feedBase + " + " + xid + ") << 20)" }

// ownXmin is the oldest transaction under way in this database. A snapshot has those of all databases of the server;
// those whose process is connected to another one are left out. One that is not found among the locks has ended
// since the snapshot, and counts.
const ownXmin = `COALESCE((SELECT MIN(x::text::bigint) FROM pg_snapshot_xip(pg_current_snapshot()) x
	WHERE NOT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
	JOIN pg_database d ON d.oid = a.datid WHERE l.locktype = 'transactionid' AND l.mode = 'ExclusiveLock' AND l.granted
	AND l.transactionid::text::bigint = x::text::bigint & 4294967295 AND d.datname <> current_database())),
	pg_snapshot_xmax(pg_current_snapshot())::text::bigint)`

// Hints reports whether queries name partial indexes, because there are no statistics before ANALYZE.
func (d *Database) Hints() bool { return false }

// OldEvents returns the table of events that are removed as rows: the default partition. The others are dropped by day.
func (d *Database) OldEvents() string { return DefaultPartition }

// Feed returns the order of events: by their transactions, those that are under way left out.
func (d *Database) Feed() engine.Feed {
	return engine.Feed{Place: "place", Of: func(agent string) []engine.FeedPart {
		return []engine.FeedPart{{From: "outbox WHERE agent_id = " + agent, Place: "place"}}
	}, End: placeFrom("pg_snapshot_xmin(pg_current_snapshot())::text::bigint"),
		Held: placeFrom(ownXmin), Begun: placeFrom("pg_snapshot_xmax(pg_current_snapshot())::text::bigint")}
}

// FeedHeld returns how old the event is that transactions of this database hold up for longest, as far as earlier calls
// noticed; 0 if none is held up. It reads the newest event alone, as no index has those that are held up.
func (d *Database) FeedHeld(ctx context.Context, now time.Time) (time.Duration, error) {
	var place, at, end int64
	err := d.pool.QueryRow(ctx, "SELECT place, at, "+d.Feed().Held+" FROM outbox ORDER BY seq DESC LIMIT 1").
		Scan(&place, &at, &end)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return 0, err
	}
	d.lag.mu.Lock()
	defer d.lag.mu.Unlock()
	if d.lag.place < end { // it is listed
		d.lag.place, d.lag.at = 0, 0
	}
	if d.lag.place == 0 && place >= end {
		d.lag.place, d.lag.at = place, at
	}
	if d.lag.place == 0 {
		return 0, nil
	}
	return max(0, now.Sub(time.UnixMicro(d.lag.at))), nil
}

// querier is the pool, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// MendFeed raises the places of events if the newest one is from beyond the transactions of this server, as in a
// database that was dumped on another one and restored here. It does nothing on a standby.
func (d *Database) MendFeed(ctx context.Context) error {
	newest := "SELECT place >= " + d.Feed().Begun + " AND NOT pg_is_in_recovery() FROM outbox ORDER BY seq DESC LIMIT 1"
	err := d.raiseFeed(ctx, func(q querier) (bool, error) {
		rows, err := q.Query(ctx, newest)
		if err != nil {
			return false, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[bool])
		return len(found) > 0 && found[0], err
	})
	if e := new(pgconn.PgError); errors.As(err, &e) && (e.Code == "42P01" || e.Code == "42703") {
		return nil // the schema is to be made yet, or has no places yet
	}
	return err
}

// RaiseFeed has the places of events go on behind all that this database, or one that it replaces, gave out.
func (d *Database) RaiseFeed(ctx context.Context) error {
	return d.raiseFeed(ctx, func(querier) (bool, error) { return true, nil })
}

// A lock on the events is waited for no longer than raiseLock, since all that reads or writes them waits behind it, and
// is asked for each raisePause anew, for raiseWithin.
const (
	raiseLock   = "300ms"
	raisePause  = 700 * time.Millisecond
	raiseWithin = 50 * time.Second
)

// raiseFeed raises places while no event is written, as long as that is due.
func (d *Database) raiseFeed(ctx context.Context, due func(querier) (bool, error)) error {
	for end := time.Now().Add(raiseWithin); ; {
		if yes, err := due(d.pool); err != nil || !yes {
			return err
		}
		err := d.tryToRaise(ctx, due) // another process may have meanwhile
		if e := new(pgconn.PgError); !errors.As(err, &e) || e.Code != lockNotAvailable || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(raisePause):
		}
	}
}

func (d *Database) tryToRaise(ctx context.Context, due func(querier) (bool, error)) error {
	return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		for _, s := range []string{"SET LOCAL lock_timeout = '" + raiseLock + "'",
			"LOCK TABLE outbox IN ACCESS EXCLUSIVE MODE"} {
			if _, err := tx.Exec(ctx, s); err != nil {
				return fmt.Errorf("lock the events: %w", err)
			}
		}
		if yes, err := due(tx); err != nil || !yes {
			return err
		}
		var base int64
		err := tx.QueryRow(ctx, `SELECT $1 + GREATEST(`+feedBase+`, COALESCE(MAX(place) >> 20, 0)
			- pg_current_xact_id()::text::bigint) FROM outbox`, int64(feedJump)).Scan(&base)
		if err != nil {
			return fmt.Errorf("read the last place of an event: %w", err)
		}
		text := strconv.FormatInt(base, 10)
		_, err = tx.Exec(ctx, `INSERT INTO service_values (name, value) VALUES ('feed-base', convert_to($1, 'UTF8'))
			ON CONFLICT (name) DO UPDATE SET value = excluded.value`, text)
		if err == nil {
			_, err = tx.Exec(ctx, "ALTER TABLE outbox ALTER COLUMN place SET DEFAULT (((pg_current_xact_id()::text::bigint + "+
				text+") << 20) | (nextval('changes_no') & 1048575))")
		}
		return err
	})
}
