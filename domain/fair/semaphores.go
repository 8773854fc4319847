package fair

import "sync"

// Semaphores has a semaphore for each owner that uses it, and forgets it with the last user. It may be used by
// many goroutines.
type Semaphores struct {
	each int
	mu   sync.Mutex
	of   map[string]*semaphore
}

type semaphore struct {
	slots chan struct{}
	users int
}

// NewSemaphores returns semaphores of each slots an owner.
func NewSemaphores(each int) *Semaphores {
	return &Semaphores{each: each, of: map[string]*semaphore{}}
}

// Enter adds a user of an owner's semaphore, and returns how many use it. Who sends to the channel takes a slot,
// who receives from it gives one back; each user leaves at last.
func (s *Semaphores) Enter(owner string) (slots chan struct{}, users int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[owner]
	if own == nil {
		own = &semaphore{slots: make(chan struct{}, s.each)}
		s.of[owner] = own
	}
	own.users++
	return own.slots, own.users
}

// Leave removes a user, and returns how many are left.
func (s *Semaphores) Leave(owner string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[owner]
	if own.users--; own.users == 0 {
		delete(s.of, owner)
	}
	return own.users
}

// Users returns how many have a slot of an owner or want one.
func (s *Semaphores) Users(owner string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[owner]; own != nil {
		return own.users
	}
	return 0
}
