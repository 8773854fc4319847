package storage

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"agentproxy/ports"
)

// changes keeps what other processes must hear of.
type changes struct{ *tx }

// noteChange is called by Put of agents, sessions and orders.
func (t *tx) noteChange(agentID, sessionID string) error {
	return t.later("note change", "INSERT INTO changes (agent_id, session_id, at) VALUES (?1, ?2, ?3)",
		agentID, sessionID, micros(t.store.config.Now()))
}

func (r changes) Last(context.Context) (ports.Cursor, error) {
	var last ports.Cursor
	if err := r.row(r.store.engine.dialect().lastChange).Scan(&last); err != nil {
		return "", fmt.Errorf("read last change: %w", err)
	}
	return last, nil
}

func (r changes) Since(ctx context.Context, after ports.Cursor, limit int) ([]ports.Change, ports.Cursor, error) {
	list, next, err := r.store.engine.changesSince(ctx, r.tx, after, limit)
	if err != nil && !errors.Is(err, ports.ErrMissed) {
		return nil, "", fmt.Errorf("list changes: %w", err)
	}
	return list, next, err
}

// changesSince walks the numbers, which have no gap: writers take turns, and a
// number that was not committed is used again. When the next one is missing, it
// was purged.
func (e *sqliteEngine) changesSince(ctx context.Context, t *tx, after ports.Cursor, limit int) (list []ports.Change, next ports.Cursor, err error) {
	last, err := strconv.ParseInt(string(after), 10, 64)
	if err != nil {
		return nil, "", err
	}
	missed := false
	err = t.rows(ctx, "SELECT seq, agent_id, session_id FROM changes WHERE seq > ?1 ORDER BY seq LIMIT ?2",
		[]any{last, limit + 1}, func(rows cursor) error {
			var c ports.Change
			seq := last
			err := rows.Scan(&seq, &c.Agent, &c.Session)
			missed = missed || seq != last+1
			last, list = seq, append(list, c)
			return err
		})
	switch {
	case err != nil:
		return nil, "", err
	case missed || len(list) > limit:
		next, err = (changes{t}).Last(ctx)
		return nil, next, errors.Join(err, ports.ErrMissed)
	}
	return list, ports.Cursor(strconv.FormatInt(last, 10)), nil
}

// changesSince knows a place as the text of a snapshot: what the old one does
// not see and the present one does was committed in between, whatever its
// number. Numbers from beyond the present transactions stand in a database that
// was restored from another server; they are no news.
func (e *postgresEngine) changesSince(ctx context.Context, t *tx, after ports.Cursor, limit int) (list []ports.Change, next ports.Cursor, err error) {
	var missed bool
	err = t.row(`SELECT pg_current_snapshot()::text, (SELECT MIN(seq) FROM changes WHERE `+presentChange+`)
		> `+firstOf(`pg_snapshot_xmin(?1::text::pg_snapshot)`), string(after)).Scan(&next, nullIsFalse{&missed})
	if err == nil && !missed {
		err = t.rows(ctx, `SELECT agent_id, session_id FROM changes WHERE `+presentChange+`
			AND seq >= `+firstOf(`pg_snapshot_xmin(?1::text::pg_snapshot)`)+`
			AND NOT pg_visible_in_snapshot((seq >> 20)::text::xid8, ?1::text::pg_snapshot) ORDER BY seq LIMIT ?2`,
			[]any{string(after), limit + 1}, func(rows cursor) error {
				var c ports.Change
				err := rows.Scan(&c.Agent, &c.Session)
				list = append(list, c)
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

// firstOf is the number that no change of an earlier transaction reaches.
func firstOf(xid string) string { return "(" + xid + "::text::bigint << 20)" }

// presentChange is what a transaction of this server may have noted.
var presentChange = "seq < " + firstOf("pg_snapshot_xmax(pg_current_snapshot())")

// nullIsFalse takes a truth that may be unknown.
type nullIsFalse struct{ into *bool }

// Scan is for database/sql.
func (n nullIsFalse) Scan(v any) error {
	*n.into, _ = v.(bool)
	return nil
}

func (r changes) Purge(_ context.Context, before time.Time) error {
	if _, err := r.exec(r.store.engine.dialect().purgeChanges, micros(before)); err != nil {
		return fmt.Errorf("purge changes: %w", err)
	}
	return nil
}
