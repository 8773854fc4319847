package storage

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"agentproxy/adapters/storage/codec"
	"agentproxy/domain/eventlog"
	"agentproxy/ports"
)

// overlayWrites are the writes of a batch that are no changes of rows that it read: those of the units
// that have ended, and those of the running one.
type overlayWrites struct{ base, own batchWrites }

// batchWrites are rows to insert or to add to.
type batchWrites struct {
	entries  []entryRow
	refs     map[string]bool // of entries
	inserted []sessionRow
	chunks   []chunkRow
	counters map[string]ports.Tally
	hours    map[hourKey]ports.Totals
	changes  []changeRow

	outbox     []outboxEvent
	deliveries []batchDelivery
	marks      map[markKey]int64
	jobs       []ports.Job
}

// chunkRow is a row of event_chunks whose number is behind those that the session has.
type chunkRow struct {
	Session, N, LastAt int64
	Body               []byte
}

type hourKey struct {
	agentID, sessionID string
	hour               int64
}

// hourRow is a row of usage_hours.
type hourRow struct {
	AgentID                                             string
	Hour                                                int64
	SessionID                                           string
	Up, Down, Connections, Charged, Refunded, Recharged int64
}

// counterRow is a row of counters.
type counterRow struct {
	AgentID                                  string
	Reported, Scored, Good, Rotations, Bytes int64
}

// changeRow is a row of changes.
type changeRow struct {
	AgentID, SessionID string
	At                 int64
}

// callRow is a row of idempotency_keys.
type callRow struct {
	AgentID, Path, Key string
	Request            []byte
	Resource           string
	Status, CreatedAt  int64
}

// healthRow is a row of session_health.
type healthRow struct {
	Session int64
	State   []byte
}

// movedWallet is what entries and sessions change in a wallet.
type movedWallet struct {
	AgentID                                     string
	Trial, Own, HeldTrial, HeldOwn              int64
	Charged, Refunded, Recharged                int64
	Funded, Credited                            bool
	LiveSessions, SpentDay, SpentToday, Entries int64
}

// end keeps or drops what the running unit wrote.
func (w *overlayWrites) end(keep bool) {
	if keep {
		w.base.add(w.own)
	}
	w.own = batchWrites{}
}

func (w *batchWrites) add(o batchWrites) {
	w.entries = append(w.entries, o.entries...)
	w.inserted = append(w.inserted, o.inserted...)
	w.chunks = append(w.chunks, o.chunks...)
	w.changes = append(w.changes, o.changes...)
	if w.refs == nil {
		w.refs = map[string]bool{}
	}
	maps.Copy(w.refs, o.refs)
	w.addNotices(&o)
	for agentID, t := range o.counters {
		w.count(agentID, t)
	}
	for k, t := range o.hours {
		w.addHour(k, t)
	}
}

func (w *batchWrites) count(agentID string, t ports.Tally) {
	if w.counters == nil {
		w.counters = map[string]ports.Tally{}
	}
	w.counters[agentID] = w.counters[agentID].Plus(t)
}

func (w *batchWrites) addHour(k hourKey, t ports.Totals) {
	if w.hours == nil {
		w.hours = map[hourKey]ports.Totals{}
	}
	w.hours[k] = w.hours[k].Plus(t)
}

// append adds events of a session with a number.
func (w *batchWrites) append(session int64, added []eventlog.Event) {
	for chunk := range slices.Chunk(added, codec.MaxEvents) {
		w.chunks = append(w.chunks, chunkRow{Session: session, N: int64(len(chunk)), LastAt: micros(codec.Newest(chunk)),
			Body: codec.AppendEvents(make([]byte, 0, 64+32*len(chunk)), chunk)})
	}
}

// The statements that write what a batch has changed, each for any number of rows.
var (
	walletMany  = newManyRows(new(movedWallet))
	moveWallets = "UPDATE wallets w SET (" + walletMany.list("") + ") = (" + walletMany.list("u.") + ") FROM " +
		walletMany.from() + " WHERE w.agent_id = u.agent_id"

	entryMany     = newManyRows(new(entryRow))
	insertEntries = entryMany.insert("ledger_entries")

	insertedMany   = newManyRows(new(sessionRow), "nth") // of those of its agent
	insertSessions = "INSERT INTO sessions (" + newManyRows(new(sessionRow)).list("") + ", ord) SELECT " +
		newManyRows(new(sessionRow)).list("u.") + `, u.nth +
		(SELECT COALESCE(MAX(s.ord), 0) FROM sessions s WHERE s.agent_id = u.agent_id) FROM ` + insertedMany.from()

	stateMany   = newManyRows(new(putRow))
	putSessions = "UPDATE sessions s SET (" + newManyRows(new(sessionState)).list("") + ") = (" +
		newManyRows(new(sessionState)).list("u.") + ") FROM " + stateMany.from() + " WHERE s.id = u.id"

	planMany        = newManyRows(new(planRow))
	planSettlements = "UPDATE sessions s SET settle_at = u.settle_at FROM " + planMany.from() + " WHERE s.id = u.id"

	healthMany = newManyRows(new(healthRow))
	putHealths = healthMany.insert("session_health") + " ON CONFLICT (session) DO UPDATE SET state = excluded.state"

	chunkMany = newManyRows(new(chunkRow), "behind") // events of the session in this batch up to the last of the chunk
	// insertChunks does not look into the partitions of days to come, but for the next: another transaction
	// may have begun after midnight.
	insertChunks = `INSERT INTO event_chunks (session, last_no, n, last_at, body) SELECT u.session, u.behind +
		COALESCE((SELECT MAX(c.last_no) FROM event_chunks c WHERE c.session = u.session AND
			c.day <= floor(extract(epoch FROM now()) / 86400)::bigint + 1), 0), u.n, u.last_at, u.body
		FROM ` + chunkMany.from()

	callMany   = newManyRows(new(callRow))
	putCalls   = callMany.insert("idempotency_keys") + putCallAgain
	counterAll = newManyRows(new(counterRow))
	addTallies = counterAll.insert("counters") + addCountersAgain
	hourMany   = newManyRows(new(hourRow))
	addHours   = hourMany.insert("usage_hours") + addHourAgain
	changeMany = newManyRows(new(changeRow))
	noteMany   = changeMany.insert("changes")
)

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

