package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/payaddress"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Orders is how agents bring in money: orders, and what became of them. No
// call of it pays an order: Watcher alone does, by what it reads of the chain.
type Orders struct {
	cfg   Config
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
	chain ports.Chain
	keys  ports.Deriver

	// Indexes are those of new addresses.
	Indexes *payaddress.Indexes
}

// Config holds the settings of recharges.
type Config struct {
	// Off refuses recharges and hides every address: no chain is read for what is sent there.
	Off bool
	// Mark keeps the indexes that were given out outside the database; nil: nothing does.
	Mark ports.IndexMark
	// Lost returns how often rows of the database were lost while the service ran; nil: never.
	Lost func() int64
	Log  *slog.Logger // nil: none
}

// NewOrders wires the use cases.
func NewOrders(
	cfg Config, store ports.Store, clock ports.Clock, ids ports.IDs, chain ports.Chain, keys ports.Deriver,
) *Orders {
	return &Orders{cfg: cfg, store: narrow(store), clock: clock, ids: ids, chain: chain, keys: keys,
		Indexes: payaddress.New(payaddress.Config(cfg), store, clock, chain, keys)}
}

// CreateOrder asks for an order.
type CreateOrder struct {
	AgentID string
	Amount  domain.Money
	Call    idempotency.Call
	DryRun  bool
}

// OrderView is an order and how far its newest transfer is.
type OrderView struct {
	recharge.Order
	TxID          string // of the newest transfer, seen or final; empty: none
	Confirmations int    // of that transfer, at most Required
	Required      int
}

// OrderDone is the outcome of CreateOrder: a view, or the quote of a dry
// run.
type OrderDone struct {
	View     OrderView
	Quote    *ledger.Quote
	Outcome  ports.Outcome
	Replayed bool
}

// OrderDetail is an order with its transfers, for the operator.
type OrderDetail struct {
	OrderView
	Wallet    recharge.Address
	Transfers []recharge.Transfer
}

// maxClockSkew is how long before it was made an address is read: nothing can have
// arrived then, but it is the chain's clock that counts, and ours may be ahead.
// An address without transfers costs the same call whatever is asked for.
const maxClockSkew = 24 * time.Hour

// Create makes an order on the agent's own address. The address is derived when
// the agent has none under the current account key.
func (u *Orders) Create(ctx context.Context, in CreateOrder) (done OrderDone, err error) {
	if u.cfg.Off {
		return OrderDone{}, recharge.ErrOff
	}
	if err := recharge.CheckAmount(in.Amount); err != nil {
		return OrderDone{}, err
	}
	if in.DryRun {
		return u.quote(ctx, in)
	}
	index, err := u.reserve(ctx, in.AgentID)
	if err != nil {
		return OrderDone{}, err
	}
	tail := u.ids.New("")
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		// The agent and the wallet are locked before anything is read, so that of two
		// calls one comes after the other: with one key, or for the first address. A
		// purchase locks them in this order too.
		agent, err := tx.Agents().Get(ctx, in.AgentID)
		if err != nil {
			return err
		}
		if _, err := tx.Ledger().Wallet(ctx, in.AgentID); err != nil {
			return err
		}
		now := u.clock.Now()
		prev, replay, err := idempotency.FirstRun(ctx, tx, in.AgentID, in.Call, now)
		if err != nil {
			return err
		}
		if replay {
			done, err = u.replay(ctx, tx, in.AgentID, prev)
			return err
		}
		done, err = u.order(ctx, tx, agent, in, newOrder{tail, index}, now)
		return err
	})
	if err != nil {
		return OrderDone{}, err
	}
	return done, nil
}

// reserve takes an unused index for an agent that has no address yet; 0 if it has one.
func (u *Orders) reserve(ctx context.Context, agentID string) (index uint32, err error) {
	has := false
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		_, has, err = tx.PayAddresses().AddressOf(ctx, u.chain.Network(), u.keys.Fingerprint(), agentID)
		if err != nil || has {
			return err
		}
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		return u.mayOrder(ctx, tx, agent)
	})
	if err != nil || has {
		return 0, err
	}
	return u.Indexes.Take(ctx)
}

// errNoIndex means that an agent has lost its address since it was looked up.
var errNoIndex = errors.New("no index was taken for the address")

// replay returns the outcome of the first call, with the order as it is now.
func (u *Orders) replay(ctx context.Context, tx repos, agentID string, prev ports.Call) (OrderDone, error) {
	o, err := tx.Recharges().Order(ctx, agentID, prev.Resource)
	if err != nil {
		return OrderDone{}, err
	}
	v, _, err := u.view(ctx, tx, o)
	return OrderDone{View: v, Outcome: prev.Outcome, Replayed: true}, err
}

// newOrder is what was taken for an order before its unit: the end of its id, and the index of the address, 0 for
// an agent that has one.
type newOrder struct {
	tail  string
	index uint32
}

// order stores a new order, and the key of the call that asked for it.
func (u *Orders) order(ctx context.Context, tx repos, agent account.Agent, in CreateOrder, n newOrder, now time.Time) (
	OrderDone, error,
) {
	if err := u.mayOrder(ctx, tx, agent); err != nil {
		return OrderDone{}, err
	}
	a, err := u.address(ctx, tx, in.AgentID, n.index, now)
	if err != nil {
		return OrderDone{}, err
	}
	id := recharge.IDPrefix + now.UTC().Format("20060102150405") + n.tail
	o := recharge.NewOrder(id, in.AgentID, a.Network, a.Address, in.Amount, now)
	if err := tx.Recharges().InsertOrder(ctx, o); err != nil {
		return OrderDone{}, err
	}
	if err := idempotency.Store(ctx, tx, in.AgentID, in.Call, id, ports.Created, now); err != nil {
		return OrderDone{}, err
	}
	return OrderDone{View: OrderView{Order: o, Required: u.chain.Required()}, Outcome: ports.Created}, nil
}

