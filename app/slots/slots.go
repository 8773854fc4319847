// Package slots bounds how much is done at once for each provider, so that one that
// does not answer delays its own work alone, and lets the agents whose work waits take
// turns.
package slots

import (
	"context"
	"sync"
	"time"

	"agentproxy/domain/fair"
)

// Item is work on a session.
type Item struct {
	ID    string // of the session
	Agent string // whose it is
}

// Bounds of one provider.
const (
	waitingAtMost  = 1000 // items that wait for a slot; more come again
	awaitedByAgent = 64   // callers of one agent that Await serves at once
)

// Slots runs work in a number of goroutines for each provider. The zero value is not
// usable.
type Slots struct {
	perProvider, awaitedAtMost int

	mu      sync.Mutex
	queues  map[string]*queue // by provider
	known   map[string]bool   // items that wait or run, by ID
	awaited map[[2]string]int // callers that Await serves, by provider and agent; of all without agent
	running int               // goroutines that work
	idle    chan struct{}     // closed when none does; nil if no call of Wait needs it
}

// queue is the work of one provider.
type queue struct {
	busy    int // goroutines
	waiting fair.Queue[entry]
}

type entry struct {
	Item
	do   func(id string)
	done func()
}

// New returns Slots with a number of goroutines for each provider, and a number of callers
// of each that Await serves at once.
func New(perProvider, awaitedAtMost int) *Slots {
	return &Slots{perProvider: perProvider, awaitedAtMost: awaitedAtMost,
		queues: map[string]*queue{}, known: map[string]bool{}, awaited: map[[2]string]int{}}
}

// Go runs do for every item in the slots of a provider and returns at once. What finds no
// free slot waits for one: agents take turns, an item of each. done is closed when the last
// one has ended; waits is set if some had to wait. An item that waits or runs already is
// left out, and so are those that are too many.
func (s *Slots) Go(provider string, items []Item, do func(id string)) (done <-chan struct{}, waits bool) {
	var all sync.WaitGroup
	s.mu.Lock()
	l := s.queues[provider]
	if l == nil {
		l = &queue{}
		s.queues[provider] = l
	}
	for _, item := range items {
		if s.known[item.ID] || l.waiting.Len() >= waitingAtMost {
			continue
		}
		s.known[item.ID] = true
		all.Add(1)
		l.waiting.Push(fair.Party{Key: item.Agent}, entry{item, do, all.Done})
	}
	begun := min(s.perProvider-l.busy, l.waiting.Len())
	for range begun {
		l.busy++
		s.start(func() { s.run(l) })
	}
	waits = l.waiting.Len() > max(begun, 0)
	s.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		all.Wait()
		close(finished)
	}()
	return finished, waits
}

// run does what waits until nothing does.
func (s *Slots) run(l *queue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		e, ok := l.waiting.Next()
		if !ok {
			l.busy--
			return
		}
		s.mu.Unlock()
		e.do(e.ID)
		s.mu.Lock()
		delete(s.known, e.ID)
		e.done()
	}
}

// Await runs do for an agent, who waits for it no longer than a timeout. It reports
// whether do has ended; else it goes on, or was not begun because too many of the
// provider do, and begun is false.
func (s *Slots) Await(provider, agent string, timeout time.Duration, do func()) (ended, begun bool) {
	done := make(chan struct{})
	if !s.enter(provider, agent, func() {
		defer close(done)
		defer s.leave(provider, agent)
		do()
	}) {
		return false, false
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true, true
	case <-timer.C:
		return false, true
	}
}

func (s *Slots) enter(provider, agent string, work func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, own := [2]string{provider}, [2]string{provider, agent}
	if s.awaited[all] >= s.awaitedAtMost || s.awaited[own] >= awaitedByAgent {
		return false
	}
	s.awaited[all]++
	s.awaited[own]++
	s.start(work)
	return true
}

// start runs work that Wait waits for. The lock is held. A WaitGroup must not be added to
// once it is waited for, and periodic tasks may begin while the program stops.
func (s *Slots) start(work func()) {
	s.running++
	go func() {
		defer s.stopped()
		work()
	}()
}

func (s *Slots) stopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running--; s.running == 0 && s.idle != nil {
		close(s.idle)
		s.idle = nil
	}
}

func (s *Slots) leave(provider, agent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range [][2]string{{provider}, {provider, agent}} {
		if s.awaited[key]--; s.awaited[key] == 0 {
			delete(s.awaited, key)
		}
	}
}

// Wait drops what waits for a slot, and returns when all other work has ended, or the
// context.
func (s *Slots) Wait(ctx context.Context) error {
	s.drop()
	s.mu.Lock()
	if s.running == 0 {
		s.mu.Unlock()
		return nil
	}
	if s.idle == nil {
		s.idle = make(chan struct{})
	}
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Slots) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.queues {
		for e, ok := l.waiting.Next(); ok; e, ok = l.waiting.Next() {
			delete(s.known, e.ID)
			e.done()
		}
	}
}
