package ports

import (
	"context"
	"time"

	"agentproxy/domain/recharge"
)

// PayAddresses keeps the addresses that recharges are paid to, and the indexes of the keys that they are made from.
type PayAddresses interface {
	// NextIndex takes the next index of an account key, each index once for
	// ever on all networks together, from recharge.FirstIndex.
	NextIndex(ctx context.Context, network, fingerprint string) (uint32, error)
	// Unused returns which index NextIndex takes next, and whether SkipTo has kept that outside the database too.
	Unused(ctx context.Context, network, fingerprint string) (next uint32, kept bool, err error)
	// SkipTo lets NextIndex go on from an index, never from an earlier one, and notes whether it is kept outside.
	SkipTo(ctx context.Context, network, fingerprint string, next uint32, kept bool) error
	// InsertAddress stores an address. It returns ErrDuplicate for an address, or an index of a
	// key, that exists, and for a second one of an agent under one key.
	InsertAddress(ctx context.Context, a recharge.Address) error
	// AddressOf returns the agent's address under an account key, or false if it has none yet.
	AddressOf(ctx context.Context, network, fingerprint, agentID string) (recharge.Address, bool, error)
	// Owned returns those of the addresses that are ours.
	Owned(ctx context.Context, network string, addresses []string) (map[string]recharge.Address, error)
	// Addresses lists addresses, the least recently audited first.
	Addresses(ctx context.Context, network string, limit int) ([]recharge.Address, error)
	// CountAddresses counts them. An address is never removed, so an equal count
	// means that the list is the same.
	CountAddresses(ctx context.Context, network string) (int, error)
	// AllAddresses lists every address, whichever key it is of, by agent.
	AllAddresses(ctx context.Context, network string) ([]recharge.Address, error)
	// AwaitingAddresses lists the addresses of orders whose window ends at a time or later, by agent; if there are more
	// than limit, those whose windows end last. It also lists those of all open orders.
	AwaitingAddresses(ctx context.Context, network string, since time.Time, limit int) ([]recharge.Address, error)
	// PaidAddresses lists the addresses to which a transfer was ever recorded, by agent.
	PaidAddresses(ctx context.Context, network string) ([]recharge.Address, error)
	// PutAddress writes ReadThrough, which never goes back, AuditedAt and Drift.
	PutAddress(ctx context.Context, a recharge.Address) error
}