// mayOrder refuses whom the operator shut out, and who has too many orders open. Orders on a
// network that is no longer configured do not count: no scan reads it, so they would stay open.
func (u *Orders) mayOrder(ctx context.Context, tx repos, agent account.Agent) error {
	if agent.Status != account.Active {
		return account.ErrDisabled
	}
	open, err := tx.Recharges().OpenOrders(ctx, u.chain.Network(), agent.ID)
	if err != nil {
		return err
	}
	if open >= recharge.MaxOpen {
		return recharge.ErrLimit.With("limit", recharge.MaxOpen)
	}
	return nil
}

// address returns the agent's receiving address under the current account key. Money that is
// sent to a wrong address is gone: one that is not valid on the chain is
// never stored and never shown.
func (u *Orders) address(
	ctx context.Context, tx repos, agentID string, index uint32, now time.Time,
) (recharge.Address, error) {
	network, key := u.chain.Network(), u.keys.Fingerprint()
	a, found, err := tx.PayAddresses().AddressOf(ctx, network, key, agentID)
	if err != nil {
		return a, err
	}
	if !found {
		if index == 0 {
			return a, errNoIndex
		}
		a = recharge.Address{Network: network, Fingerprint: key, Index: index, AgentID: agentID, CreatedAt: now,
			ReadThrough: now.Add(-maxClockSkew)}
		if a.Address, err = u.keys.Address(a.Index); err != nil {
			return a, fmt.Errorf("derive address %d: %w", a.Index, err)
		}
	}
	if !u.chain.Valid(a.Address) {
		return a, fmt.Errorf("address %d of %s: %q is not an address of %s", a.Index, agentID, a.Address, network)
	}
	if !found {
		err = tx.PayAddresses().InsertAddress(ctx, a)
	}
	return a, err
}

// quote validates everything and changes nothing. A recharge costs nothing.
func (u *Orders) quote(ctx context.Context, in CreateOrder) (done OrderDone, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, in.AgentID)
		if err != nil {
			return err
		}
		if err := u.mayOrder(ctx, tx, agent); err != nil {
			return err
		}
		w, err := ledger.NewBook(tx, u.ids, u.clock.Now()).Wallet(ctx, in.AgentID, true)
		done = OrderDone{Quote: &ledger.Quote{BalanceAfter: w.Balance() + in.Amount}, Outcome: ports.Completed}
		return err
	})
	if err != nil {
		return OrderDone{}, err
	}
	return done, nil
}

// view adds how far the newest transfer of an order is, and returns all of them.
func (u *Orders) view(ctx context.Context, tx repos, o recharge.Order) (OrderView, []recharge.Transfer, error) {
	v := OrderView{Order: u.visible(o), Required: u.chain.Required()}
	all, err := tx.Transfers().OfOrder(ctx, o.ID)
	if err != nil || len(all) == 0 {
		return v, all, err
	}
	newest := all[len(all)-1]
	v.TxID, v.Confirmations = newest.TxID, v.Required
	if newest.State != recharge.Final {
		mark, _, err := tx.Transfers().ScanCursor(ctx, o.Network)
		if err != nil {
			return v, all, err
		}
		v.Confirmations = int(min(max(mark.Latest-newest.Block, 0), int64(v.Required)))
	}
	return v, all, nil
}

// visible returns an order, without its address while payments are off.
func (u *Orders) visible(o recharge.Order) recharge.Order {
	if u.cfg.Off {
		o.Address = ""
	}
	return o
}

// Get reads one order.
func (u *Orders) Get(ctx context.Context, agentID, id string) (v OrderView, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		o, err := tx.Recharges().Order(ctx, agentID, id)
		if err != nil {
			return err
		}
		v, _, err = u.view(ctx, tx, o)
		return err
	})
	return v, err
}

// List lists an agent's orders, newest first; an empty status lists all.
func (u *Orders) List(
	ctx context.Context, agentID string, of recharge.Status, page domain.Page,
) (domain.List[recharge.Order], error) {
	if agentID == "" { // the store would list those of all agents
		return domain.List[recharge.Order]{}, account.ErrNotFound
	}
	return u.list(ctx, agentID, of, page)
}

// All lists every agent's orders, for the operator.
func (u *Orders) All(ctx context.Context, of recharge.Status, page domain.Page) (domain.List[recharge.Order], error) {
	return u.list(ctx, "", of, page)
}

func (u *Orders) list(
	ctx context.Context, agentID string, of recharge.Status, page domain.Page,
) (list domain.List[recharge.Order], err error) {
	if of != "" && !slices.Contains(recharge.Statuses, of) {
		return list, domain.InvalidField("status", "must be the status of a recharge order")
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Recharges().Orders(ctx, agentID, of, page)
		return err
	})
	for i := range list.Items {
		list.Items[i] = u.visible(list.Items[i])
	}
	return list, err
}

// Show reads an order with its transfers, for the operator.
func (u *Orders) Show(ctx context.Context, id string) (d OrderDetail, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		o, err := tx.Recharges().LoadOrder(ctx, id)
		if err != nil {
			return err
		}
		if d.OrderView, d.Transfers, err = u.view(ctx, tx, o); err != nil {
			return err
		}
		ours, err := tx.PayAddresses().Owned(ctx, o.Network, []string{o.Address})
		d.Wallet = ours[o.Address]
		return err
	})
	return d, err
}
