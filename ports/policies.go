package ports

import (
	"context"

	"agentproxy/domain/policy"
)

// Policies keeps the rules that agents set for their sessions.
type Policies interface {
	// Get returns the rules of a session; the zero value if none were set.
	Get(ctx context.Context, sessionID string) (policy.Own, error)
	// Put replaces the rules of a session and notes its change. It returns session.ErrNotFound
	// for an unknown session.
	Put(ctx context.Context, sessionID string, own policy.Own) error
}
