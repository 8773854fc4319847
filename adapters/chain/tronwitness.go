package chain

import (
	"context"
	"fmt"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// tronWitness is a second node, read by JSON-RPC, that must have the receipts of large transfers too:
// one source that lies or was taken over then credits no more than small ones.
type tronWitness struct {
	*Tron
	above domain.Money
}

// newWitness returns the witness of a configuration, or nil without one. It has the
// network, the contract and the paces of the source, and no key.
func newWitness(cfg TronConfig) (*tronWitness, error) {
	if cfg.WitnessURL == "" {
		return nil, nil
	}
	above := cfg.WitnessAbove
	cfg.BaseURL, cfg.WitnessURL, cfg.APIKey, cfg.JSONRPC = cfg.WitnessURL, "", "", true
	t, err := NewTron(cfg)
	if err != nil {
		return nil, fmt.Errorf("the witness: %w", err)
	}
	return &tronWitness{t, above}, nil
}

// confirm returns an error unless the witness has the same final transfers of a
// transaction, or none of them is above its amount. The caller retries, so a witness
// that lags delays a payment.
func (w *tronWitness) confirm(ctx context.Context, txID string, list []recharge.Transfer) error {
	if w == nil || !slices.ContainsFunc(list, func(t recharge.Transfer) bool { return t.Amount > w.above }) {
		return nil
	}
	r, solid, err := w.node.receipt(ctx, txID, false)
	if err != nil {
		return fmt.Errorf("the witness of transaction %s: %w", txID, err)
	}
	if r == nil || !solid {
		return fmt.Errorf("%s: the witness does not have transaction %s as final yet", w.network, txID)
	}
	if err := r.check(txID); err != nil {
		return fmt.Errorf("%s: the answer of the witness is not the receipt of %s: %w", w.network, txID, err)
	}
	if !slices.EqualFunc(list, w.appendTransfers(nil, r, recharge.Final), sameTransfer) {
		w.log.Error("the witness has other transfers of a transaction: nothing of it is credited", "network", w.network,
			"tx", txID)
		return fmt.Errorf("%s: the witness has other transfers of %s", w.network, txID)
	}
	return nil
}

// sameTransfer compares what credits money; nodes round the time of a block differently.
func sameTransfer(a, b recharge.Transfer) bool {
	return a.Key == b.Key && a.Block == b.Block && a.From == b.From && a.To == b.To && a.Amount == b.Amount &&
		a.State == b.State
}
