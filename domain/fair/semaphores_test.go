package fair_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"agentproxy/domain/fair"
)

func TestEachOwnerHasItsSlots(t *testing.T) {
	t.Parallel()
	s := fair.NewSemaphores(2)
	slots, users := s.Enter("a")
	same, more := s.Enter("a")
	other, _ := s.Enter("b")
	if slots != same || slots == other || cap(slots) != 2 || users != 1 || more != 2 {
		t.Fatalf("%d slots, %d and %d users", cap(slots), users, more)
	}
	if left := s.Leave("a"); left != 1 || s.Users("a") != 1 || s.Users("none") != 0 {
		t.Errorf("%d are left, %d are counted", left, s.Users("a"))
	}
	if left := s.Leave("a") + s.Leave("b"); left != 0 || s.Owners() != 0 {
		t.Errorf("%d are left, %d owners are kept", left, s.Owners())
	}
}

func TestASlotIsHeldByNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	s := fair.NewSemaphores(3)
	var at, most atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			slots, _ := s.Enter("a")
			defer s.Leave("a")
			slots <- struct{}{}
			defer func() { <-slots }()
			n := at.Add(1)
			for {
				if m := most.Load(); n <= m || most.CompareAndSwap(m, n) {
					break
				}
			}
			at.Add(-1)
		})
	}
	all.Wait()
	if most.Load() > 3 || s.Owners() != 0 {
		t.Errorf("%d at once, %d owners are kept", most.Load(), s.Owners())
	}
}
