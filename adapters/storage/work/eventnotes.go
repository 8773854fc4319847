package work

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// EventNotes are the agents with events that no change was noted for yet. The note wakes calls that wait for events,
// in every process. It is written behind the unit that appended the event, for all agents of a moment at once: in the
// unit itself it took 15 % of the processor time of a purchase on PostgreSQL, where each commit with a notification
// waits for the one before it. A process that is killed in between loses notes but no events: a call that waits then
// ends without them, and the next one reads them.
type EventNotes struct {
	mu     sync.Mutex
	agents map[string]struct{}
	ready  chan struct{} // has an element while agents has one
}

// noteEvery is the least time between two notes of a process, maxNoted the most agents that wait for one, and noteSize
// how many a row names.
const (
	noteEvery = 50 * time.Millisecond
	maxNoted  = 10_000
	noteSize  = 100
)

// NewEventNotes returns those of no agent.
func NewEventNotes() *EventNotes {
	return &EventNotes{agents: map[string]struct{}{}, ready: make(chan struct{}, 1)}
}

// Add has agents noted, as far as there is space.
func (n *EventNotes) Add(agents []string) {
	if len(agents) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range agents {
		if len(n.agents) < maxNoted {
			n.agents[id] = struct{}{}
		}
	}
	select {
	case n.ready <- struct{}{}:
	default:
	}
}

// take returns the agents in their order, and forgets them.
func (n *EventNotes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.ready:
	default:
	}
	agents := slices.Sorted(maps.Keys(n.agents))
	clear(n.agents)
	return agents
}

// Run flushes as long as ctx lives, some of them at a time.
func (n *EventNotes) Run(ctx context.Context, write func(ctx context.Context, notes []string) error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.ready:
		}
		_ = n.Flush(ctx, write) // which keeps what could not be noted
		select {
		case <-ctx.Done():
			return
		case <-time.After(noteEvery):
		}
	}
}

// Flush writes the notes that are due, each the name of a change. It keeps them if that fails.
func (n *EventNotes) Flush(ctx context.Context, write func(ctx context.Context, notes []string) error) error {
	agents := n.take()
	if len(agents) == 0 {
		return nil
	}
	var notes []string
	for some := range slices.Chunk(agents, noteSize) {
		notes = append(notes, feedMark+strings.Join(some, feedComma))
	}
	err := write(ctx, notes)
	if err != nil {
		n.Add(agents)
	}
	return err
}

// feedMark begins the names of agents in a change that is of their events, which feedComma separates: the agents
// themselves did not change.
const feedMark, feedComma = "+", ","

// Feeds returns the agents that a change names if it is of their events.
func Feeds(change string) (agents []string, events bool) {
	names, events := strings.CutPrefix(change, feedMark)
	if !events {
		return nil, false
	}
	return strings.Split(names, feedComma), true
}
