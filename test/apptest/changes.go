package apptest

import (
	"strings"
	"sync"
)

// ChangeRecorder is a ports.Watcher that records the notifications of the hub.
type ChangeRecorder struct {
	mu      sync.Mutex
	changes []string
}

// AgentChanged records "agent ID".
func (w *ChangeRecorder) AgentChanged(id string) { w.add("agent", id) }

// SessionChanged records "session ID".
func (w *ChangeRecorder) SessionChanged(id string) { w.add("session", id) }

func (w *ChangeRecorder) add(what, id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == "" {
		id = "any"
	}
	w.changes = append(w.changes, what+" "+id)
}

// Take returns what was recorded since the last call.
func (w *ChangeRecorder) Take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.changes, ", ")
	w.changes = nil
	return all
}
