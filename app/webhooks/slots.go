package webhooks

import (
	"container/list"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain/fair"
	"agentproxy/domain/ratelimit"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Bounds of the deliveries in one process, so that a slow receiver delays its own events only. The
// queue has 128 deliverers.
const (
	slotsPerAgent   = 4  // deliveries on their way
	waitersPerAgent = 16 // deliveries that wait for a slot
	waitersInAll    = 32 // of all agents: each occupies a deliverer
	slotTimeout     = 500 * time.Millisecond
	// unprovenSlots is how many deliveries may be on their way to endpoints whose last attempt
	// failed, or that were never reached, one for each of them. The other deliverers are left to
	// endpoints that work.
	unprovenSlots = 64
	// unprovenPerMinute is how many attempts an agent's endpoint gets that fails and once
	// succeeded. One that never did gets those of webhook.TakeUnverified: it may be an address that
	// asked for nothing.
	unprovenPerMinute = 10
	// requeueStep is how long a delivery without a slot is requeued for. It grows
	// with the number of those, up to maxRequeue.
	requeueStep = time.Second
	maxRequeue  = time.Minute
	// maxRest is how long a delivery to an endpoint that never answered is requeued for at most.
	maxRest = 6 * time.Minute
	// placeLife is how long an agent that has not asked again keeps its place in the line.
	placeLife = 10 * time.Second
)

var unprovenLimit = ratelimit.Limit{PerMinute: unprovenPerMinute}

// slots is a semaphore per agent, and the line of agents that wait for an unproven slot: each gets
// one slot, and then waits behind all others.
type slots struct {
	clock   ports.Clock
	waiters atomic.Int64
	agents  *fair.Semaphores

	mu       sync.Mutex
	requeued map[string]int           // deliveries of an agent without a slot, less those that were released since
	unproven int                      // slots in use
	line     *list.List               // of *place
	places   map[string]*list.Element // by agent
	attempts map[string]*attempts     // at unproven endpoints, by agent
	hosts    webhook.Tries            // at hosts of strangers, by all agents
	trimmed  time.Time                // when attempts were last forgotten
}

// attempts are those of the last hour at an unproven endpoint.
type attempts struct {
	minute ratelimit.State // since it last succeeded
	hour   time.Time       // of one that never did, by webhook.TakeUnverified
	last   time.Time
	next   time.Time // when the last of the agent's requeued deliveries asks again
}

// afterOne returns the attempts after one more, or how long it has to wait.
func (a attempts) afterOne(answered bool, now time.Time) (after attempts, wait time.Duration) {
	if answered {
		var d ratelimit.Decision
		a.minute, d = unprovenLimit.Take(a.minute, now, 1)
		wait = d.RetryAfter
	} else {
		a.hour, wait = webhook.TakeUnverified(a.hour, now)
	}
	a.last = now
	return a, wait
}

// place is an agent in the line.
type place struct {
	agentID string
	asked   time.Time // last
	next    time.Time // when the last of its requeued deliveries asks again
}

func newSlots(clock ports.Clock) *slots {
	return &slots{clock: clock, agents: fair.NewSemaphores(slotsPerAgent), requeued: map[string]int{}, line: list.New(),
		places: map[string]*list.Element{}, attempts: map[string]*attempts{}}
}

// acquire returns a slot of the agent; to a proven endpoint it waits for one up to slotTimeout. If
// there is none, release is nil and wait is how long the delivery should be requeued for.
func (s *slots) acquire(
	ctx context.Context, of webhook.Type, to webhook.Endpoint,
) (release func(), wait time.Duration) {
	agentID := to.AgentID
	if !to.Verified() {
		host := ""
		if to.Stranger(of) {
			host = to.Host()
		}
		return s.acquireUnproven(agentID, host, to.Answered())
	}
	sem, users := s.agents.Enter(agentID)
	if tryTake(sem) || users <= slotsPerAgent+waitersPerAgent && s.wait(ctx, sem) {
		return func() { s.release(agentID, sem) }, 0
	}
	return nil, s.giveUp(agentID)
}

// tryTake reports whether it got a slot at once.
func tryTake(sem chan struct{}) bool {
	select {
	case sem <- struct{}{}:
		return true
	default:
		return false
	}
}

// wait reports whether it got a slot within slotTimeout.
func (s *slots) wait(ctx context.Context, sem chan struct{}) bool {
	if s.waiters.Add(1) > waitersInAll {
		s.waiters.Add(-1)
		return false
	}
	defer s.waiters.Add(-1)
	timeout := time.NewTimer(slotTimeout)
	defer timeout.Stop()
	select {
	case sem <- struct{}{}:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
}

// release ends the use of a slot.
func (s *slots) release(agentID string, sem chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-sem
	s.requeued[agentID] = max(s.requeued[agentID]-1, 0)
	s.leave(agentID)
}

// giveUp returns how long a user that got no slot should be requeued for.
func (s *slots) giveUp(agentID string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(s.requeued[agentID]+1, slotsPerAgent*int(maxRequeue/requeueStep))
	s.requeued[agentID] = n
	s.leave(agentID)
	return min(requeueStep*time.Duration(1+n/slotsPerAgent), maxRequeue)
}

// leave removes a user of a semaphore. It is called under mu.
func (s *slots) leave(agentID string) {
	if s.agents.Leave(agentID) == 0 {
		delete(s.requeued, agentID)
	}
}

// acquireUnproven returns a slot if the agent has none and its turn has come: it is among the first
// in the line, as many as slots are free. An agent with a slot has no place in the line. host is that of a stranger;
// empty: the endpoint is none.
func (s *slots) acquireUnproven(agentID, host string, answered bool) (release func(), wait time.Duration) {
	now := s.clock.Now()
	if wait := s.resting(agentID, host, answered, now); wait > 0 {
		return nil, wait
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sem, _ := s.agents.Enter(agentID)
	if len(sem) == 0 {
		p := s.placeOf(agentID, now)
		if s.isTurn(agentID, now) && tryTake(sem) {
			s.drop(s.places[agentID])
			s.unproven++
			s.count(agentID, answered, now)
			if host != "" {
				s.hosts.Take(host, now)
			}
			return func() { s.releaseUnproven(agentID, sem) }, 0
		}
		// The deliveries of one agent ask one after the other.
		p.next = later(p.next, now).Add(requeueStep)
		wait = p.next.Sub(now)
	} else {
		s.requeued[agentID]++
		wait = requeueStep * time.Duration(s.requeued[agentID])
	}
	s.leave(agentID)
	return nil, min(wait, maxRequeue)
}

// resting returns how long a delivery is requeued for because an endpoint has had its attempts; 0
// if it has not.
func (s *slots) resting(agentID, host string, answered bool, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if host != "" {
		if wait := s.hosts.Wait(host, now); wait > 0 {
			return min(wait, maxRest)
		}
	}
	a := s.attempts[agentID]
	if a == nil {
		return 0
	}
	_, wait := a.afterOne(answered, now)
	if wait == 0 {
		return 0
	}
	// The deliveries of one agent ask one after the other.
	ask := later(a.next, now.Add(wait))
	a.next = ask.Add(requeueStep)
	if answered {
		return min(ask.Sub(now), maxRequeue)
	}
	return min(ask.Sub(now), maxRest)
}

// count notes an attempt at an unproven endpoint. Once a minute it forgets those of more than an
// hour ago.
func (s *slots) count(agentID string, answered bool, now time.Time) {
	if now.Sub(s.trimmed) >= time.Minute {
		s.trimmed = now
		for id, a := range s.attempts {
			if now.Sub(a.last) > time.Hour {
				delete(s.attempts, id)
			}
		}
	}
	a := s.attempts[agentID]
	if a == nil {
		a = &attempts{}
		s.attempts[agentID] = a
	}
	*a, _ = a.afterOne(answered, now)
}

func (s *slots) releaseUnproven(agentID string, sem chan struct{}) {
	s.release(agentID, sem)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unproven--
}

// placeOf returns the place of an agent in the line, at its end if it has none.
func (s *slots) placeOf(agentID string, now time.Time) *place {
	e := s.places[agentID]
	if e == nil {
		e = s.line.PushBack(&place{agentID: agentID})
		s.places[agentID] = e
	}
	p := e.Value.(*place)
	p.asked = now
	return p
}

// isTurn reports whether fewer agents are before one in the line than slots are free. It drops
// those that do not ask any more.
func (s *slots) isTurn(agentID string, now time.Time) bool {
	free := unprovenSlots - s.unproven
	var next *list.Element
	for e := s.line.Front(); e != nil && free > 0; e = next {
		next = e.Next()
		p := e.Value.(*place)
		if p.agentID == agentID {
			return true
		}
		if now.Sub(p.asked) > placeLife {
			s.drop(e)
			continue
		}
		free--
	}
	return false
}

func (s *slots) drop(e *list.Element) {
	delete(s.places, e.Value.(*place).agentID)
	s.line.Remove(e)
}

// answered takes back an attempt at a stranger's host that answered it: it is none.
func (s *slots) answered(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts.Answered(host)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
