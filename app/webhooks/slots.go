package webhooks

import (
	"context"
	"sync"
	"time"
)

// Bounds of the deliveries of one agent in one process, so that a slow receiver
// delays its own events only.
const (
	slotsPerAgent   = 4  // deliveries on their way
	waitersPerAgent = 16 // deliveries that wait for a slot
	slotTimeout     = 500 * time.Millisecond
	// requeueStep is how long a delivery without a slot is requeued for. It grows
	// with the number of those, up to maxRequeue.
	requeueStep = time.Second
	maxRequeue  = time.Minute
)

// slots is a semaphore per agent.
type slots struct {
	mu     sync.Mutex
	agents map[string]*semaphore
}

// semaphore bounds the deliveries of one agent.
type semaphore struct {
	busy     chan struct{} // has an element for each slot in use
	users    int           // of the semaphore, those that wait included
	requeued int           // without a slot, less those that were released since
}

func newSlots() *slots { return &slots{agents: map[string]*semaphore{}} }

// acquire waits up to slotTimeout for a slot of the agent. If there is none,
// release is nil and wait is how long the delivery should be requeued for.
func (s *slots) acquire(ctx context.Context, agentID string) (release func(), wait time.Duration) {
	sem, full := s.enter(agentID)
	if !full && sem.acquire(ctx) {
		return func() { s.leave(agentID, sem, true) }, 0
	}
	return nil, s.leave(agentID, sem, false)
}

func (s *slots) enter(agentID string) (sem *semaphore, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sem = s.agents[agentID]
	if sem == nil {
		sem = &semaphore{busy: make(chan struct{}, slotsPerAgent)}
		s.agents[agentID] = sem
	}
	sem.users++
	return sem, sem.users > slotsPerAgent+waitersPerAgent
}

// acquire reports whether it got a slot within slotTimeout.
func (sem *semaphore) acquire(ctx context.Context) bool {
	select {
	case sem.busy <- struct{}{}:
		return true
	default:
	}
	timeout := time.NewTimer(slotTimeout)
	defer timeout.Stop()
	select {
	case sem.busy <- struct{}{}:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
}

// leave releases a slot, if the user had one. It returns how long a user without
// one should be requeued for.
func (s *slots) leave(agentID string, sem *semaphore, acquired bool) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sem.users--; sem.users == 0 {
		delete(s.agents, agentID)
	}
	if acquired {
		<-sem.busy
		sem.requeued = max(sem.requeued-1, 0)
		return 0
	}
	sem.requeued = min(sem.requeued+1, slotsPerAgent*int(maxRequeue/requeueStep))
	return min(requeueStep*time.Duration(1+sem.requeued/slotsPerAgent), maxRequeue)
}
