package telemetry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// intake is a call on its way to the fold.
type intake struct {
	events  []queuedEvent // as they were sent; a claim is made once, while a unit may run again
	order   []subject
	call    queuedCall // the accepted ones
	found   map[subject]*reportedOn
	results []EventResult
	folded  bool // by the queue: found is older than the fold
}

// acceptEvents has the valid events of a call folded: within the call or, with a queue, by whichever replica folds it.
func (s *Service) acceptEvents(ctx context.Context, agentID string, events []ReportedEvent) (*intake, error) {
	in := &intake{events: make([]queuedEvent, len(events)), call: queuedCall{Version: callVersion, Agent: agentID}}
	in.call.Events = make([]*queuedEvent, len(events))
	for i, e := range events {
		q := &in.events[i]
		*q = queuedEvent{Session: e.SessionID, Worker: e.Worker, ID: s.ids.New(eventlog.IDPrefix), Type: e.Type,
			Status: e.StatusCode, Latency: e.LatencyMS, Host: e.TargetHost, Message: e.ErrorMessage}
		if e.OccurredAt != nil {
			q.OccurredAt = e.OccurredAt.UnixMicro()
		}
		in.call.Events[i] = q
	}
	in.order = orderOf(in.call)
	queued, err := s.foldQueued(ctx, in)
	if err == nil && !queued { // in the unit that admits it
		err = s.store.Update(ctx, in.reads(), func(ctx context.Context, tx repos) error {
			if err := s.admit(ctx, tx, in); err != nil {
				return err
			}
			return s.foldCalls(ctx, tx, []queuedCall{in.call}, in.order, in.found)
		})
	}
	for i := range in.events {
		if err != nil || in.results[i].Err != nil {
			s.observer.unclaim(&in.events[i])
		}
	}
	return in, err
}

// orderOf lists what the events of calls are about, each once, in one order of locks for all replicas.
func orderOf(calls ...queuedCall) []subject {
	order, seen := make([]subject, 0, 16), make(map[subject]bool, 16)
	for _, c := range calls {
		for _, e := range c.Events {
			if on := e.on(); !seen[on] {
				seen[on] = true
				order = append(order, on)
			}
		}
	}
	slices.SortFunc(order, subject.compare)
	return order
}

// sessionsOf lists the sessions of an order, each once.
func sessionsOf(order []subject) []string {
	ids := make([]string, 0, len(order))
	for i, on := range order {
		if i == 0 || on.session != order[i-1].session {
			ids = append(ids, on.session)
		}
	}
	return ids
}

// foldQueued publishes a call and waits until it is folded, or until FoldWait has passed: then what was found
// gets the events, as the fold will store it. It returns false without a queue, and for a call too large for it.
func (s *Service) foldQueued(ctx context.Context, in *intake) (queued bool, err error) {
	if s.queue == nil {
		return false, nil
	}
	err = s.store.View(ctx, in.reads(), func(ctx context.Context, tx repos) error { return s.admit(ctx, tx, in) })
	if err != nil || len(in.call.Events) == 0 {
		return true, err
	}
	body, err := in.call.encode()
	if err != nil {
		return true, err
	}
	place, err := s.queue.Publish(ctx, in.call.Agent, body)
	if err != nil {
		if errors.Is(err, ports.ErrCallTooLarge) {
			return false, nil
		}
		return true, err
	}
	within, cancel := context.WithTimeout(ctx, s.FoldWait)
	defer cancel()
	if in.folded = s.queue.Folded(within, place); !in.folded {
		foldCall(in.call, in.found, &ports.Tally{})
	}
	return true, nil
}

// reads names what the events are about.
func (in *intake) reads() ports.ReadSet {
	return ports.ReadSet{Agent: in.call.Agent, Health: sessionsOf(in.order)}
}

// admit reads what the events of a call are about, and accepts each that may be folded. Evidence of the gateway
// that one matches goes with it. An event of a worker that is not there refuses the whole call.
func (s *Service) admit(ctx context.Context, tx repos, in *intake) (err error) {
	if in.found, err = readReported(ctx, tx, in.call.Agent, in.order); err != nil {
		return err
	}
	now := s.clock.Now()
	in.call.At, in.call.Events = now.UnixMicro(), in.call.Events[:0]
	in.results = make([]EventResult, len(in.events))
	for i := range in.events {
		e := &in.events[i]
		h := in.found[e.on()]
		if h == nil && in.found[subject{e.Session, ""}] != nil {
			return unknownWorker(i, len(in.events))
		}
		in.results[i] = EventResult{SessionID: e.Session, Err: rejection(h)}
		if in.results[i].Err == nil {
			s.observer.claim(e, now)
			in.call.Events = append(in.call.Events, e)
		}
	}
	return nil
}

// readReported reads what events are about. What is not there is not in the map.
func readReported(ctx context.Context, tx repos, agentID string, order []subject) (map[subject]*reportedOn, error) {
	names := map[string][]string{}
	for _, on := range order {
		if on.worker != "" {
			names[on.session] = append(names[on.session], on.worker)
		}
	}
	reads, err := tx.Health().Get(ctx, agentID, sessionsOf(order))
	if err != nil {
		return nil, err
	}
	found := make(map[subject]*reportedOn, len(order))
	for id, r := range reads {
		found[subject{id, ""}] = &reportedOn{HealthRead: r}
	}
	for _, on := range order {
		r, owned := reads[on.session]
		if !owned || on.worker == "" || found[on] != nil {
			continue
		}
		states, err := tx.Workers().Health(ctx, on.session, names[on.session]...)
		if err != nil {
			return nil, err
		}
		for _, s := range states {
			read := *r
			read.State = s.State
			found[subject{on.session, s.Name}] = &reportedOn{HealthRead: &read, id: s.ID}
		}
	}
	return found, nil
}

// unknownWorker returns the refusal of a call with an event, the one with index i, of a worker that is not there.
func unknownWorker(i, events int) error {
	field := "worker"
	if events > 1 {
		field = fmt.Sprintf("events[%d].worker", i)
	}
	return domain.InvalidField(field, "is not a worker of the session; its first use makes it, a report does not")
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

// answer is the health after the one event of a call. It is read after the fold, so it is what every replica
// answers from then on.
func (s *Service) answer(ctx context.Context, in *intake) (v health.Verdict, err error) {
	if in.folded {
		err = s.store.View(ctx, in.reads(), func(ctx context.Context, tx repos) (err error) {
			in.found, err = readReported(ctx, tx, in.call.Agent, in.order)
			return err
		})
	}
	if err != nil {
		return v, err
	}
	h := in.found[in.events[0].on()]
	if h == nil { // the session or worker was removed meanwhile
		return v, session.ErrNotFound
	}
	return h.State.Verdict(s.clock.Now(), h.Type == session.Static), nil
}
