package payments

import (
	"context"
	"fmt"

	"agentproxy/app/crediting"
	"agentproxy/ports"
)

// settle stores a reading and does all that follows from it in one
// unit: transfers, credits, orders, events, and how far the addresses are known.
// It returns how many transfers were credited.
func (p *Watcher) settle(ctx context.Context, r crediting.Reading) (credited int, err error) {
	var s crediting.Settled
	err = p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		s, err = crediting.Settle(ctx, tx, p.ids, p.chain.Network(), p.clock.Now(), r)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("settle transfers of %s: %w", r.AgentID, err)
	}
	for _, t := range s.Credited {
		p.log.Info("USDT credited", "agent_id", t.AgentID, "order_id", t.OrderID, "amount", t.Amount.String(),
			"tx_id", t.TxID, "log_index", t.LogIndex, "block", t.Block)
	}
	for _, t := range s.Moved {
		p.log.Error("USDT moved between two payment addresses and is not credited; move it to an address outside the "+
			"account", "from", t.From, "to", t.To, "amount", t.Amount.String(), "tx_id", t.TxID, "log_index", t.LogIndex)
	}
	return len(s.Credited), nil
}
