package telemetry

import (
	"slices"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/ratelimit"
)

// Events of connections that moved nothing cost their agent nothing, so what they take in
// the database is bounded: equal ones between two flushes are one event, hosts are cut, and a
// session and an agent are limited by minute and by day. What is beyond is counted in one
// event of the session a minute, without a host.
const (
	freeHost        = 64     // bytes of a host
	freeFlush       = 32     // different ones of a session between two flushes
	sessionFree     = 60     // of a session a minute
	sessionFreeDay  = 2_000  // a UTC day
	agentFree       = 300    // of all sessions of an agent a minute
	agentFreeDay    = 10_000 // a UTC day
	freeRestEvery   = time.Minute
	maxFreeBudgets  = 200_000 // agents and sessions that are counted on one day
	freeBudgetsKeep = 24 * time.Hour
)

// sameness is what equal events share.
type sameness struct {
	kind, host, code string
	status           int
}

// free holds the events of a session that moved nothing.
type free struct {
	events []eventlog.Event
	index  map[sameness]int // in events
	rest   eventlog.Event   // those beyond the bounds
	restAt time.Time        // when rest was stored last
}

// add counts an event, as one of its own if the budget allows it.
func (f *free) add(e eventlog.Event, allowed func() bool) {
	if len(e.TargetHost) > freeHost {
		e.TargetHost = e.TargetHost[:freeHost]
	}
	e.Count = max(e.Count, 1)
	key := sameness{e.Type, e.TargetHost, e.Code, e.StatusCode}
	if i, known := f.index[key]; known {
		f.events[i].Count += e.Count
		f.events[i].At = e.At
		return
	}
	if len(f.events) < freeFlush && allowed() {
		if f.index == nil {
			f.index = map[sameness]int{}
		}
		f.index[key] = len(f.events)
		f.events = append(f.events, e)
		return
	}
	count := f.rest.Count + e.Count
	f.rest = e
	f.rest.TargetHost, f.rest.Count = "", count
}

// takeDue removes and returns what is to be stored.
func (f *free) takeDue(now time.Time, allowed func() bool) []eventlog.Event {
	events := f.events
	f.events, f.index = nil, nil
	if f.rest.Count > 0 && now.Sub(f.restAt) >= freeRestEvery && allowed() {
		events = append(events, f.rest)
		f.rest, f.restAt = eventlog.Event{}, now
	}
	return events
}

// idle reports whether nothing is left to store or to cache.
func (f *free) idle(now time.Time) bool {
	return len(f.events) == 0 && f.rest.Count == 0 && now.Sub(f.restAt) >= freeRestEvery
}

// freeBudget is what one session or agent may still store.
type freeBudget struct {
	day  int64 // since 1970
	used int
	rate ratelimit.State
}

// freeBudgets counts by the ids of sessions and agents.
type freeBudgets map[string]freeBudget

// allow counts one event of a session, unless the session or its agent has too many.
func (b freeBudgets) allow(session, agent string, now time.Time) bool {
	if len(b) > maxFreeBudgets {
		b.trim(now)
	}
	if len(b) > maxFreeBudgets {
		return false
	}
	s, inSession := b[session].spend(now, sessionFree, sessionFreeDay)
	a, inAgent := b[agent].spend(now, agentFree, agentFreeDay)
	if !inSession || !inAgent {
		return false
	}
	b[session], b[agent] = s, a
	return true
}

// spend returns the budget after one event, and whether the event is within it.
func (f freeBudget) spend(now time.Time, perMinute, perDay int) (freeBudget, bool) {
	if day := now.Unix() / int64(freeBudgetsKeep/time.Second); day != f.day {
		f.day, f.used = day, 0
	}
	rate, d := ratelimit.Limit{PerMinute: perMinute}.Take(f.rate, now, 1)
	f.rate = rate
	f.used++
	return f, d.Allowed && f.used <= perDay
}

// trim forgets the budgets of other days.
func (b freeBudgets) trim(now time.Time) {
	day := now.Unix() / int64(freeBudgetsKeep/time.Second)
	for id, f := range b {
		if f.day != day {
			delete(b, id)
		}
	}
}

// inOrder sorts events by time.
func inOrder(events []eventlog.Event) {
	slices.SortStableFunc(events, func(a, b eventlog.Event) int { return a.At.Compare(b.At) })
}
