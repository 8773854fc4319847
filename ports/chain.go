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
	// Network returns the constant name of the chain, such as "tron-mainnet".
	Network() string
	// Required returns about how many confirmations make a transfer final.
	Required() int
	// Heads reads the latest and the final block. Later reads are complete up to the final one.
	Heads(ctx context.Context) (recharge.Heads, error)
	// Final reads the final head alone, for less.
	Final(ctx context.Context) (recharge.Head, error)
	// Since returns the number of a block that is not later than a time, by the
	// final head that was read last; 0 if there may be none.
	Since(ctx context.Context, at time.Time) (int64, error)
	// Incoming returns every transfer to one of the addresses in blocks first to last, in
	// chain order. Of blocks up to the final head that was read last it is complete
	// or an error; above it transfers are only Seen, and some may be missing.
	Incoming(ctx context.Context, to []string, first, last int64) ([]recharge.Transfer, error)
	// History returns every transfer to or from an address in blocks from since on.
	// It is complete or an error. Where the source has an index, that is read: a
	// second witness beside Incoming.
	History(ctx context.Context, address string, since time.Time) ([]recharge.Transfer, error)
	// Transaction returns every transfer of a transaction; none when the chain does
	// not have it, or no longer.
	Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error)
	// Balance returns what an address holds at the final head.
	Balance(ctx context.Context, address string) (domain.Money, error)
	// Balances returns what addresses hold at the latest block, for much less.
	Balances(ctx context.Context, addresses []string) ([]domain.Money, error)
	// Used reports for each of some addresses whether the chain has anything of it: it holds the token or coins of
	// the chain, or did more. It is a hint: what was emptied completely may not show.
	Used(ctx context.Context, addresses []string) ([]bool, error)
	// Valid reports whether a text is an address of the chain, byte by byte.
	Valid(address string) bool
}
