package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Recharges keeps orders, the addresses they are paid to, and the transfers that
// arrived there.
type Recharges interface {
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

	InsertOrder(ctx context.Context, o recharge.Order) error
	// Order returns an order of the agent, or recharge.ErrNotFound.
	Order(ctx context.Context, agentID, id string) (recharge.Order, error)
	// LoadOrder is like Order for the operator, for an order of any agent.
	LoadOrder(ctx context.Context, id string) (recharge.Order, error)
	// PutOrder writes status, what was received and when it was paid.
	PutOrder(ctx context.Context, o recharge.Order) error
	// Orders lists orders, newest first; an empty agent id or status lists all.
	Orders(ctx context.Context, agentID string, of recharge.Status, page domain.Page) (domain.List[recharge.Order], error)
	// OpenOrders counts the agent's open orders on a network.
	OpenOrders(ctx context.Context, network, agentID string) (int, error)
	// Payable lists the agent's orders on a network that are open, or expired
	// with a window that closed at the time or later, oldest first.
	Payable(ctx context.Context, network, agentID string, closed time.Time) ([]recharge.Order, error)
	// Overdue lists agents that have an open order whose window closed before the
	// time.
	Overdue(ctx context.Context, network string, before time.Time, limit int) ([]string, error)

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
