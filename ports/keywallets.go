package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
)

// KeyWallets keeps what restricted keys may spend and have spent. Every change of the money of a session moves the
// one of the key that bought it, with the wallet of the agent, which is locked before.
type KeyWallets interface {
	// Get returns the money of a restricted key; false for a key without a restriction. In a unit it stays as it is
	// until the end, if the wallet of the agent was read before.
	Get(ctx context.Context, agentID, keyID string) (billing.KeyWallet, bool, error)
	// List returns those of an agent by the ids of their keys.
	List(ctx context.Context, agentID string) ([]billing.KeyWallet, error)
	// Restrict sets the limits of a key and notes a change of its agent. What is spent of a key without limits is
	// summed from its sessions; today is the UTC day of now.
	Restrict(ctx context.Context, agentID, keyID string, l account.Limits, now time.Time) error
	// Free removes the limits of a key, if it has any, and notes a change of its agent.
	Free(ctx context.Context, agentID, keyID string) error
}

// KeySpent is what the sessions of a key hold and have cost.
type KeySpent struct {
	Held, Spent domain.Money // Spent is charged, less refunded; what is used up counts as charged
	Live        int
}
