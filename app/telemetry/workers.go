package telemetry

import (
	"context"
	"fmt"

	"agentproxy/domain"
	"agentproxy/domain/worker"
)

// sessionsOf lists the sessions of events, each once and in the order of the events.
func sessionsOf(order []of) []string {
	ids, seen := make([]string, 0, len(order)), make(map[string]bool, len(order))
	for _, on := range order {
		if !seen[on.session] {
			seen[on.session] = true
			ids = append(ids, on.session)
		}
	}
	return ids
}

// reportedOf reads what the events of a call are about. An event of a worker that is not there refuses
// the whole call.
func reportedOf(
	ctx context.Context, tx repos, agentID string, order []of, events []ReportedEvent,
) (map[of]*reportedOn, error) {
	found, err := readReported(ctx, tx, agentID, order)
	if err != nil {
		return nil, err
	}
	for _, on := range order {
		if found[of{on.session, ""}] != nil && found[on] == nil {
			return nil, unknownWorker(on, events)
		}
	}
	return found, nil
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

// unknownWorker returns the refusal of a call with an event of a worker that is not there.
func unknownWorker(on of, events []ReportedEvent) error {
	field := "worker"
	for i, e := range events {
		if len(events) > 1 && e.SessionID == on.session && e.Worker == on.worker {
			field = fmt.Sprintf("events[%d].worker", i)
			break
		}
	}
	return domain.InvalidField(field, "is not a worker of the session; its first use makes it, a report does not")
}

// put stores the state after reports.
func (h *reportedOn) put(ctx context.Context, tx repos, sessionID string) error {
	if h.id == 0 {
		return tx.Health().Put(ctx, sessionID, h.State)
	}
	return tx.Workers().PutHealth(ctx, h.id, h.State, worker.Failure{})
}
