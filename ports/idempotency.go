package ports

import (
	"context"
	"time"
)

// Outcome is how a call was answered.
type Outcome int

// The outcomes. InFlight is that of a call whose answer is not known yet.
const (
	InFlight  Outcome = iota
	Completed         // what was asked for is done, or there was nothing to do
	Created           // there is something new
	Pending           // it is accepted; what comes of it is not known yet
	Ended             // refused: the session ended while the call ran
)

// ResourceSeparator ends the id of the session in the resource of a call.
const ResourceSeparator = "#"

// Call is one call under an Idempotency-Key.
type Call struct {
	AgentID   string
	Path      string
	Key       string
	Request   []byte  // hash of the request's meaning
	Resource  string  // the session it made or changed, and more behind ResourceSeparator
	Outcome   Outcome // of the first call
	CreatedAt time.Time
}

// Idempotency keeps the keys of calls that took effect.
type Idempotency interface {
	// Find returns the call of a key, or false if the key was not used since a time.
	Find(ctx context.Context, agentID, path, key string, since time.Time) (Call, bool, error)
	// Keep stores a call, in place of one that is older than since.
	Keep(ctx context.Context, c Call) error
	// SetOutcome sets the outcome of a call whose key still names that resource. It
	// stores no key that was dropped meanwhile.
	SetOutcome(ctx context.Context, agentID, path, key, resource string, to Outcome) error
	// DropFor removes the keys that name a resource.
	DropFor(ctx context.Context, agentID, resource string) error
	// Purge removes keys older than the time.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}
