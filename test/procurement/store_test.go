package procurement_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"agentproxy/ports"
)

var errStore = errors.New("the store failed on purpose")

// chances are how often a unit of work ends badly, in ten thousand.
type chances struct{ notBegun, rolledBack, unheard, twice, view int }

var usual = chances{notBegun: 60, rolledBack: 60, unheard: 60, twice: 300, view: 40}

// store is the store of one process: units fail by chance, and all of them once
// the process is dead.
type store struct {
	ports.Store
	count func(string, int)

	mu    sync.Mutex
	rng   *rand.Rand
	odds  chances
	lives int // units until the process dies; below 0: it does not
}

// throw returns a random number below ten thousand, and whether the process is dead.
func (s *store) throw(update bool) (n int, odds chances, dead bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lives == 0 {
		return 0, s.odds, true
	}
	if update && s.lives > 0 {
		s.lives--
	}
	return s.rng.IntN(10_000), s.odds, false
}

// die makes the process fail after a number of further units.
func (s *store) die(after int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lives = after
}

// stopFaults ends the failures.
func (s *store) stopFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odds, s.lives = chances{}, -1
}

func (s *store) View(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	if n, odds, dead := s.throw(false); dead || n < odds.view {
		return errStore
	}
	return s.Store.View(ctx, reads, fn)
}

func (s *store) Read(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	if n, odds, dead := s.throw(false); dead || n < odds.view {
		return errStore
	}
	return s.Store.Read(ctx, fn)
}

func (s *store) Update(ctx context.Context, reads ports.ReadSet, fn func(context.Context, ports.Tx) error) error {
	n, odds, dead := s.throw(true)
	if dead {
		return errStore
	}
	at := func(width int) bool { n -= width; return n < 0 && n >= -width }
	undo := func(ctx context.Context, tx ports.Tx) error {
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return errStore
	}
	switch {
	case at(odds.notBegun):
		s.count("unit failed", 1)
		return errStore
	case at(odds.rolledBack):
		s.count("unit failed", 1)
		return s.Store.Update(ctx, reads, undo)
	case at(odds.unheard):
		s.count("unit committed unheard", 1)
		if err := s.Store.Update(ctx, reads, fn); err != nil {
			return err
		}
		return errStore
	case at(odds.twice):
		if err := s.Store.Update(ctx, reads, undo); !errors.Is(err, errStore) {
			return err
		}
	}
	return s.Store.Update(ctx, reads, fn)
}
