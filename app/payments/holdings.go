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
