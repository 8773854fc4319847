package commit

import (
	"context"
	"sync"

	"agentproxy/ports"
)

// turns is a queue in which the agents that wait take turns, a unit each: a unit waits for one of each other
// agent at most, however many units those have. The units of one agent keep their order.
type turns struct {
	room  chan struct{} // bounds those that wait
	ready chan struct{} // receives after a unit was added

	mu    sync.Mutex
	of    map[string][]*unit // of the agents that wait
	order []string           // the same agents, the next one first
	n     int
}

func newTurns(most int) *turns {
	return &turns{room: make(chan struct{}, most), ready: make(chan struct{}, 1), of: map[string][]*unit{}}
}

// AgentOf returns for whom a unit that reads what reads names runs, "" for the service itself.
func AgentOf(ctx context.Context, reads *ports.ReadSet) string {
	if !reads.Empty() {
		return reads.Agent
	}
	return ports.AgentOf(ctx)
}

// push adds a unit, for which there is room.
func (q *turns) push(u *unit) {
	agentID := AgentOf(u.ctx, u.reads)
	q.mu.Lock()
	if len(q.of[agentID]) == 0 {
		q.order = append(q.order, agentID)
	}
	q.of[agentID] = append(q.of[agentID], u)
	q.n++
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// pop removes and returns the next unit, nil if none waits.
func (q *turns) pop() *unit {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.n == 0 {
		return nil
	}
	agentID := q.order[0]
	own := q.of[agentID]
	u := own[0]
	own[0], q.order = nil, q.order[1:]
	if len(own) > 1 {
		q.of[agentID], q.order = own[1:], append(q.order, agentID)
	} else {
		delete(q.of, agentID)
	}
	q.n--
	<-q.room
	return u
}

// waiting returns how many units wait.
func (q *turns) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.n
}
