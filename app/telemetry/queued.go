package telemetry

import (
	"context"
	"errors"
	"time"

	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// reportQueued is like Report through the queue. The health in the answer is read after the fold,
// so it is what every replica answers from then on. Where the fold is late it is the stored
// health with this event.
func (t *Service) reportQueued(ctx context.Context, agentID string, e ReportedEvent) (Reported, error) {
	out, call, err := t.enqueue(ctx, agentID, []ReportedEvent{e})
	if err != nil {
		return Reported{}, err
	}
	if refusal := out.results[0].Err; refusal != nil {
		return Reported{}, refusal
	}
	on := of{e.SessionID, e.Worker}
	if call.folded {
		if err := t.read(ctx, agentID, []of{on}, []ReportedEvent{e}, &out); err != nil {
			return Reported{}, err
		}
	}
	h := out.sessions[on]
	if h == nil { // the session or worker was removed meanwhile
		return Reported{}, session.ErrNotFound
	}
	if call.late {
		call.Events[0].applyTo(h, time.UnixMicro(call.At))
	}
	return Reported{EventID: out.ids[0], Verdict: h.State.Verdict(t.clock.Now(), h.Type == session.Static)}, nil
}

// batchQueued is like Batch through the queue.
func (t *Service) batchQueued(ctx context.Context, agentID string, events []ReportedEvent) ([]EventResult, error) {
	out, _, err := t.enqueue(ctx, agentID, events)
	return out.results, err
}

// enqueued is a call that the queue has. Neither folded nor late is one that the queue did not take,
// and that was stored at once.
type enqueued struct {
	queuedCall
	folded, late bool
}

// enqueue checks the events of a call, publishes those that are accepted and waits until they are
// folded, or until FoldWait has passed.
func (t *Service) enqueue(ctx context.Context, agentID string, events []ReportedEvent) (
	out accepted, call enqueued, err error,
) {
	order := orderOf(events)
	if err := t.read(ctx, agentID, order, events, &out); err != nil {
		return out, call, err
	}
	out.ids, out.results = make([]string, len(events)), make([]EventResult, len(events))
	call.queuedCall = queuedCall{Version: callVersion, Agent: agentID, At: t.clock.Now().UnixMicro()}
	for i, e := range events {
		h := out.sessions[of{e.SessionID, e.Worker}]
		out.results[i] = EventResult{SessionID: e.SessionID, Err: rejection(h)}
		if out.results[i].Err == nil {
			out.ids[i] = t.ids.New(eventlog.IDPrefix)
			call.Events = append(call.Events, t.queued(e, out.ids[i], call.At))
		}
	}
	if len(call.Events) == 0 {
		return out, call, nil
	}
	place, err := t.publish(ctx, call.queuedCall)
	if err != nil {
		t.unclaim(call.queuedCall)
	}
	if errors.Is(err, ports.ErrCallTooLarge) { // it is stored at once, as without a queue
		out, err = t.take(ctx, agentID, events)
		return out, call, err
	}
	if err != nil {
		return out, call, err
	}
	within, cancel := context.WithTimeout(ctx, t.FoldWait)
	defer cancel()
	call.folded = t.queue.Folded(within, place)
	call.late = !call.folded
	return out, call, nil
}

func (t *Service) publish(ctx context.Context, call queuedCall) (ports.QueuePlace, error) {
	body, err := call.encode()
	if err != nil {
		return ports.QueuePlace{}, err
	}
	return t.queue.Publish(ctx, call.Agent, body)
}

// read reads what events are about.
func (t *Service) read(
	ctx context.Context, agentID string, order []of, events []ReportedEvent, out *accepted,
) error {
	named := ports.WithReadSet(ctx, ports.ReadSet{Agent: agentID, Health: sessionsOf(order)})
	return t.store.View(named, func(ctx context.Context, tx repos) (err error) {
		out.sessions, err = reportedOf(ctx, tx, agentID, order, events)
		return err
	})
}

// orderOf lists what events are about, each once and in their order.
func orderOf(events []ReportedEvent) []of {
	order, seen := make([]of, 0, 16), make(map[of]bool, 16)
	for _, e := range events {
		if on := (of{e.SessionID, e.Worker}); !seen[on] {
			seen[on] = true
			order = append(order, on)
		}
	}
	return order
}

// queued returns an event as it is published. Evidence of the gateway that it matches goes with it.
func (t *Service) queued(e ReportedEvent, id string, at int64) queuedEvent {
	q := queuedEvent{Session: e.SessionID, Worker: e.Worker, ID: id, Type: e.Type, Status: e.StatusCode,
		Latency: e.LatencyMS, Host: e.TargetHost, Message: e.ErrorMessage}
	if e.OccurredAt != nil {
		q.OccurredAt = e.OccurredAt.UnixMicro()
	}
	if event := e.Event(time.UnixMicro(at)); event.Scored() {
		if c, ok := t.observer.claim(of{e.SessionID, e.Worker}, event); ok {
			q.Claim = &queuedClaim{Type: string(c.Type), Status: c.StatusCode, Host: c.Host, At: c.At.UnixMicro()}
		}
	}
	return q
}

// unclaim puts back the evidence of a call that was not published.
func (t *Service) unclaim(call queuedCall) {
	for _, e := range call.Events {
		if e.Claim != nil {
			t.observer.unclaim(of{e.Session, e.Worker}, e.Claim.event())
		}
	}
}

// applyTo adds an event to a state.
func (e queuedEvent) applyTo(h *reportedOn, at time.Time) (event health.Event, scored bool) {
	event = e.report().Event(at)
	if e.Claim != nil {
		h.State.ObserveMatched(e.Claim.event())
	}
	return event, h.State.Report(event)
}
