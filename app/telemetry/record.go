package telemetry

import (
	"context"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// accepted is the result of the events of a call.
type accepted struct {
	ids      []string // of the events
	results  []EventResult
	sessions map[of]*reportedOn
}

// take stores valid events in one transaction.
func (t *Service) take(ctx context.Context, agentID string, events []ReportedEvent) (out accepted, err error) {
	order := make([]of, 0, 16)
	count := make(map[of]int, 16)
	out.ids = make([]string, len(events))
	for i, e := range events {
		on := of{e.SessionID, e.Worker}
		if count[on]++; count[on] == 1 {
			order = append(order, on)
		}
		out.ids[i] = t.ids.New(eventlog.IDPrefix)
	}
	// A transaction may run again, but evidence is claimed once.
	claims := make([]*health.Event, len(events))
	named := ports.WithReadSet(ctx, ports.ReadSet{Agent: agentID, Health: sessionsOf(order)})
	err = t.store.Update(named, func(ctx context.Context, tx repos) error {
		now := t.clock.Now()
		if out.sessions, err = reportedOf(ctx, tx, agentID, order, events); err != nil {
			return err
		}
		for on, h := range out.sessions {
			h.events = make([]eventlog.Event, 0, count[on])
		}
		out.results = make([]EventResult, len(events))
		var tally ports.Tally
		for i, e := range events {
			h := out.sessions[of{e.SessionID, e.Worker}]
			refusal := rejection(h)
			out.results[i] = EventResult{SessionID: e.SessionID, Err: refusal}
			if refusal == nil {
				t.record(h, e, out.ids[i], &claims[i], &tally, now)
			}
		}
		return t.storeReported(ctx, tx, agentID, order, out.sessions, tally, now)
	})
	for i, c := range claims {
		if c != nil && (err != nil || out.results[i].Err != nil) {
			t.observer.unclaim(of{events[i].SessionID, events[i].Worker}, *c)
		}
	}
	return out, err
}

// record adds one event to a session. Evidence that waits for it is claimed.
func (t *Service) record(h *reportedOn, e ReportedEvent, id string, claim **health.Event, tally *ports.Tally,
	now time.Time) {
	event := e.Event(now)
	if *claim == nil && event.Scored() {
		if c, ok := t.observer.claim(of{e.SessionID, e.Worker}, event); ok {
			*claim = &c
		}
	}
	if *claim != nil {
		h.State.ObserveMatched(**claim)
	}
	tally.Reported++
	if h.State.Report(event) {
		countEvidence(tally, event)
	}
	h.events = append(h.events, eventOf(e, id, event))
}

// rejection returns why an event for a session is not accepted; nil if it is.
func rejection(h *reportedOn) *domain.Error {
	switch {
	case h == nil:
		return session.ErrNotFound
	case h.Status.Over():
		return session.ErrOver.Msgf("the session is %s; it takes no more events", h.Status)
	}
	return nil
}

// storeReported stores what the events changed.
func (t *Service) storeReported(ctx context.Context, tx repos, agentID string, order []of,
	sessions map[of]*reportedOn, tally ports.Tally, now time.Time) error {
	if tally.Reported == 0 {
		return nil
	}
	for _, id := range order {
		h := sessions[id]
		if h == nil || len(h.events) == 0 {
			continue
		}
		if err := notify.HealthChanged(ctx, tx, t.ids, now, agentID, id.session, id.worker, &h.State); err != nil {
			return err
		}
		if err := h.put(ctx, tx, id.session); err != nil {
			return err
		}
		if err := tx.Events().Append(ctx, id.session, h.events); err != nil {
			return err
		}
	}
	return tx.Counters().Add(ctx, agentID, tally)
}

// eventOf returns the entry of the event log for a report.
func eventOf(e ReportedEvent, id string, event health.Event) eventlog.Event {
	f := eventlog.Event{ID: id, At: event.At, Source: eventlog.Agent, Type: e.Type, TargetHost: e.TargetHost,
		StatusCode: event.StatusCode, LatencyMS: -1, Message: e.ErrorMessage, Worker: e.Worker}
	if event.HasLatency {
		f.LatencyMS = event.LatencyMS
	}
	if e.OccurredAt != nil {
		f.OccurredAt = *e.OccurredAt
	}
	return f
}
