package ports

import (
	"context"
	"time"

	"agentproxy/domain/account"
)

// Keys keeps the API keys of accounts. The first key of each is a part of the agent.
type Keys interface {
	// Owner returns the id of the agent whose key, the first or a further one, has this hash, else
	// account.ErrNotFound.
	Owner(ctx context.Context, hash []byte) (string, error)
	// Further returns the keys of an agent besides the first one, newest first.
	Further(ctx context.Context, agentID string) ([]account.Key, error)
	// Insert stores a further key and notes a change of its agent.
	Insert(ctx context.Context, k account.Key) error
	// Delete removes a further key and notes a change of its agent; account.ErrKeyNotFound for an
	// unknown one and for another agent's.
	Delete(ctx context.Context, agentID, id string) error
	// EndAt sets when a further key expires and notes a change of its agent; account.ErrKeyNotFound as of Delete.
	EndAt(ctx context.Context, agentID, id string, at time.Time) error
	// Used sets when keys were used last, of agents their first ones. It notes no change.
	Used(ctx context.Context, at time.Time, agentIDs, keyIDs []string) error
}
