// Package recharge holds the rules of money that comes in as USDT on TRON: the
// order's states, which transfer pays which order, and what a transfer is
// worth. Money follows transfers, not orders: every final transfer to an
// agent's address is credited once, independent of the orders.
package recharge

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
)

// The bounds of an order, in US dollars; 1 USDT is 1 USD.
const (
	MinAmount = domain.Dollar
	MaxAmount = 10_000 * domain.Dollar
	cent      = domain.Dollar / 100
)

// Window is how long an order waits for its money, and Late how long after that
// money still pays it. Both are measured by block time.
const (
	Window = 30 * time.Minute
	Late   = 72 * time.Hour
)

// MaxOpen is how many orders of one agent may be open.
const MaxOpen = 10

// IDPrefix begins the id of every order.
const IDPrefix = "PAY"

// Refusals about recharges.
var (
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "ORDER_NOT_FOUND",
		Message: "no recharge order has this id; list your recharge orders to find it"}
	ErrOff = &domain.Error{Kind: domain.Unavailable, Code: "PAYMENTS_OFF",
		Message: "this service takes no payments; ask its operator how to add to the balance"}
	ErrNoAddress = domain.ErrUnavailable.Msgf("whether a new payment address is unused cannot be read from the chain " +
		"now; try again in half a minute").After(30 * time.Second)
	ErrLimit = &domain.Error{Kind: domain.RateLimited, Code: "ORDER_LIMIT_REACHED",
		RetryAfter: time.Minute, Message: "too many recharge orders are open; pay one or wait until one expires"}
)

// CheckAmount refuses an amount outside the bounds or with more than two
// decimals.
func CheckAmount(m domain.Money) error {
	if m < MinAmount || m > MaxAmount || m%cent != 0 {
		return domain.InvalidField("amount", "must be %s to %s with at most 2 decimals", MinAmount, MaxAmount)
	}
	return nil
}

// Status is the state of an order.
type Status string

// The states of an order.
const (
	Pending    Status = "pending"    // no transfer was seen yet
	Confirming Status = "confirming" // a transfer was seen, the sum is not final yet
	Paid       Status = "paid"       // final transfers reach the amount; never changes again
	Expired    Status = "expired"    // the window closed on a short sum; may still be paid late
	Failed     Status = "failed"     // every seen transfer is gone and the window is closed
)

// Statuses lists every state.
var Statuses = []Status{Pending, Confirming, Paid, Expired, Failed}

// Open reports whether the order counts against MaxOpen.
func (s Status) Open() bool { return s == Pending || s == Confirming }

// Order is what an agent means to pay.
type Order struct {
	ID        string
	AgentID   string
	Network   string // of the chain, such as "tron-mainnet"
	Address   string // the agent's own, base58check
	Amount    domain.Money
	Received  domain.Money // final transfers matched to it, overpayment included
	Status    Status
	CreatedAt time.Time
	ExpiresAt time.Time // the window closes here, by block time
	PaidAt    time.Time // block time of the transfer that reached the amount
}

// MainNetwork is the one network whose money is real.
const MainNetwork = "tron-mainnet"

// Test reports whether the order is on a network whose money is not real.
func (o Order) Test() bool { return o.Network != MainNetwork }

// NewOrder returns a pending order. The amount was checked.
func NewOrder(id, agentID, network, address string, amount domain.Money, now time.Time) Order {
	return Order{ID: id, AgentID: agentID, Network: network, Address: address, Amount: amount, Status: Pending,
		CreatedAt: now, ExpiresAt: now.Add(Window)}
}

// Remainder returns what the order still waits for, 0 when it is reached.
func (o Order) Remainder() domain.Money { return max(o.Amount-o.Received, 0) }

// Partial reports whether a part of the amount was received, and not all.
func (o Order) Partial() bool { return o.Received > 0 && o.Remainder() > 0 }

// accepts reports whether money of this block time may still change the order.
func (o Order) accepts(at time.Time) bool {
	return o.Status != Paid && o.Status != Failed && !at.After(o.ExpiresAt.Add(Late))
}

// State is the state of a transfer.
type State string

// The states of a transfer. Final never changes; what is orphaned may come back
// in another block.
const (
	Seen     State = "seen"     // in a block that may still be replaced
	Final    State = "final"    // solidified and credited
	Orphaned State = "orphaned" // its block was replaced
	Ignored  State = "ignored"  // no money, see Note
)

// OwnMove is the note of a transfer from one address of the service to another. Only the operator has their
// keys, so it is no payment and is not credited.
const OwnMove = "moved between addresses of the service"

// FirstIndex is the first index of an account key that is given out: wallets show the address of index 0 as
// that of the account, to which their owner collects.
const FirstIndex = 1

// IndexJump is how many indexes are left out after the database went back in time: those that were given out
// since are not known.
const IndexJump = 10_000

// Key identifies a transfer.
type Key struct {
	Network  string
	TxID     string // 64 lower case hexadecimal digits
	LogIndex int    // position in the logs of the transaction
}

