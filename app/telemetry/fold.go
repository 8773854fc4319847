package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Fold stores what calls of a queue reported, and how far the queue then is folded, in one unit. Calls
// that were folded before are skipped, so a call may come any number of times. It returns how far the
// queue is folded; without calls it just reads that.
func (s *Service) Fold(ctx context.Context, in ports.QueuedCalls) (at ports.FoldCursor, err error) {
	calls := make([]queuedCall, len(in.Calls))
	agent := in.Queue
	for i, c := range in.Calls {
		if c.Body == nil { // set aside
			continue
		}
		if calls[i], err = decodeCall(c.Body); err != nil {
			return at, err
		}
		agent = calls[i].Agent
	}
	order := orderOf(calls...)
	reads := ports.ReadSet{Agent: agent, Health: sessionsOf(order), Fold: in.Queue}
	err = s.store.Update(ctx, reads, func(ctx context.Context, tx repos) error {
		if at, err = tx.Folds().Cursor(ctx, in.Queue); err != nil {
			return err
		}
		if at.Stream != in.Stream {
			at = ports.FoldCursor{Stream: in.Stream}
		}
		first := slices.IndexFunc(in.Calls, func(c ports.QueuedCall) bool { return c.Seq > at.Seq })
		if first < 0 {
			return nil
		}
		found, err := readReported(ctx, tx, "", order)
		if err == nil {
			err = s.foldCalls(ctx, tx, calls[first:], order, found)
		}
		if err != nil {
			return err
		}
		at.Seq = in.Calls[len(in.Calls)-1].Seq
		return tx.Folds().Put(ctx, in.Queue, at)
	})
	return at, err
}

// foldCalls adds the events of calls to what was found of what they are about, and stores it: no report reaches
// health in another way. Events of a session or worker that is gone are dropped; those of a session that ended
// since they were accepted count.
func (s *Service) foldCalls(
	ctx context.Context, tx repos, calls []queuedCall, order []subject, found map[subject]*reportedOn,
) error {
	tallies := map[string]ports.Tally{}
	for _, c := range calls {
		tally := tallies[c.Agent]
		touched := foldCall(c, found, &tally)
		tallies[c.Agent] = tally
		for _, on := range touched {
			if err := found[on].announce(ctx, tx, s.ids, s.clock.Now(), on); err != nil {
				return err
			}
		}
	}
	for _, on := range order {
		h := found[on]
		if h == nil || len(h.events) == 0 {
			continue
		}
		if err := h.store(ctx, tx, on.session); err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	maps.DeleteFunc(tallies, func(_ string, tally ports.Tally) bool { return tally.Reported == 0 })
	for _, agent := range slices.Sorted(maps.Keys(tallies)) {
		if err := tx.Counters().Add(ctx, agent, tallies[agent]); err != nil {
			return err
		}
	}
	return nil
}

// foldCall adds the events of a call, and returns what they were about, each once.
func foldCall(c queuedCall, found map[subject]*reportedOn, tally *ports.Tally) (touched []subject) {
	count := make(map[subject]int, 16)
	for _, e := range c.Events {
		on := e.on()
		if h := found[on]; h != nil && h.AgentID == c.Agent {
			if count[on]++; count[on] == 1 {
				touched = append(touched, on)
			}
		}
	}
	for _, on := range touched {
		found[on].events = slices.Grow(found[on].events, count[on])
	}
	for _, e := range c.Events {
		if count[e.on()] == 0 {
			continue
		}
		h, event := found[e.on()], e.event(time.UnixMicro(c.At).UTC())
		if e.Claim != nil {
			h.State.ObserveMatched(e.Claim.event())
		}
		tally.Reported++
		if h.State.Report(event) { // it is evidence
			tally.Scored++
			if event.Good() {
				tally.Good++
			}
		}
		h.events = append(h.events, e.entry(event))
	}
	return touched
}

// entry returns the entry of the event log.
func (e *queuedEvent) entry(event health.Event) eventlog.Event {
	f := eventlog.Event{ID: e.ID, At: event.At, Source: eventlog.Agent, Type: e.Type, TargetHost: e.Host,
		StatusCode: event.StatusCode, LatencyMS: -1, Message: e.Message, Worker: e.Worker}
	if event.HasLatency {
		f.LatencyMS = event.LatencyMS
	}
	if e.OccurredAt != 0 {
		f.OccurredAt = time.UnixMicro(e.OccurredAt).UTC()
	}
	return f
}

// announce notifies of a risk level that has changed for good, unless the session is over.
func (h *reportedOn) announce(ctx context.Context, tx repos, ids ports.IDs, now time.Time, on subject) error {
	if h.Status.Over() {
		return nil
	}
	about := notify.Subject{AgentID: h.AgentID, SessionID: on.session, Worker: on.worker}
	return notify.HealthChanged(ctx, tx, ids, now, about, &h.State)
}

// store stores the state, and appends the new events to the log.
func (h *reportedOn) store(ctx context.Context, tx repos, sessionID string) (err error) {
	if h.id == 0 {
		err = tx.Health().Put(ctx, sessionID, h.State)
	} else {
		err = tx.Workers().PutHealth(ctx, h.id, h.State, h.failed)
	}
	if err == nil && len(h.events) > 0 {
		err = tx.Events().Append(ctx, sessionID, h.events)
	}
	return err
}
