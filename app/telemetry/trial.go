package telemetry

import (
	"context"
	"sync"
	"unicode/utf8"

	"agentproxy/ports"
)

// What is kept of the reports of an account on trial, which cost it nothing.
const (
	trialMessage = 200   // characters of an error_message
	trialEvents  = 1_000 // of a session, the newest
	maxTrimmed   = 50_000
)

// OnTrial takes what accounts on trial report: of a session the newest events are kept, and of a message its
// beginning.
type OnTrial struct{ *Service }

// Report is like Service.Report.
func (t OnTrial) Report(ctx context.Context, agentID string, e ReportedEvent) (Reported, error) {
	events := []ReportedEvent{e}
	if e.Issues(t.clock.Now()) == nil { // what is wrong as it was sent is refused
		shorten(events)
	}
	out, err := t.Service.Report(ctx, agentID, events[0])
	if err != nil {
		return out, err
	}
	return out, t.trim(ctx, events)
}

// Batch is like Service.Batch.
func (t OnTrial) Batch(ctx context.Context, agentID string, events []ReportedEvent) ([]EventResult, error) {
	now, valid := t.clock.Now(), true
	for i := range events {
		valid = valid && events[i].Issues(now) == nil
	}
	if valid {
		shorten(events)
	}
	results, err := t.Service.Batch(ctx, agentID, events)
	if err != nil {
		return results, err
	}
	stored := make([]ReportedEvent, 0, len(events))
	for i, r := range results {
		if r.Err == nil {
			stored = append(stored, events[i])
		}
	}
	return results, t.trim(ctx, stored)
}

func shorten(events []ReportedEvent) {
	for i := range events {
		if e := &events[i]; utf8.RuneCountInString(e.ErrorMessage) > trialMessage {
			e.ErrorMessage = string([]rune(e.ErrorMessage)[:trialMessage])
		}
	}
}

// trim counts events that were stored, and removes older ones of a session each time that trialEvents were added.
func (t OnTrial) trim(ctx context.Context, stored []ReportedEvent) error {
	for _, id := range t.added.count(stored) {
		err := t.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			return tx.Events().KeepNewest(ctx, id, trialEvents)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addedEvents counts the events of sessions since older ones were removed, of maxTrimmed sessions at most.
type addedEvents struct {
	mu sync.Mutex
	of map[string]int
}

// count adds events, and returns the sessions that are to be trimmed.
func (a *addedEvents) count(events []ReportedEvent) (due []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.of == nil || len(a.of) > maxTrimmed {
		a.of = map[string]int{}
	}
	for _, e := range events {
		if a.of[e.SessionID]++; a.of[e.SessionID] == trialEvents {
			due = append(due, e.SessionID)
			delete(a.of, e.SessionID)
		}
	}
	return due
}
