package storage

import (
	"cmp"
	"maps"
	"slices"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/eventlog"
	"agentproxy/ports"
)

// chunkRow is a row of event_chunks.
type chunkRow struct {
	Session, LastNo, N, LastAt int64
	Body                       []byte
}

// healthRow is a row of session_health.
type healthRow struct {
	Session int64
	State   []byte
}

// movedHealth is a row of session_health that was read.
type movedHealth struct {
	healthRow
	LastNo int64 // 0 if it is not known
}

// chunks returns the events as rows, in the order of their sessions: those of sessions whose last numbers are
// known, and those of the others, numbered from 1 on.
func (w *batchWrites) chunks(lastNos map[int64]int64) (known, unknown []chunkRow) {
	for _, session := range slices.Sorted(maps.Keys(w.events)) {
		first := lastNos[session]
		rows := &unknown
		if first > 0 {
			rows = &known
		}
		last := first
		for chunk := range slices.Chunk(w.events[session], codec.MaxEvents) {
			last += int64(len(chunk))
			*rows = append(*rows, chunkRow{Session: session, LastNo: last, N: int64(len(chunk)),
				LastAt: column.Micros(codec.Newest(chunk)),
				Body:   codec.AppendEvents(make([]byte, 0, 64+32*len(chunk)), chunk)})
		}
	}
	return known, unknown
}

// The statements that write what a batch has changed, each for any number of rows.
var (
	insertedMany   = work.NewBulk(new(sessionRow), "nth") // of those of its agent
	insertSessions = insertedMany.Statement("INSERT INTO sessions (" + work.NewBulk(new(sessionRow)).List("") +
		", ord) SELECT " + work.NewBulk(new(sessionRow)).List("u.") + `, u.nth +
		(SELECT COALESCE(MAX(s.ord), 0) FROM sessions s WHERE s.agent_id = u.agent_id) FROM ` + insertedMany.From())

	stateMany   = work.NewBulk(new(putRow))
	putSessions = stateMany.Statement("UPDATE sessions s SET (" + work.NewBulk(new(sessionState)).List("") + ") = (" +
		work.NewBulk(new(sessionState)).List("u.") + ") FROM " + stateMany.From() + " WHERE s.id = u.id")

	planMany        = work.NewBulk(new(planRow))
	planSettlements = planMany.Statement("UPDATE sessions s SET settle_at = u.settle_at FROM " + planMany.From() +
		" WHERE s.id = u.id")

	// moveHealths writes the health that was read: ON CONFLICT would lock each row by a write of
	// its own.
	movedMany   = work.NewBulk(new(movedHealth))
	moveHealths = movedMany.Statement("UPDATE session_health h SET state = u.state, last_no = NULLIF(u.last_no, 0) FROM " +
		movedMany.From() + " WHERE h.session = u.session")
	healthMany = work.NewBulk(new(healthRow))
	putHealths = healthMany.Statement(healthMany.Insert("session_health") +
		" ON CONFLICT (session) DO UPDATE SET state = excluded.state")

	chunkMany    = work.NewBulk(new(chunkRow))
	insertChunks = chunkMany.Statement(chunkMany.Insert("event_chunks"))
	// numberChunks looks for the last number, and numberHealths keeps it. Neither looks into the partitions of
	// days to come, but for the next: another transaction may have begun after midnight.
	numberChunks = chunkMany.Statement("INSERT INTO event_chunks (session, last_no, n, last_at, body) " +
		"SELECT u.session, u.last_no + COALESCE(" + lastNumber("u") + ", 0), u.n, u.last_at, u.body FROM " +
		chunkMany.From())
	numberHealths = "UPDATE session_health h SET last_no = " + lastNumber("h") + " WHERE h.session = ANY(?1::bigint[])"
)

func lastNumber(of string) string {
	return "(SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = " + of +
		".session AND c.day <= floor(extract(epoch FROM now()) / 86400)::bigint + 1)"
}

// putRow is the part of a session that Put writes, with its key.
type putRow struct {
	ID string
	sessionState
}

// planRow is when a session is settled.
type planRow struct {
	ID       string
	SettleAt int64
}

