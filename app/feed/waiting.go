package feed

import (
	"slices"
	"sync"
	"time"

	"agentproxy/domain/account"
	"agentproxy/ports"
)

// MaxWaiting is how many calls may wait for one agent in a process.
const MaxWaiting = 8

// waiting wakes the calls that wait for an event.
type waiting struct {
	most    int // of all agents; 0: no bound
	clock   ports.Clock
	closing chan struct{}
	close   func()

	mu       sync.Mutex
	agents   map[string][]*waiter // by agent, those that wait longest first
	number   int
	checking bool // a goroutine looks for credentials that may have ended
}

func (s *waiting) init(most int, clock ports.Clock) {
	s.clock = clock
	closing := make(chan struct{})
	s.most, s.agents, s.closing, s.close = most, map[string][]*waiter{}, closing, sync.OnceFunc(func() { close(closing) })
}

// waiter is a call that waits.
type waiter struct {
	agentID string
	grew    chan struct{} // holds one notice at most
	over    chan struct{} // closed to make room for another
	check   chan struct{} // as grew: its credential may have ended
	checks  int           // how often it is to be checked since its agent changed
	ends    time.Time     // when it ends by itself; zero: never
}

// notify puts a notice into a channel that holds one.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it has one
	}
}

// drain drops a notice that came before what is read next.
func (w *waiter) drain() {
	select {
	case <-w.grew:
	default:
	}
}

// errWaiting refuses a call beyond those that may wait.
var errWaiting = account.ErrRateLimited.Msgf("8 calls of this account wait for events already; end one, or call " +
	"without wait").After(5 * time.Second)

// join adds a call of an agent. Where all places are taken, the agent with most gives up its oldest: that call answers
// that there is nothing yet.
func (s *waiting) join(in Read) (*waiter, error) {
	agentID := in.AgentID
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.agents[agentID]) >= MaxWaiting {
		return nil, errWaiting
	}
	if s.most > 0 && s.number >= s.most {
		var largest []*waiter
		for _, list := range s.agents {
			if len(list) > len(largest) {
				largest = list
			}
		}
		close(largest[0].over)
		s.drop(largest[0])
	}
	w := &waiter{agentID: agentID, grew: make(chan struct{}, 1), over: make(chan struct{}),
		check: make(chan struct{}, 1), ends: in.Ends}
	s.agents[agentID] = append(s.agents[agentID], w)
	s.number++
	if !s.checking {
		s.checking = true
		go s.checkAll()
	}
	return w, nil
}

// checkAll has those credentials checked that may have ended, as long as a call waits. A timer of each call would take
// a tenth of a processor for a thousand of them.
func (s *waiting) checkAll() {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-s.closing:
			return
		}
		if !s.checkDue() {
			return
		}
	}
}

// checkDue wakes the calls whose credential may have ended, to check it. It is false, and the goroutine that asks is
// over, if none waits.
func (s *waiting) checkDue() bool {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.agents {
		for _, w := range list {
			due := !w.ends.IsZero() && !now.Before(w.ends)
			if w.checks > 0 {
				w.checks--
				due = true
			}
			if due {
				notify(w.check)
			}
		}
	}
	s.checking = s.number > 0
	return s.checking
}

// AgentChanged has the credentials of calls of an agent checked, twice: a cache of them may be notified a moment later.
// "" is any agent.
func (s *waiting) AgentChanged(agentID string) {
	s.visitCalls(agentID, func(w *waiter) { w.checks = 2 })
}

// SessionChanged does nothing: no call waits for a session.
func (s *waiting) SessionChanged(string) {}

// visitCalls visits the calls of an agent; "" is any.
func (s *waiting) visitCalls(agentID string, visit func(*waiter)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, list := range s.agents {
		if agentID != "" {
			id, list = agentID, s.agents[agentID]
		}
		for _, w := range list {
			visit(w)
		}
		if id == agentID {
			return
		}
	}
}

func (s *waiting) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(w)
}

// drop removes a call, if it is still there.
func (s *waiting) drop(w *waiter) {
	list := s.agents[w.agentID]
	i := slices.Index(list, w)
	if i < 0 {
		return
	}
	s.number--
	if s.agents[w.agentID] = slices.Delete(list, i, i+1); len(list) == 1 {
		delete(s.agents, w.agentID)
	}
}

// FeedGrew wakes the calls of an agent; "" is any.
func (s *waiting) FeedGrew(agentID string) {
	s.visitCalls(agentID, func(w *waiter) { notify(w.grew) })
}

// Stop has calls that wait answer at once, as the process is about to end.
func (s *waiting) Stop() { s.close() }

// Waiting returns how many calls wait.
func (s *waiting) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}
