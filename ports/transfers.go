package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Transfers keeps the transfers to and from our addresses, and how far the blocks of a network were read.
type Transfers interface {
	// Transfer returns a transfer that was recorded, or false.
	Transfer(ctx context.Context, k recharge.Key) (recharge.Transfer, bool, error)
	// PutTransfer stores a transfer or what changed of it; FirstSeen never does.
	// One that is final is not changed any more: false.
	PutTransfer(ctx context.Context, t recharge.Transfer) (bool, error)
	// SeenOf lists the agent's transfers that are seen and not final.
	SeenOf(ctx context.Context, network, agentID string) ([]recharge.Transfer, error)
	// SeenUpTo lists transfers that are seen and not final, of blocks up to a number.
	SeenUpTo(ctx context.Context, network string, block int64, limit int) ([]recharge.Transfer, error)
	// OfOrder lists transfers that are matched to an order and seen or final, in
	// chain order.
	OfOrder(ctx context.Context, orderID string) ([]recharge.Transfer, error)
	// Known returns the sum of the final transfers to an address less those from it.
	Known(ctx context.Context, network, address string) (domain.Money, error)
	// FinalOf lists the final transfers to or from an address in blocks from
	// since on, in chain order.
	FinalOf(ctx context.Context, network, address string, since time.Time) ([]recharge.Transfer, error)

	// OwnMoves lists the final transfers between two addresses of the service, newest first, and counts
	// all of them.
	OwnMoves(ctx context.Context, network string, limit int) (list []recharge.Transfer, total int, err error)

	// SetAside keeps a transfer that could not be booked, or that it failed again.
	SetAside(ctx context.Context, a recharge.Aside) error
	// TakeBack removes a transfer from those, if it is one.
	TakeBack(ctx context.Context, k recharge.Key) error
	// Aside lists transfers that are set aside, the one that was tried longest ago first, and counts all.
	Aside(ctx context.Context, network string, limit int) (list []recharge.Aside, total int, err error)

	// PlayMoney lists the wallets with money that was paid on other networks than one, by agent; of one agent or, with an
	// empty id, of all. What left a wallet left such money first.
	PlayMoney(ctx context.Context, network, agentID string) ([]recharge.Play, error)

	// ScanCursor returns how far the blocks of a network were read completely; false before
	// the first.
	ScanCursor(ctx context.Context, network string) (recharge.ScanCursor, bool, error)
	// PutScanCursor stores a cursor. Final never goes back unless rescan is set.
	PutScanCursor(ctx context.Context, network string, m recharge.ScanCursor, rescan bool) error
}
