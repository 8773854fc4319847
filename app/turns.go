package app

import (
	"context"
	"sync"
	"time"
)

// Bounds of the deliveries of one agent in one process, so that a receiver that
// is slow delays its own events alone.
const (
	atOnce   = 4  // are on their way
	inLine   = 16 // wait here for one of these to end
	patience = 500 * time.Millisecond
	// aside is how long a delivery is put aside that got no turn; it grows with
	// the number of those, up to longAside.
	aside     = time.Second
	longAside = time.Minute
)

// turns says which deliveries may begin.
type turns struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

// lane is the deliveries of one agent.
type lane struct {
	busy   chan struct{} // has an element for each that is on its way
	users  int           // of the lane, those that wait included
	behind int           // were put aside and have not been made up for
}

func newTurns() *turns { return &turns{lanes: map[string]*lane{}} }

// take waits a little for a turn of the agent. End is nil when it got none; then
// later says when to try again.
func (t *turns) take(ctx context.Context, agentID string) (end func(), later time.Duration) {
	l, crowded := t.enter(agentID)
	if !crowded && l.wait(ctx) {
		return func() { t.leave(agentID, l, true) }, 0
	}
	return nil, t.leave(agentID, l, false)
}

func (t *turns) enter(agentID string) (l *lane, crowded bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l = t.lanes[agentID]
	if l == nil {
		l = &lane{busy: make(chan struct{}, atOnce)}
		t.lanes[agentID] = l
	}
	l.users++
	return l, l.users > atOnce+inLine
}

// wait is false when no turn came.
func (l *lane) wait(ctx context.Context) bool {
	select {
	case l.busy <- struct{}{}:
		return true
	default:
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case l.busy <- struct{}{}:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
}

// leave ends the use of a lane; one that had its turn makes up for one that had
// none, which is told when to come again.
func (t *turns) leave(agentID string, l *lane, had bool) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(t.lanes, agentID)
	}
	if had {
		<-l.busy
		l.behind = max(l.behind-1, 0)
		return 0
	}
	l.behind = min(l.behind+1, atOnce*int(longAside/aside))
	return min(aside*time.Duration(1+l.behind/atOnce), longAside)
}
