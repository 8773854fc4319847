package telemetry

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Fold stores what calls of a queue reported, and how far the queue then is folded, in one unit. Calls
// that were folded before are skipped, so a call may come any number of times. It returns how far the
// queue is folded; without calls it just reads that.
func (t *Service) Fold(ctx context.Context, in ports.QueuedCalls) (at ports.FoldCursor, err error) {
	calls, order := make([]queuedCall, len(in.Calls)), []of{}
	seen := map[of]bool{}
	agent := in.Queue
	for i, c := range in.Calls {
		if c.Body == nil { // set aside
			continue
		}
		if calls[i], err = decodeCall(c.Body); err != nil {
			return at, err
		}
		agent = calls[i].Agent
		for _, e := range calls[i].Events {
			if on := (of{e.Session, e.Worker}); !seen[on] {
				seen[on] = true
				order = append(order, on)
			}
		}
	}
	slices.SortFunc(order, of.compare) // one order of locks for all replicas
	named := ports.WithReadSet(ctx, ports.ReadSet{Agent: agent, Health: sessionsOf(order), Fold: in.Queue})
	err = t.store.Update(named, func(ctx context.Context, tx repos) error {
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
		if err := t.foldCalls(ctx, tx, calls[first:], order); err != nil {
			return err
		}
		at.Seq = in.Calls[len(in.Calls)-1].Seq
		return tx.Folds().Put(ctx, in.Queue, at)
	})
	return at, err
}

// foldCalls adds the events of calls to what they are about. Events of a session or worker that is
// gone are dropped; those of a session that ended since they were accepted count.
func (t *Service) foldCalls(ctx context.Context, tx repos, calls []queuedCall, order []of) error {
	if len(order) == 0 {
		return nil
	}
	found, err := readReported(ctx, tx, "", order)
	if err != nil {
		return err
	}
	tallies := map[string]ports.Tally{}
	for _, c := range calls {
		tally := tallies[c.Agent]
		touched := foldCall(c, found, &tally)
		tallies[c.Agent] = tally
		for _, on := range touched {
			h := found[on]
			if h.Status.Over() {
				continue
			}
			err := notify.HealthChanged(ctx, tx, t.ids, t.clock.Now(), c.Agent, on.session, on.worker, &h.State)
			if err != nil {
				return err
			}
		}
	}
	for _, on := range order {
		if err := storeFolded(ctx, tx, on, found[on]); err != nil {
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
func foldCall(c queuedCall, found map[of]*reportedOn, tally *ports.Tally) (touched []of) {
	for _, e := range c.Events {
		on := of{e.Session, e.Worker}
		h := found[on]
		if h == nil || h.AgentID != c.Agent {
			continue
		}
		event, scored := e.applyTo(h, time.UnixMicro(c.At).UTC())
		tally.Reported++
		if scored {
			countEvidence(tally, event)
		}
		reported := ReportedEvent{SessionID: e.Session, Worker: e.Worker, Report: e.report()}
		h.events = append(h.events, eventOf(reported, e.ID, event))
		if !slices.Contains(touched, on) {
			touched = append(touched, on)
		}
	}
	return touched
}

// storeFolded stores the state and the new events of a session or worker.
func storeFolded(ctx context.Context, tx repos, on of, h *reportedOn) error {
	if h == nil || len(h.events) == 0 {
		return nil
	}
	err := h.put(ctx, tx, on.session)
	if err == nil {
		err = tx.Events().Append(ctx, on.session, h.events)
	}
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}
