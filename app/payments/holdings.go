package payments

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Holding is an address and what the chain has on it, at the latest block.
type Holding struct {
	recharge.Address
	Balance domain.Money
}

// OwnMoves lists the newest transfers between two addresses of the service, of which none was credited.
func (p *Watcher) OwnMoves(ctx context.Context) (list []recharge.Transfer, err error) {
	err = p.store.View(ctx, func(ctx context.Context, tx repos) error {
		list, _, err = tx.Recharges().OwnMoves(ctx, p.chain.Network(), movesAtOnce)
		return err
	})
	return list, err
}

// movesAtOnce is how many own moves are listed.
const movesAtOnce = 1000

// Unexplained returns by how much the balance of an address exceeds what is known of it, and whether it is an agent's.
func (p *Watcher) Unexplained(ctx context.Context, address string) (sum domain.Money, given bool, err error) {
	balances, err := p.chain.Balances(ctx, []string{address})
	if err != nil {
		return 0, false, fmt.Errorf("read the balance of %s: %w", address, err)
	}
	err = p.store.View(ctx, func(ctx context.Context, tx repos) error {
		known, err := tx.Recharges().Known(ctx, p.chain.Network(), address)
		if err != nil {
			return err
		}
		sum = balances[0] - known
		ours, err := tx.Recharges().Owned(ctx, p.chain.Network(), []string{address})
		_, given = ours[address]
		return err
	})
	return sum, given, err
}

// Holdings lists every address of the network with its balance, by account key and index, so that the
// operator can collect payments from them. It changes nothing.
func (p *Watcher) Holdings(ctx context.Context) ([]Holding, error) {
	var ours []recharge.Address
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		ours, err = tx.Recharges().AllAddresses(ctx, p.chain.Network())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list addresses: %w", err)
	}
	slices.SortFunc(ours, func(a, b recharge.Address) int {
		return cmp.Or(cmp.Compare(a.Fingerprint, b.Fingerprint), cmp.Compare(a.Index, b.Index))
	})
	list := make([]Holding, 0, len(ours))
	for some := range slices.Chunk(ours, auditAtOnce) {
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
