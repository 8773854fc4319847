package ports

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Agents keeps accounts.
type Agents interface {
	Insert(ctx context.Context, a account.Agent) error
	// Get is account.ErrNotFound for an unknown id. The referrer is filled in.
	Get(ctx context.Context, id string) (account.Agent, error)
	// ByKey finds the agent whose key has this hash, else account.ErrNotFound.
	ByKey(ctx context.Context, keyHash []byte) (account.Agent, error)
	// Put writes everything but the id, the referrer and the creation, and
	// notes a change of the agent.
	Put(ctx context.Context, a account.Agent) error
	// List returns agents, newest first.
	List(ctx context.Context, page domain.Page) (domain.List[account.Agent], error)
}