// queueWrites queues the statements that write what the units of the batch have changed. Rows come in the
// order of their keys where other transactions may change them too.
func (b *batch) queueWrites() error {
	w := b.writes.base
	if err := b.rows.WriteTo(pipeWriter{b.pipe}); err != nil {
		return err
	}
	b.queueInserted(w.inserted)
	puts, plans := b.changedSessions()
	moved, added := b.changedHealths()
	queueRows(b, "write sessions", putSessions, puts)
	queueRows(b, "plan settlements", planSettlements, plans)
	queueRows(b, "write health", moveHealths, moved)
	queueRows(b, "add health", putHealths, added)
	b.queueChunks(&w)
	return nil
}

func (b *batch) queueInserted(rows []sessionRow) {
	nth := map[string]int64{}
	insertSessions.Queue(b.pipe, "insert sessions", len(rows), func(i int) []any {
		nth[rows[i].AgentID]++
		return append(column.Values(&rows[i]), nth[rows[i].AgentID])
	})
}

// changedSessions returns the changed rows of sessions.
func (b *batch) changedSessions() (puts []putRow, plans []planRow) {
	for _, id := range slices.Sorted(maps.Keys(b.sessions.base)) {
		s := b.sessions.base[id]
		if s.dirty {
			puts = append(puts, putRow{id, s.row.sessionState})
		}
		if s.planned {
			plans = append(plans, planRow{id, s.settleAt})
		}
	}
	return puts, plans
}

// changedHealths returns the changed rows of the health of sessions, and those of sessions that had
// none.
func (b *batch) changedHealths() (moved []movedHealth, added []healthRow) {
	for _, h := range b.health.base {
		more := int64(len(b.writes.base.events[h.seq]))
		row := movedHealth{healthRow{h.seq, h.state}, h.lastNo}
		switch numbered := h.lastNo > 0 && more > 0; {
		case numbered:
			row.LastNo += more
			moved = append(moved, row)
		case h.dirty && h.stored:
			moved = append(moved, row)
		case h.dirty:
			added = append(added, row.healthRow)
		}
	}
	slices.SortFunc(moved, func(x, y movedHealth) int { return cmp.Compare(x.Session, y.Session) })
	slices.SortFunc(added, func(x, y healthRow) int { return cmp.Compare(x.Session, y.Session) })
	return moved, added
}

// queueChunks comes after health is written, which has the numbers.
func (b *batch) queueChunks(w *batchWrites) {
	lastNos := make(map[int64]int64, len(w.events))
	for _, h := range b.health.base {
		lastNos[h.seq] = h.lastNo
	}
	known, unknown := w.chunks(lastNos)
	queueRows(b, "append events", insertChunks, known)
	queueRows(b, "append first events", numberChunks, unknown)
	if len(unknown) > 0 {
		var sessions []int64
		for _, row := range unknown {
			sessions = append(sessions, row.Session)
		}
		b.pipe.Queue("keep the numbers of events", numberHealths, []any{sessions}, nil)
	}
}

// overlayWrites are the writes of a batch that are no changes of rows that it read: those of the units
// that have ended, and those of the running one.
type overlayWrites struct{ base, own batchWrites }

// batchWrites are rows to insert or to add to.
type batchWrites struct {
	inserted []sessionRow
	events   map[int64][]eventlog.Event // of sessions, in the order in which they were appended

	jobs []ports.Job
}

// end keeps or drops what the running unit wrote.
func (w *overlayWrites) end(keep bool) {
	if keep {
		w.base.add(w.own)
	}
	w.own = batchWrites{}
}

func (w *batchWrites) add(o batchWrites) {
	w.inserted = append(w.inserted, o.inserted...)
	for session, added := range o.events {
		w.append(session, added)
	}
	w.jobs = append(w.jobs, o.jobs...)
}

// append adds events of a session with a number. Those of all units of a batch make one chunk,
// because a row of the feed costs more than the events in it.
func (w *batchWrites) append(session int64, added []eventlog.Event) {
	if w.events == nil {
		w.events = map[int64][]eventlog.Event{}
	}
	if held := w.events[session]; len(held) > 0 {
		added = append(held, added...)
	}
	w.events[session] = slices.Clip(added)
}
