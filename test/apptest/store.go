package apptest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"agentproxy/domain"
	"agentproxy/ports"
)

// FaultyStore is a store whose updates fail or are repeated, as its port allows.
type FaultyStore struct {
	ports.Store
	repeat bool // every update runs once and is rolled back, then runs again
	mu     sync.Mutex
	fail   map[int]bool // by number of the update from now on: it runs and does not commit
	n      int
	OnFail func() // called in the middle of an update that fails
	Before func() // called before the next update
}

// ErrStore is the error of an update that fails on purpose. Like those of a database that is away, it
// is domain.ErrUnavailable.
var ErrStore = fmt.Errorf("the store failed on purpose: %w", domain.ErrUnavailable)

// FailUpdates makes the updates with these numbers fail; 1 is the next.
func (s *FaultyStore) FailUpdates(numbers ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.n = map[int]bool{}, 0
	for _, n := range numbers {
		s.fail[n] = true
	}
}

// CountUpdates returns how many updates began since the last call of it or of FailUpdates.
func (s *FaultyStore) CountUpdates() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, s.n = s.n, 0
	return n
}

// Update runs fn as the store does, unless this update is to fail or to be repeated.
func (s *FaultyStore) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	s.mu.Lock()
	s.n++
	fail, before := s.fail[s.n], s.Before
	s.Before = nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	if fail || s.repeat {
		err := s.Store.Update(ctx, reads, func(ctx context.Context, tx ports.Tx) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			if s.OnFail != nil && fail {
				s.OnFail()
				s.OnFail = nil
			}
			return ErrStore
		})
		if fail || !errors.Is(err, ErrStore) {
			return err
		}
	}
	return s.Store.Update(ctx, reads, fn)
}
