package payments

import (
	"context"
	"fmt"

	"agentproxy/app/crediting"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// owners finds those of the addresses that transfers touch which are ours.
func (p *Watcher) owners(
	ctx context.Context, transfers []recharge.Transfer,
) (ours map[string]recharge.Address, err error) {
	if len(transfers) == 0 {
		return nil, nil
	}
	asked := map[string]bool{}
	var list []string
	for _, t := range transfers {
		for _, address := range []string{t.From, t.To} {
			if !asked[address] {
				asked[address] = true
				list = append(list, address)
			}
		}
	}
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		ours, err = tx.PayAddresses().Owned(ctx, p.chain.Network(), list)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for our addresses: %w", err)
	}
	return ours, nil
}

// sorted makes one reading an agent of transfers: who receives is credited, what
// leaves is stored beside whom it left. Between two of our addresses the operator moved it, who
// alone has their keys, so that it is no payment. Strangers' are dropped, and so is what comes with
// an amount that is not an amount of money.
func (p *Watcher) sorted(transfers []recharge.Transfer, ours map[string]recharge.Address) []crediting.Reading {
	var readings []crediting.Reading
	of := map[string]int{}
	twice := map[recharge.Key]bool{}
	for _, t := range transfers {
		to, in := ours[t.To]
		from, out := ours[t.From]
		if !in && !out || twice[t.Key] {
			continue
		}
		if t.State != recharge.Ignored && t.Amount <= 0 {
			p.log.Error("a transfer without money is not booked", "tx_id", t.TxID, "log_index", t.LogIndex)
			continue
		}
		twice[t.Key] = true
		agent := from.AgentID
		t.AgentID = ""
		switch {
		case !out:
			agent, t.AgentID = to.AgentID, to.AgentID
		case in && t.State != recharge.Ignored:
			t.Note = recharge.OwnMove
		}
		i, known := of[agent]
		if !known {
			i = len(readings)
			of[agent] = i
			readings = append(readings, crediting.Reading{AgentID: agent})
		}
		readings[i].Transfers = append(readings[i].Transfers, t)
	}
	return readings
}
