package ports

import (
	"context"
	"time"

	"agentproxy/domain/recharge"
)

// Devchain keeps the blocks of the development chain, which has no forks. adapters/chain alone uses
// it: no use case does, and it is a port because the blocks are in the service's database.
type Devchain interface {
	// Genesis returns when block 0 begins and how long a block takes, and false before
	// SetGenesis.
	Genesis(ctx context.Context) (time.Time, time.Duration, bool, error)
	SetGenesis(ctx context.Context, at time.Time, every time.Duration) error
	// Append adds a transfer to its block; the log index is the caller's.
	Append(ctx context.Context, t recharge.Transfer) error
	// Blocks lists the transfers of blocks first to last, in chain order.
	Blocks(ctx context.Context, first, last int64) ([]recharge.Transfer, error)
	// Transaction lists the transfers of a transaction.
	Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error)
	// Touching lists transfers to or from an address in blocks from a number on.
	Touching(ctx context.Context, address string, from int64) ([]recharge.Transfer, error)
}
