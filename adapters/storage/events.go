package storage

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/postgres"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/session"
)

// events keeps the event log in chunks: a row for each call of Append, in a
// partition for each day on PostgreSQL. The events of a session are numbered 1, 2, 3, and
// a chunk is known by the number of its last one, so a page is found without walking the
// chunks before it. Removing begins at the oldest, so the numbers that are left have no gap.
type events struct{ *tx }

const appendEvents = `INSERT INTO event_chunks (session, last_no, n, last_at, body, day)
	SELECT s.seq, COALESCE((SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = s.seq), 0) + ?2, ?2, ?3, ?4,
	?3 / 86400000000 FROM sessions s WHERE s.id = ?1`

func (r events) Append(_ context.Context, sessionID string, added []eventlog.Event) error {
	if r.batch != nil {
		return r.batch.appendEvents(sessionID, added)
	}
	// The numbers go on from the last one, so one unit at a time adds to a session.
	r.hold(sessionID)
	for chunk := range slices.Chunk(added, codec.MaxEvents) {
		body := codec.AppendEvents(make([]byte, 0, 64+32*len(chunk)), chunk)
		n, err := r.Exec(appendEvents, sessionID, len(chunk), column.Micros(codec.Newest(chunk)), body)
		if err != nil {
			return fmt.Errorf("append events to %s: %w", sessionID, err)
		}
		if n == 0 {
			return session.ErrNotFound
		}
	}
	return nil
}

const eventRange = `SELECT COALESCE((SELECT MAX(last_no) FROM event_chunks WHERE session = ?1), 0),
	COALESCE((SELECT last_no - n FROM event_chunks WHERE session = ?1 ORDER BY last_no LIMIT 1), 0)`

// eventChunks are the chunks that hold an event of a range. The upper bound of
// the last number spares the walk over newer chunks.
const eventChunks = `SELECT last_no, body FROM event_chunks
	WHERE session = ?1 AND last_no > ?2 AND last_no < ?4 AND last_no - n < ?3 ORDER BY last_no DESC`

func (r events) Page(ctx context.Context, sessionID string, page domain.Page) (domain.List[eventlog.Event], error) {
	list := domain.List[eventlog.Event]{Page: page}
	seq, err := r.seqOf(sessionID)
	if err != nil {
		return list, err
	}
	// Events low+1 to high are kept; the page is those from top down to bottom+1.
	var high, low int
	if err := r.Row(eventRange, seq).Scan(&high, &low); err != nil {
		return list, fmt.Errorf("count events of %s: %w", sessionID, err)
	}
	list.Total = high - low
	top := high - page.Offset()
	if page.After > 0 {
		top = min(int(page.After)-1, high)
	}
	bottom := max(top-page.Size, low)
	if top <= low {
		return list, nil
	}
	if bottom > low {
		list.Next = int64(bottom + 1)
	}
	err = r.Rows(ctx, eventChunks, []any{seq, bottom, top, top + codec.MaxEvents}, func(rows engine.Row) error {
		var last int
		var body sql.RawBytes
		if err := rows.Scan(&last, &body); err != nil {
			return err
		}
		chunk, err := codec.DecodeEvents(body)
		if err != nil {
			return err
		}
		for i := range chunk {
			if no := last - i; no <= top && no > bottom {
				list.Items = append(list.Items, chunk[len(chunk)-1-i])
			}
		}
		return nil
	})
	if err != nil {
		return list, fmt.Errorf("read events of %s: %w", sessionID, err)
	}
	return list, nil
}

// keepNewest goes by the index of a session's chunks.
const keepNewest = `DELETE FROM event_chunks WHERE session = ?1 AND last_no <= (
	SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = ?1) - ?2`

func (r events) KeepNewest(_ context.Context, sessionID string, atLeast int) error {
	seq, err := r.seqOf(sessionID)
	if err != nil {
		return err
	}
	if _, err := r.Exec(keepNewest, seq, atLeast); err != nil {
		return fmt.Errorf("remove older events of %s: %w", sessionID, err)
	}
	return nil
}

// Trim looks at the chunks in the order in which they were stored, so it never looks at one that it
// keeps, but the first: those of a session are removed from the oldest on. On PostgreSQL it looks at
// the default partition alone; the others are dropped by day.
func (r events) Trim(ctx context.Context, before time.Time, limit int) (removed int, err error) {
	table := "event_chunks"
	if r.store.postgres != nil {
		table = postgres.DefaultPartition
	}
	var last int64
	young := false
	err = r.Rows(ctx, "SELECT seq, last_at FROM "+table+" ORDER BY seq LIMIT ?1", []any{limit},
		func(row engine.Row) error {
			var seq, at int64
			err := row.Scan(&seq, &at)
			if young = young || at >= column.Micros(before); !young {
				last, removed = seq, removed+1
			}
			return err
		})
	if err != nil || removed == 0 {
		return 0, work.Wrap("list events to trim", err)
	}
	if _, err := r.Exec("DELETE FROM "+table+" WHERE seq <= ?1", last); err != nil {
		return 0, fmt.Errorf("trim events: %w", err)
	}
	return removed, nil
}
