package app_test

import (
	"context"
	"errors"
	"sync"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// stingy is a seller that delivers nothing and reports success.
type stingy struct{ *fake.Provider }

func (s stingy) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := s.Provider.Order(ctx, in)
	d.IPs = nil
	return d, err
}

// reprice gives the seller, with its books, another catalogue.
func (w *world) reprice(to []catalog.Product) {
	w.t.Helper()
	w.wire(setup{reprice: to}, w.clock, w.ids)
}

// unruly is a store that misbehaves as its port allows.
type unruly struct {
	ports.Store
	twice  bool
	mu     sync.Mutex
	fail   map[int]bool // by number of the update from now on: it runs and does not commit
	n      int
	onFail func() // called in the middle of an update that fails
	before func() // called before the next update: something happens first
}

var errStore = errors.New("the store failed on purpose")

// failUpdates makes the updates with these numbers, 1 the next, fail.
func (s *unruly) failUpdates(numbers ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail, s.n = map[int]bool{}, 0
	for _, n := range numbers {
		s.fail[n] = true
	}
}

func (s *unruly) Update(ctx context.Context, fn func(context.Context, ports.Tx) error) error {
	s.mu.Lock()
	s.n++
	fail, before := s.fail[s.n], s.before
	s.before = nil
	s.mu.Unlock()
	if before != nil {
		before()
	}
	if fail || s.twice {
		err := s.Store.Update(ctx, func(ctx context.Context, tx ports.Tx) error {
			if err := fn(ctx, tx); err != nil {
				return err
			}
			if s.onFail != nil && fail {
				s.onFail()
				s.onFail = nil
			}
			return errStore
		})
		if fail || !errors.Is(err, errStore) {
			return err
		}
	}
	return s.Store.Update(ctx, fn)
}
