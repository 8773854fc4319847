package sessions

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/ports"
)

// events keeps the event log in chunks: a row for each call of Append, in a
// partition for each day on PostgreSQL. The events of a session are numbered 1, 2, 3, and
// a chunk is known by the number of its last one, so a page is found without walking the
// chunks before it. Removing begins at the oldest, so the numbers that are left have no gap.
type events struct{ *work.Unit }

// Events returns the event log of a unit.
func Events(u *work.Unit) ports.Events { return events{u} }

func (r events) Append(ctx context.Context, sessionID string, added []eventlog.Event) error {
	// The numbers go on from the last one, so one unit at a time adds to a session.
	h, err := looked(ctx, r.Unit, sessionID)
	if err != nil {
		return err
	}
	if h.lastNo > 0 {
		h.lastNo += int64(len(added))
		if err := HealthTable.Put(r.Set, sessionID, h); err != nil {
			return err
		}
	}
	return eventTable.Add(r.Set, sessionID, slices.Clip(added)) // what others add is not written behind the caller's
}

// eventTable has what is appended to the events of sessions, which all units of a batch do as one chunk: a row of
// the feed costs more than the events in it.
var eventTable = &rows.Sums[string, []eventlog.Event]{
	Order:   work.EventOrder,
	Plus:    func(a, b []eventlog.Event) []eventlog.Event { return append(a, b...) },
	Compare: strings.Compare,
	Write:   writeEvents,
}

// chunkRow is a row of event_chunks.
type chunkRow struct {
	Session, LastNo, N, LastAt int64
	Body                       []byte
}

var (
	chunkRows    = rows.ColumnsOf[chunkRow]()
	insertChunks = rows.Insert[chunkRow]("append events", "event_chunks", "")
	// numberChunks looks for the last number, and numberHealths keeps it. Neither looks into the partitions of
	// days to come, but for the next: another transaction may have begun after midnight.
	numberChunks = rows.NewStatement[chunkRow]("append first events", chunkRows,
		"INSERT INTO event_chunks (session, last_no, n, last_at, body) VALUES (?1, ?2 + COALESCE("+lastNumber("?1")+
			", 0), ?3, ?4, ?5)",
		"INSERT INTO event_chunks (session, last_no, n, last_at, body) SELECT u.session, u.last_no + COALESCE("+
			lastNumber("u.session")+", 0), u.n, u.last_at, u.body FROM "+chunkRows.From())
	numberHealths = "UPDATE session_health h SET last_no = " + lastNumber("h.session") +
		" WHERE h.session = ANY(?1::bigint[])"
	// appendChunk is for SQLite, which has no partitions.
	appendChunk = rows.NewStatement[chunkRow]("append events", chunkRows,
		`INSERT INTO event_chunks (session, last_no, n, last_at, body, day) VALUES (?1, ?2 + COALESCE((SELECT MAX(c.last_no)
		FROM event_chunks c WHERE c.session = ?1), 0), ?3, ?4, ?5, ?4 / 86400000000)`, "")
)

func lastNumber(session string) string {
	return "(SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = " + session +
		" AND c.day <= floor(extract(epoch FROM now()) / 86400)::bigint + 1)"
}

// writeEvents comes after health is written, which has the numbers.
func writeEvents(s *rows.Set, to rows.Writer, added []rows.Sum[string, []eventlog.Event]) error {
	var known, first []chunkRow
	var sessions []int64
	for _, a := range added {
		h, _ := HealthTable.Peek(s, a.Key)
		list, last := &known, h.lastNo-int64(len(a.Row))
		if h.lastNo == 0 {
			list, last = &first, 0
			sessions = append(sessions, h.seq)
		}
		for chunk := range slices.Chunk(a.Row, codec.MaxEvents) {
			n := int64(len(chunk))
			last += n
			if !to.Arrays() { // each statement finds what the one before it inserted
				last = n
			}
			*list = append(*list, chunkRow{Session: h.seq, LastNo: last, N: n, LastAt: column.Micros(codec.Newest(chunk)),
				Body: codec.AppendEvents(make([]byte, 0, 64+32*len(chunk)), chunk)})
		}
	}
	if !to.Arrays() {
		return appendChunk.Write(to, first)
	}
	if err := cmp.Or(insertChunks.Write(to, known), numberChunks.Write(to, first)); err != nil || len(sessions) == 0 {
		return err
	}
	return to.Queue("keep the numbers of events", numberHealths, []any{sessions})
}

const eventRange = `SELECT COALESCE((SELECT MAX(last_no) FROM event_chunks WHERE session = ?1), 0),
	COALESCE((SELECT last_no - n FROM event_chunks WHERE session = ?1 ORDER BY last_no LIMIT 1), 0)`

// eventChunks are the chunks that hold an event of a range. The upper bound of
// the last number spares the walk over newer chunks.
const eventChunks = `SELECT last_no, body FROM event_chunks
	WHERE session = ?1 AND last_no > ?2 AND last_no < ?4 AND last_no - n < ?3 ORDER BY last_no DESC`

func (r events) Page(ctx context.Context, sessionID string, page domain.Page) (domain.List[eventlog.Event], error) {
	list := domain.List[eventlog.Event]{Page: page}
	seq, err := r.SeqOf(sessionID)
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
	err = r.Rows(ctx, eventChunks, []any{seq, bottom, top, top + codec.MaxEvents}, func(row engine.Row) error {
		var last int
		var body sql.RawBytes
		if err := row.Scan(&last, &body); err != nil {
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
	seq, err := r.SeqOf(sessionID)
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
	table := r.Database.OldEvents
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
