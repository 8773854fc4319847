package chain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// tronWitness is a second node, read by JSON-RPC, that must have the receipts of large transfers too, and
// those of small ones beyond a sum an hour: one source that lies or was taken over then credits no more than that.
type tronWitness struct {
	*Tron
	above domain.Money

	mu    sync.Mutex
	alone []unwitnessed // of the last hour, the oldest first
}

// unwitnessed is what the source alone made final.
type unwitnessed struct {
	at     time.Time
	amount domain.Money
}

// aloneFor is how long what the source alone made final counts, and aloneTimes how many times the amount of a large
// transfer it may be in that time.
const (
	aloneFor   = time.Hour
	aloneTimes = 10
)

// mayBeAlone reports whether a transaction needs no witness, and counts it then.
func (w *tronWitness) mayBeAlone(list []recharge.Transfer, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.alone = slices.DeleteFunc(w.alone, func(u unwitnessed) bool { return now.Sub(u.at).Abs() > aloneFor })
	left := aloneTimes * w.above
	for _, u := range w.alone {
		left -= u.amount
	}
	var sum domain.Money
	for _, t := range list {
		if t.Amount > w.above || t.Amount > left-sum {
			return false
		}
		sum += t.Amount
	}
	w.alone = append(w.alone, unwitnessed{now, sum})
	return true
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
	return &tronWitness{Tron: t, above: above}, nil
}

// confirm returns an error unless the witness has the same final transfers of a
// transaction, or it may be without. The caller retries, so a witness that lags delays a payment.
func (w *tronWitness) confirm(ctx context.Context, txID string, list []recharge.Transfer) error {
	if w == nil || w.mayBeAlone(list, time.Now()) {
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
