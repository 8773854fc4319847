package commit

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/adapters/storage/engine"
)

// Shares bounds how many units and views of one agent are at work at the same time: those that have
// a connection of the database, and those that wait for a batch or are in one. Those beyond wait
// before that, so an agent that calls often slows itself and leaves connections and batches to the
// others. A nil *Shares bounds nothing.
type Shares struct {
	each   int
	within time.Duration
	mu     sync.Mutex
	of     map[string]*share // of the agents that have or wait for their share
}

type share struct {
	taken chan struct{}
	users int
}

// NewShares returns shares of which an agent has each units and views at most. A unit waits for those of its
// agent for ShareWithin, or for as long as it may wait for a connection if that is longer.
func NewShares(each int, patience time.Duration) *Shares {
	return &Shares{each: each, within: max(ShareWithin, patience), of: map[string]*share{}}
}

// ShareWithin is how long a unit waits for those of its agent at least.
const ShareWithin = 5 * time.Second

var errShare = errors.New("units of the agent had its share of the database for too long")

// Take waits until the agent that ctx is for may have one more, and returns what gives it back.
func (s *Shares) Take(ctx context.Context) (release func(), err error) {
	agentID := agentOf(ctx)
	if s == nil || agentID == "" {
		return func() {}, nil
	}
	own := s.enter(agentID)
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; s.leave(agentID) }, nil
	default:
	}
	soon, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; s.leave(agentID) }, nil
	case <-soon.Done():
		s.leave(agentID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, engine.UnavailableFor("agent_share", "connect", errShare)
	}
}

func (s *Shares) enter(agentID string) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[agentID]
	if own == nil {
		own = &share{taken: make(chan struct{}, s.each)}
		s.of[agentID] = own
	}
	own.users++
	return own
}

func (s *Shares) leave(agentID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[agentID]; own.users > 1 {
		own.users--
	} else {
		delete(s.of, agentID)
	}
}

// AtWork returns how many units and views of an agent have its share or wait for it.
func (s *Shares) AtWork(agentID string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[agentID]; own != nil {
		return own.users
	}
	return 0
}
