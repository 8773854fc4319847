package telemetry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/ports"
)

// orderOf lists what the events of calls are about, each once, in one order of locks for all replicas.
func orderOf(calls ...queuedCall) []of {
	order, seen := make([]of, 0, 16), make(map[of]bool, 16)
	for _, c := range calls {
		for _, e := range c.Events {
			if on := e.on(); !seen[on] {
				seen[on] = true
				order = append(order, on)
			}
		}
	}
	slices.SortFunc(order, of.compare)
	return order
}

// sessionsOf lists the sessions of an order, each once.
func sessionsOf(order []of) []string {
	ids := make([]string, 0, len(order))
	for i, on := range order {
		if i == 0 || on.session != order[i-1].session {
			ids = append(ids, on.session)
		}
	}
	return ids
}

// readReported reads what events are about. What is not there is not in the map.
func readReported(ctx context.Context, tx repos, agentID string, order []of) (map[of]*reportedOn, error) {
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
	found := make(map[of]*reportedOn, len(order))
	for id, r := range reads {
		found[of{id, ""}] = &reportedOn{HealthRead: r}
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
			read := r
			read.State = s.State
			found[of{on.session, s.Name}] = &reportedOn{HealthRead: read, id: s.ID}
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

// announce notifies of a risk level that has changed for good, unless the session is over.
func (h *reportedOn) announce(ctx context.Context, tx repos, ids ports.IDs, now time.Time, on of) error {
	if h.Status.Over() {
		return nil
	}
	subject := notify.Subject{AgentID: h.AgentID, SessionID: on.session, Worker: on.worker}
	return notify.HealthChanged(ctx, tx, ids, now, subject, &h.State)
}

// put stores the state.
func (h *reportedOn) put(ctx context.Context, tx repos, sessionID string) error {
	if h.id == 0 {
		return tx.Health().Put(ctx, sessionID, h.State)
	}
	return tx.Workers().PutHealth(ctx, h.id, h.State, h.failed)
}
