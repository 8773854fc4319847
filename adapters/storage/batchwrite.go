package storage

import (
	"cmp"
	"maps"
	"slices"

	"agentproxy/adapters/storage/codec"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// chunkRow is a row of event_chunks.
type chunkRow struct {
	Session, LastNo, N, LastAt int64
	Body                       []byte
}

// foldRow is a row of telemetry_folds.
type foldRow struct {
	Queue, Stream string
	Seq           int64
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

// movedWallet is what entries and sessions change in a wallet.
type movedWallet struct {
	AgentID                                     string
	Trial, Own, HeldTrial, HeldOwn              int64
	Charged, Refunded, Recharged, Adjusted      int64
	Funded, Credited                            bool
	LiveSessions, SpentDay, SpentToday, Entries int64
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
	walletMany  = work.NewBulk(new(movedWallet))
	moveWallets = walletMany.Statement("UPDATE wallets w SET (" + walletMany.List("") + ") = (" +
		walletMany.List("u.") + ") FROM " + walletMany.From() + " WHERE w.agent_id = u.agent_id")

	entryMany     = work.NewBulk(new(entryRow))
	insertEntries = entryMany.Statement(entryMany.Insert("ledger_entries"))

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

	foldMany = work.NewBulk(new(foldRow))
	putFolds = foldMany.Statement("UPDATE telemetry_folds f SET (stream, seq) = (u.stream, u.seq) FROM " +
		foldMany.From() + " WHERE f.queue = u.queue")

	callMany   = work.NewBulk(new(callRow))
	putCalls   = callMany.Statement(callMany.Insert("idempotency_keys") + putCallAgain)
	counterAll = work.NewBulk(new(counterRow))
	addTallies = counterAll.Statement(counterAll.Insert("counters") + addCountersAgain)
	hourMany   = work.NewBulk(new(hourRow))
	addHours   = hourMany.Statement(hourMany.Insert("usage_hours") + addHourAgain)
	changeMany = work.NewBulk(new(changeRow))
	noteMany   = changeMany.Statement(changeMany.Insert("changes"))
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
func (b *batch) queueWrites() {
	w := b.writes.base
	queueRows(b, "move wallets", moveWallets, b.movedWallets())
	queueRows(b, "book entries", insertEntries, w.entries)
	b.queueInserted(w.inserted)
	puts, plans := b.changedSessions()
	moved, added := b.changedHealths()
	queueRows(b, "write sessions", putSessions, puts)
	queueRows(b, "plan settlements", planSettlements, plans)
	queueRows(b, "write health", moveHealths, moved)
	queueRows(b, "add health", putHealths, added)
	b.queueChunks(&w)
	queueRows(b, "put folds", putFolds, b.movedFolds())
	queueRows(b, "keep keys", putCalls, b.keptCalls())
	queueRows(b, "count", addTallies, tallies(w.counters))
	queueRows(b, "add to hours", addHours, hourRows(w.hours))
	queueRows(b, "note changes", noteMany, w.changes)
	b.queueNotices(&w)
}

func (b *batch) movedWallets() (rows []movedWallet) {
	for _, agentID := range slices.Sorted(maps.Keys(b.wallets.base)) {
		w := b.wallets.base[agentID]
		if !w.dirty {
			continue
		}
		r := toWalletRow(w.Wallet)
		rows = append(rows, movedWallet{AgentID: agentID, Trial: r.Trial, Own: r.Own, HeldTrial: r.HeldTrial,
			HeldOwn: r.HeldOwn, Charged: r.Charged, Refunded: r.Refunded, Recharged: r.Recharged, Adjusted: r.Adjusted,
			Funded: r.Funded, Credited: r.Credited, LiveSessions: int64(r.LiveSessions), SpentDay: r.SpentDay,
			SpentToday: r.SpentToday, Entries: w.entries})
	}
	return rows
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

// movedFolds returns the cursors that were put.
func (b *batch) movedFolds() (rows []foldRow) {
	if len(b.folds.base) == 0 {
		return nil
	}
	for _, queue := range slices.Sorted(maps.Keys(b.folds.base)) {
		if f := b.folds.base[queue]; f.dirty {
			rows = append(rows, foldRow{queue, f.Stream, int64(f.Seq)})
		}
	}
	return rows
}

// keptCalls returns the keys that were stored.
func (b *batch) keptCalls() (rows []callRow) {
	for _, c := range b.calls.base {
		if c.dirty {
			rows = append(rows, callRow{c.AgentID, c.Path, c.Key, column.Bytes(c.Request), c.Resource,
				int64(outcomeStatus(c.Outcome)), column.Micros(c.CreatedAt)})
		}
	}
	slices.SortFunc(rows, func(x, y callRow) int {
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Key, y.Key))
	})
	return rows
}

func tallies(counters map[string]ports.Tally) (rows []counterRow) {
	for _, agentID := range slices.Sorted(maps.Keys(counters)) {
		t := counters[agentID]
		rows = append(rows, counterRow{agentID, t.Reported, t.Scored, t.Good, t.Rotations, t.Bytes})
	}
	return rows
}

func hourRows(hours map[hourKey]ports.Totals) (rows []hourRow) {
	for k, t := range hours {
		rows = append(rows, hourRow{k.agentID, k.hour, k.sessionID, t.Up, t.Down, t.Connections, int64(t.Charged),
			int64(t.Refunded), int64(t.Recharged)})
	}
	slices.SortFunc(rows, func(x, y hourRow) int {
		return cmp.Or(cmp.Compare(x.AgentID, y.AgentID), cmp.Compare(x.Hour, y.Hour), cmp.Compare(x.SessionID, y.SessionID))
	})
	return rows
}
