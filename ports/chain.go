package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Chain reads the USDT transfers of one network. An error proves nothing about
// the chain: the caller changes nothing and retries. A transfer is returned
// only when it moved more than nothing of the one token that counts; its State
// is recharge.Final when the chain can no longer take it back, recharge.Seen
// before that, and recharge.Ignored, with a Note, when its amount is none that
// USDT can have.
type Chain interface {
	// Network names the chain for ever, such as "tron-mainnet".
	Network() string
	// Required is how many blocks on top make a transfer final, about.
	Required() int
	// Heads reads both ends of the chain. What is read after it, is complete up
	// to them.
	Heads(ctx context.Context) (recharge.Heads, error)
	// History is every transfer to or from an address in blocks from since on.
	// It is complete or an error.
	History(ctx context.Context, address string, since time.Time) ([]recharge.Transfer, error)
	// Block returns every transfer in a block, of any address. Those of a block above
	// the final head are only Seen.
	Block(ctx context.Context, number int64, final bool) ([]recharge.Transfer, error)
	// Transaction returns every transfer of a transaction; none when the chain does
	// not have it, or no longer.
	Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error)
	// Balance is what an address holds at the final head.
	Balance(ctx context.Context, address string) (domain.Money, error)
	// Valid reports whether a text is an address of the chain, byte by byte.
	Valid(address string) bool
}
