package storage

import (
	"maps"
	"slices"
	"time"

	"agentproxy/adapters/storage/column"
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
	events   map[int64][]eventlog.Event // of sessions, in the order in which they were appended
	counters map[string]ports.Tally
	hours    map[hourKey]ports.Totals
	changes  []changeRow

	outbox     []outboxEvent
	deliveries []batchDelivery
	marks      map[markKey]int64
	jobs       []ports.Job
}

type hourKey struct {
	agentID, sessionID string
	hour               int64
}

// changeRow is a row of changes.
type changeRow struct {
	AgentID, SessionID string
	At                 int64
}

// outboxEvent is a row of outbox that a batch inserts, batchDelivery one of webhook_deliveries, and
// mark one of webhook_marks.
type (
	outboxEvent struct {
		ID, AgentID, Type string
		At                int64
		Data              string
	}
	batchDelivery struct {
		ID, AgentID, EventID, Type, Status string
		Attempts, Tries, LastStatusCode    int64
		LastError                          string
		NextAttemptAt, CreatedAt           int64
	}
	batchMark struct {
		AgentID, What string
		Mark          int64
	}
)

// markKey is what an agent is notified of once.
type markKey struct{ agentID, what string }

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
	for session, added := range o.events {
		w.append(session, added)
	}
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

// addNotices adds what a unit has notified of.
func (w *batchWrites) addNotices(o *batchWrites) {
	w.outbox = append(w.outbox, o.outbox...)
	w.deliveries = append(w.deliveries, o.deliveries...)
	w.jobs = append(w.jobs, o.jobs...)
	if w.marks == nil {
		w.marks = map[markKey]int64{}
	}
	maps.Copy(w.marks, o.marks)
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

// hourOf returns the key of an hour.
func hourOf(agentID, sessionID string, hour time.Time) hourKey {
	return hourKey{agentID, sessionID, column.Micros(hour)}
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
