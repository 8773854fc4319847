package ports

import "agentproxy/domain"

// ReadSet names what a unit or a view is going to read, as far as that is known before it runs; the zero
// value names nothing. A store may read, and lock for a unit, the rows of several together. One that
// reads other rows than it named is as correct, and slower.
type ReadSet struct {
	// Agent is whose unit it is.
	Agent string
	// Money is whether it reads the agent and its wallet, Holding the sessions that hold money.
	Money, Holding bool
	// Health are the sessions whose health it reads, Sessions those that it reads as a whole. A view
	// reads the health of their workers too.
	Health, Sessions []string
	// Fold is the queue of telemetry whose cursor it reads, empty for none.
	Fold string
	// Owners is whether a unit reads the agents of Sessions too and their wallets, which need not
	// be named.
	Owners bool
	// Recent is whether a view takes a session as it was within the last second, with everything
	// that units of this process have changed since.
	Recent bool
	// List is the page of its sessions that a view reads, nil for none.
	List *SessionPage
	// Path and Key are those of the Idempotency-Key that it looks for; Key is empty for none.
	Path, Key string
}

// SessionPage is a page of an agent's sessions.
type SessionPage struct {
	Filter SessionFilter
	Page   domain.Page
}

// Empty reports whether r names nothing.
func (r *ReadSet) Empty() bool {
	return r.Agent == "" && r.Fold == "" && len(r.Sessions) == 0 && len(r.Health) == 0
}
