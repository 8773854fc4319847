// Package quota bounds what one agent may do through this replica: how many connections it
// has, and how many new ones a minute it makes to one target.
package quota

import "sync"

// Agent is an agent with connections.
type Agent struct {
	id    string
	conns int // under the lock of Agents
}

// Agents counts connections by agent. Agents without connections take no memory.
type Agents struct {
	mu   sync.Mutex
	byID map[string]*Agent
}

// NewAgents returns a counter without connections.
func NewAgents() *Agents { return &Agents{byID: map[string]*Agent{}} }

// Enter counts a connection for an agent and sets *held, which Leave takes. It returns false
// if the agent has limit connections already; 0 is unlimited. One that is counted for the
// agent already is not counted again.
func (as *Agents) Enter(held **Agent, id string, limit int) bool {
	if *held != nil && (*held).id == id {
		return true
	}
	as.Leave(held)
	as.mu.Lock()
	defer as.mu.Unlock()
	a := as.byID[id]
	if a == nil {
		a = &Agent{id: id}
		as.byID[id] = a
	}
	if limit > 0 && a.conns >= limit {
		return false
	}
	a.conns++
	*held = a
	return true
}

// Leave undoes Enter. It does nothing if *held is nil.
func (as *Agents) Leave(held **Agent) {
	a := *held
	if a == nil {
		return
	}
	*held = nil
	as.mu.Lock()
	defer as.mu.Unlock()
	if a.conns--; a.conns == 0 {
		delete(as.byID, a.id)
	}
}
