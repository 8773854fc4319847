// Package slots bounds how much is done at once for each provider, so that one that
// does not answer delays its own work alone.
package slots

import (
	"context"
	"sync"
	"time"
)

// Slots runs work in a number of goroutines for each provider. The zero value is not
// usable.
type Slots struct {
	perProvider, awaitedAtMost int

	mu      sync.Mutex
	busy    map[string]int  // goroutines, by provider
	running map[string]bool // items
	awaited map[string]int  // callers that Await serves, by provider
	work    sync.WaitGroup
}

// New returns Slots with a number of goroutines for each provider, and a number of callers
// of each that Await serves at once.
func New(perProvider, awaitedAtMost int) *Slots {
	return &Slots{perProvider: perProvider, awaitedAtMost: awaitedAtMost,
		busy: map[string]int{}, running: map[string]bool{}, awaited: map[string]int{}}
}

// Go runs do for every item in the free slots of a provider and returns at once. done is
// closed when the last one has ended. Items are left out if the provider has no free
// slot, and an item is if it is running already: they come again.
func (s *Slots) Go(provider string, items []string, do func(item string)) (done <-chan struct{}) {
	s.mu.Lock()
	n := min(s.perProvider-s.busy[provider], len(items))
	s.busy[provider] += max(n, 0)
	s.mu.Unlock()
	list := make(chan string, len(items))
	for _, item := range items {
		list <- item
	}
	close(list)
	finished := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		s.work.Go(func() {
			defer all.Done()
			defer s.free(provider)
			for item := range list {
				if s.begin(item) {
					do(item)
					s.end(item)
				}
			}
		})
	}
	go func() {
		all.Wait()
		close(finished)
	}()
	return finished
}

func (s *Slots) free(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[provider]--; s.busy[provider] == 0 {
		delete(s.busy, provider)
	}
}

func (s *Slots) begin(item string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[item] {
		return false
	}
	s.running[item] = true
	return true
}

func (s *Slots) end(item string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, item)
}

// Await runs do for a caller, who waits for it no longer than a timeout. It reports
// whether do has ended; else it goes on, or was not begun because too many of the
// provider do.
func (s *Slots) Await(provider string, timeout time.Duration, do func()) bool {
	if !s.enter(provider) {
		return false
	}
	done := make(chan struct{})
	s.work.Go(func() {
		defer close(done)
		defer s.leave(provider)
		do()
	})
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

func (s *Slots) enter(provider string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited[provider] >= s.awaitedAtMost {
		return false
	}
	s.awaited[provider]++
	return true
}

func (s *Slots) leave(provider string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.awaited[provider]--; s.awaited[provider] == 0 {
		delete(s.awaited, provider)
	}
}

// Wait returns when all work has ended, or the context.
func (s *Slots) Wait(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		s.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
