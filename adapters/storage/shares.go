package storage

import (
	"context"
	"errors"
	"sync"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// shares bounds how many units and views of one agent are at work at the same time: those that have
// a connection of PostgreSQL, and those that wait for a batch or are in one. Those beyond wait
// before that, so an agent that calls often slows itself and leaves connections and batches to the
// others. A nil *shares bounds nothing.
type shares struct {
	each int
	mu   sync.Mutex
	of   map[string]*share // of the agents that have or wait for their share
}

type share struct {
	taken chan struct{}
	users int
}

func newShares(each int) *shares { return &shares{each: each, of: map[string]*share{}} }

// maxQueued is how many units and views of an agent wait for batches, or are in them: half of a batch.
const maxQueued = maxBatch / 2

// shareWithin is how long a unit waits for those of its agent.
const shareWithin = 5 * time.Second

var errShare = errors.New("units of the agent had its share of the database for too long")

// take waits until the agent that ctx is for may have one more, and returns what gives it back.
func (s *shares) take(ctx context.Context) (release func(), err error) {
	agentID := ports.AgentOf(ctx)
	if a := ports.ReadSetOf(ctx); a != nil {
		agentID = a.Agent
	}
	if s == nil || agentID == "" {
		return func() {}, nil
	}
	own := s.enter(agentID)
	select {
	case own.taken <- struct{}{}:
		return func() { <-own.taken; s.leave(agentID) }, nil
	default:
	}
	soon, cancel := context.WithTimeout(ctx, shareWithin)
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

func (s *shares) enter(agentID string) *share {
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

func (s *shares) leave(agentID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own := s.of[agentID]; own.users > 1 {
		own.users--
	} else {
		delete(s.of, agentID)
	}
}
