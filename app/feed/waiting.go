package feed

import (
	"slices"
	"sync"
	"time"

	"agentproxy/domain/account"
)

// MaxWaiting is how many calls may wait for one agent in a process.
const MaxWaiting = 8

// waiting wakes the calls that wait for an event.
type waiting struct {
	most    int // of all agents; 0: no bound
	closing chan struct{}
	close   func()

	mu     sync.Mutex
	agents map[string][]*waiter // by agent, those that wait longest first
	number int
}

func (s *waiting) init(most int) {
	closing := make(chan struct{})
	s.most, s.agents, s.closing, s.close = most, map[string][]*waiter{}, closing, sync.OnceFunc(func() { close(closing) })
}

// waiter is a call that waits.
type waiter struct {
	agentID string
	grew    chan struct{} // holds one notice at most
	over    chan struct{} // closed to make room for another
}

func (w *waiter) notify() {
	select {
	case w.grew <- struct{}{}:
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
func (s *waiting) join(agentID string) (*waiter, error) {
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
	w := &waiter{agentID, make(chan struct{}, 1), make(chan struct{})}
	s.agents[agentID] = append(s.agents[agentID], w)
	s.number++
	return w, nil
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if agentID != "" {
		for _, w := range s.agents[agentID] {
			w.notify()
		}
		return
	}
	for _, list := range s.agents {
		for _, w := range list {
			w.notify()
		}
	}
}

// Stop has calls that wait answer at once, as the process is about to end.
func (s *waiting) Stop() { s.close() }

// Waiting returns how many calls wait.
func (s *waiting) Waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.number
}
