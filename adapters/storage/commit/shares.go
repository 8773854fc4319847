package commit

import (
	"context"
	"errors"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain/fair"
)

// Shares bounds how many units and views of one agent are at work at the same time: those that have
// a connection of the database, and those that wait for a batch or are in one. Those beyond wait
// before that, so an agent that calls often slows itself and leaves connections and batches to the
// others. A nil *Shares bounds nothing.
type Shares struct {
	within time.Duration
	of     *fair.Semaphores // of the agents that have or wait for their share
}

// NewShares returns shares of which an agent has each units and views at most. A unit waits for those of its
// agent for ShareWithin, or for as long as it may wait for a connection if that is longer.
func NewShares(each int, patience time.Duration) *Shares {
	return &Shares{within: max(ShareWithin, patience), of: fair.NewSemaphores(each)}
}

// ShareWithin is how long a unit waits for those of its agent at least.
const ShareWithin = 5 * time.Second

var errShare = errors.New("units of the agent had its share of the database for too long")

// Take waits until an agent may have one more, and returns what gives it back.
func (s *Shares) Take(ctx context.Context, agentID string) (release func(), err error) {
	if s == nil || agentID == "" {
		return func() {}, nil
	}
	own, _ := s.of.Enter(agentID)
	release = func() { <-own; s.of.Leave(agentID) }
	select {
	case own <- struct{}{}:
		return release, nil
	default:
	}
	soon, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	select {
	case own <- struct{}{}:
		return release, nil
	case <-soon.Done():
		s.of.Leave(agentID)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, engine.UnavailableFor("agent_share", "connect", errShare)
	}
}

// AtWork returns how many units and views of an agent have its share or wait for it.
func (s *Shares) AtWork(agentID string) int { return s.of.Users(agentID) }
