package telemetry

import (
	"context"
	"slices"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Anyone may send a user name and a wrong password, so what that costs is bounded: a process counts
// failures of guessedSessions at a time, whether they exist or not, and looks up and stores each once in
// guessEvery. What is beyond is not counted.
const (
	guessedSessions = 64
	guessEvery      = time.Minute
	guessAfter      = 2 * time.Second // the first of them, so that those of one attempt are one event
)

// guess is the wrong passwords of a session since the last event.
type guess struct {
	last  eventlog.Event // with the number of failures; none are left if that is 0
	since time.Time      // the first of them
	asked time.Time      // when the session was looked up; zero: not yet
}

// guesses counts wrong passwords by the session of their user name.
type guesses map[string]*guess

// add counts one. The caller holds the lock of the Observer.
func (g guesses) add(id string, e eventlog.Event) {
	if g[id] == nil {
		if len(g) >= guessedSessions {
			return
		}
		g[id] = &guess{}
	}
	if e.Count = g[id].last.Count + 1; e.Count == 1 {
		g[id].since = e.At
	}
	g[id].last = e
}

// due returns the sessions whose failures are to be stored, and forgets those without any.
func (g guesses) due(now time.Time) (ids []string) {
	for id, x := range g {
		switch {
		case now.Sub(x.asked) < guessEvery:
		case x.last.Count == 0:
			delete(g, id)
		case now.Sub(x.since) < guessAfter:
		default:
			x.asked = now
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// takeFailures returns the failures of a session, and counts anew.
func (g guesses) takeFailures(id string) eventlog.Event {
	e := g[id].last
	g[id].last = eventlog.Event{}
	return e
}

// observeGuess counts a wrong password of a user name.
func (o *Observer) observeGuess(ob traffic.Observation, e eventlog.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.guesses.add(ob.SessionID, e)
}

// logGuesses makes events of the wrong passwords of sessions that live. Those of others are dropped.
func (o *Observer) logGuesses(ctx context.Context, now time.Time) error {
	o.mu.Lock()
	ids := o.guesses.due(now)
	o.mu.Unlock()
	if len(ids) == 0 {
		return nil
	}
	var found map[string]*ports.HealthRead
	err := o.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		found, err = tx.Health().Get(ctx, "", ids)
		return err
	})
	if err != nil {
		return err
	}
	for _, id := range ids {
		o.mu.Lock()
		e := o.guesses.takeFailures(id)
		o.mu.Unlock()
		if read, ok := found[id]; ok && !read.Status.Over() {
			o.add(id, read.AgentID, e, health.Event{})
		}
	}
	return nil
}