// Transfer is one USDT Transfer event from or to an address of the service.
type Transfer struct {
	Key
	From, To  string       // base58check
	Amount    domain.Money // above 0, but for an ignored one
	Block     int64
	BlockTime time.Time
	State     State
	Note      string // why it is ignored, or OwnMove

	AgentID   string // whose address To is; empty when From is ours
	OrderID   string // the order it is matched to; of a seen one provisional
	FirstSeen time.Time
}

// Compare orders transfers as the chain does: by block, then by log index; the
// transaction decides between equals, so that the order never depends on how
// they were read.
func Compare(a, b Transfer) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex), strings.Compare(a.TxID, b.TxID))
}

// Head is the end of a chain, or of its final part.
type Head struct {
	Number int64
	Time   time.Time
}

// Heads are both ends of a chain. Only what is at or below Final counts.
type Heads struct {
	Latest Head
	Final  Head
}

// Address is where an agent's money arrives.
type Address struct {
	Network     string
	Fingerprint string // of the account key it was derived from
	Index       uint32 // of the derivation: m/44'/195'/0'/0/Index
	AgentID     string
	Address     string // base58check
	CreatedAt   time.Time
	ReadThrough time.Time    // chain time up to which every transfer of it is known
	AuditedAt   time.Time    // when its balance was last compared with the chain's
	Drift       domain.Money // chain balance less known transfers, at AuditedAt
}

// match returns the index of the order that a transfer pays, or -1: the oldest
// whose remainder it equals, else the oldest that was created before its block.
// Orders whose window is open at the block time come before those that are paid
// late, so that money does not go to an abandoned order while one of the same
// sum waits.
func match(orders []Order, t Transfer) int {
	best, rank := -1, 0
	for i, o := range orders {
		if !o.accepts(t.BlockTime) || o.Remainder() == 0 {
			continue
		}
		r := 0
		late := t.BlockTime.After(o.ExpiresAt)
		switch {
		case o.Remainder() == t.Amount && !late:
			r = 4
		case o.Remainder() == t.Amount:
			r = 3
		case !o.CreatedAt.Before(t.BlockTime):
			continue
		case !late:
			r = 2
		default:
			r = 1
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

// Settlement is what transfers did to the orders of one agent.
type Settlement struct {
	Orders    []Order    // those that changed
	Transfers []Transfer // all that were given, each with its order
}

// Settle works out the orders of one agent. Final are transfers that were never
// settled before: each is matched once, and as a whole, in chain order. Seen
// are all that the agent has in blocks that may still be replaced: they only
// show. Both come with the order that they were shown for before. Through is the
// chain time up to which the final transfers of the agent are completely known:
// a window closes when it is past.
//
// Orders are those that may still change, in any order. The result does not
// depend on how the transfers were split over calls, as long as each call gets
// the chain completely up to its Through.
func Settle(orders []Order, final, seen []Transfer, through time.Time) Settlement {
	before := slices.Clone(orders)
	slices.SortFunc(before, oldestFirst)
	after := slices.Clone(before)
	out := Settlement{Transfers: slices.Concat(final, seen)}
	finals, shown := out.Transfers[:len(final)], out.Transfers[len(final):]
	slices.SortFunc(finals, Compare)
	slices.SortFunc(shown, Compare)
	moved := map[string]bool{} // orders that something was shown for which pays another
	assign := func(t *Transfer, to []Order) int {
		n, id := match(to, *t), ""
		if n >= 0 {
			id = to[n].ID
			to[n] = to[n].receive(*t)
		}
		moved[t.OrderID] = moved[t.OrderID] || t.OrderID != id
		t.OrderID = id
		return n
	}
	for i := range finals {
		finals[i].State = Final
		assign(&finals[i], after)
	}
	preview := slices.Clone(after)
	waiting := make([]bool, len(after))
	for i := range shown {
		if n := assign(&shown[i], preview); n >= 0 {
			waiting[n] = true
		}
	}
	for i := range after {
		after[i].Status = after[i].nextStatus(waiting[i], moved[after[i].ID], through)
		if after[i] != before[i] {
			out.Orders = append(out.Orders, after[i])
		}
	}
	return out
}

func oldestFirst(a, b Order) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
}

// receive adds a transfer to what the order received.
func (o Order) receive(t Transfer) Order {
	o.Received += t.Amount
	if o.Received >= o.Amount {
		o.Status, o.PaidAt = Paid, t.BlockTime
	}
	return o
}

// nextStatus returns the state that follows from what the order received, from
// whether a transfer is seen that is not final yet, and from the window. If the
// seen money disappears the order has failed; if it stayed and is too little,
// or moved to another order, the order has expired.
func (o Order) nextStatus(waiting, moved bool, through time.Time) Status {
	closed := through.After(o.ExpiresAt)
	switch {
	case o.Status == Paid || o.Status == Failed:
		return o.Status
	case waiting:
		return Confirming
	case closed && o.Status == Confirming && o.Received == 0 && !moved:
		return Failed
	case closed || o.Status == Expired:
		return Expired
	case o.Received > 0:
		return Confirming
	default:
		return Pending
	}
}

// ScanCursor is how far a chain was read.
type ScanCursor struct {
	Final  Head      // complete up to here, block by block; zero: never read by blocks
	Latest int64     // the newest known block, for display only
	ReadAt time.Time // when the chain last answered
}