// ask queues the statements that write what the units of the batch have changed. Rows come in the
// order of their keys where other transactions may change them too.
func (b *batch) ask() {
	w := b.writes.base
	askMany(b, "move wallets", moveWallets, walletMany, b.movedWallets())
	askMany(b, "book entries", insertEntries, entryMany, w.entries)
	b.askInserted(w.inserted)
	puts, plans, healths := b.changedSessions()
	askMany(b, "write sessions", putSessions, stateMany, puts)
	askMany(b, "plan settlements", planSettlements, planMany, plans)
	askMany(b, "write health", putHealths, healthMany, healths)
	b.askChunks(w.chunks)
	askMany(b, "keep keys", putCalls, callMany, b.keptCalls())
	askMany(b, "count", addTallies, counterAll, tallies(w.counters))
	askMany(b, "add to hours", addHours, hourMany, hourRows(w.hours))
	askMany(b, "note changes", noteMany, changeMany, w.changes)
	b.askNotices(&w)
}

func askMany[Row any](b *batch, what, statement string, m manyRows, rows []Row) {
	if len(rows) > 0 {
		b.pipe.Ask(what, statement, m.arguments(len(rows), func(i int) []any { return columnValues(&rows[i]) }), nil)
	}
}

func (b *batch) movedWallets() (rows []movedWallet) {
	for _, agentID := range slices.Sorted(maps.Keys(b.wallets.base)) {
		w := b.wallets.base[agentID]
		if !w.dirty {
			continue
		}
		r := toWalletRow(w.Wallet)
		rows = append(rows, movedWallet{AgentID: agentID, Trial: r.Trial, Own: r.Own, HeldTrial: r.HeldTrial,
			HeldOwn: r.HeldOwn, Charged: r.Charged, Refunded: r.Refunded, Recharged: r.Recharged, Funded: r.Funded,
			Credited: r.Credited, LiveSessions: int64(r.LiveSessions), SpentDay: r.SpentDay, SpentToday: r.SpentToday,
			Entries: w.entries})
	}
	return rows
}

func (b *batch) askInserted(rows []sessionRow) {
	if len(rows) == 0 {
		return
	}
	nth := map[string]int64{}
	b.pipe.Ask("insert sessions", insertSessions, insertedMany.arguments(len(rows), func(i int) []any {
		nth[rows[i].AgentID]++
		return append(columnValues(&rows[i]), nth[rows[i].AgentID])
	}), nil)
}

// changedSessions returns the changed rows of sessions and of their health.
func (b *batch) changedSessions() (puts []putRow, plans []planRow, healths []healthRow) {
	for _, id := range slices.Sorted(maps.Keys(b.sessions.base)) {
		s := b.sessions.base[id]
		if s.dirty {
			puts = append(puts, putRow{id, s.row.sessionState})
		}
		if s.planned {
			plans = append(plans, planRow{id, s.settleAt})
		}
	}
	for _, h := range b.health.base {
		if h.dirty {
			healths = append(healths, healthRow{h.seq, h.state})
		}
	}
	slices.SortFunc(healths, func(x, y healthRow) int { return cmp.Compare(x.Session, y.Session) })
	return puts, plans, healths
}

func (b *batch) askChunks(rows []chunkRow) {
	if len(rows) == 0 {
		return
	}
	behind := map[int64]int64{}
	b.pipe.Ask("append events", insertChunks, chunkMany.arguments(len(rows), func(i int) []any {
		behind[rows[i].Session] += rows[i].N
		return append(columnValues(&rows[i]), behind[rows[i].Session])
	}), nil)
}

// keptCalls returns the keys that were stored.
func (b *batch) keptCalls() (rows []callRow) {
	for _, c := range b.calls.base {
		if c.dirty {
			rows = append(rows, callRow{c.AgentID, c.Path, c.Key, bytesOf(c.Request), c.Resource,
				int64(outcomeStatus(c.Outcome)), micros(c.CreatedAt)})
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

// hourOf is the key of an hour.
func hourOf(agentID, sessionID string, hour time.Time) hourKey {
	return hourKey{agentID, sessionID, micros(hour)}
}
