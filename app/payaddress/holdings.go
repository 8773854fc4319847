package payaddress

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Holding is an address and what the chain has on it, at the latest block.
type Holding struct {
	recharge.Address
	Balance domain.Money
}

// Holder reads what the payment addresses hold and what became of it. It changes nothing.
type Holder struct {
	store ports.Unit[repos]
	chain ports.Chain
}

// balancesAtOnce is how many balances are read at a time.
const balancesAtOnce = 100

// NewHolder wires the use cases.
func NewHolder(store ports.Store, chain ports.Chain) *Holder {
	return &Holder{store: ports.Narrow(store, func(tx ports.Tx) repos { return tx }), chain: chain}
}

// Aside lists transfers that could not be booked, and counts all.
func (p *Holder) Aside(ctx context.Context, limit int) (list []recharge.Aside, total int, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, total, err = tx.Transfers().Aside(ctx, p.chain.Network(), limit)
		return err
	})
	return list, total, err
}

// OwnMoves lists the newest transfers between two addresses of the service, of which none was credited.
func (p *Holder) OwnMoves(ctx context.Context) (list []recharge.Transfer, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, _, err = tx.Transfers().OwnMoves(ctx, p.chain.Network(), movesAtOnce)
		return err
	})
	return list, err
}

// movesAtOnce is how many own moves are listed.
const movesAtOnce = 1000

// Unexplained returns by how much the balance of an address exceeds what is known of it, and whether it is an agent's.
func (p *Holder) Unexplained(ctx context.Context, address string) (sum domain.Money, given bool, err error) {
	balances, err := p.chain.Balances(ctx, []string{address})
	if err != nil {
		return 0, false, fmt.Errorf("read the balance of %s: %w", address, err)
	}
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		known, err := tx.Transfers().Known(ctx, p.chain.Network(), address)
		if err != nil {
			return err
		}
		sum = balances[0] - known
		ours, err := tx.PayAddresses().Owned(ctx, p.chain.Network(), []string{address})
		_, given = ours[address]
		return err
	})
	return sum, given, err
}

// Holdings lists every address of the network with its balance, by account key and index, so that the
// operator can collect payments from them. It changes nothing.
func (p *Holder) Holdings(ctx context.Context) ([]Holding, error) {
	var ours []recharge.Address
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		ours, err = tx.PayAddresses().AllAddresses(ctx, p.chain.Network())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	slices.SortFunc(ours, func(a, b recharge.Address) int {
		return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Index, b.Index))
	})
	list := make([]Holding, 0, len(ours))
	for some := range slices.Chunk(ours, balancesAtOnce) {
		addresses := make([]string, len(some))
		for i, a := range some {
			addresses[i] = a.Address
		}
		balances, err := p.chain.Balances(ctx, addresses)
		if err != nil {
			return nil, fmt.Errorf("read balances: %w", err)
		}
		for i, a := range some {
			list = append(list, Holding{a, balances[i]})
		}
	}
	return list, nil
}
