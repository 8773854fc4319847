package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentproxy/domain/recharge"
)

// The bounds of eth_getLogs in java-tron.
const (
	maxRange     = 5000 // blocks
	maxAddresses = 1000 // values of one topic
	// tooManyLogs is the code of an answer that would be too long.
	tooManyLogs = -32005
)

// slot is the time of a block at least: a producer that misses its turn leaves a
// gap.
const slot = 3 * time.Second

// lagBlocks is indexLag in blocks.
const lagBlocks = int64(indexLag / slot)

// Since returns a block that is not later than a time, by the final head that was
// read last. Producers leave slots out, so it may be much earlier.
func (t *Tron) Since(ctx context.Context, at time.Time) (int64, error) {
	heads, err := t.known(ctx)
	if err != nil {
		return 0, err
	}
	return blockBefore(heads.Final, at), nil
}

func blockBefore(final recharge.Head, at time.Time) int64 {
	age := max(final.Time.Sub(at), 0)
	return max(final.Number-int64(age/slot)-1, 0) // rounded down, and an age of centuries does not overflow
}

// Incoming reads the logs of the token by recipient, and then the receipts of their
// transactions, which alone decide: the index of a log counts in its block, nodes
// were seen to leave logs out, and one on a fork has others.
func (t *Tron) Incoming(ctx context.Context, to []string, first, last int64) ([]recharge.Transfer, error) {
	heads, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	wanted := make(map[[20]byte]bool, len(to))
	for _, address := range to {
		b, err := decodeAddress(address)
		if err != nil {
			return nil, fmt.Errorf("%s: transfers to %q: %w", t.network, address, err)
		}
		wanted[b] = true
	}
	logs, err := t.logs(ctx, toTopic, wanted, first, last)
	if err != nil {
		return nil, err
	}
	var list []recharge.Transfer
	asked := map[string]bool{}
	for _, l := range logs {
		if asked[l.TxID] {
			continue
		}
		asked[l.TxID] = true
		all, err := t.logged(ctx, l, heads.Final)
		if err != nil {
			return nil, err
		}
		for _, tr := range all {
			if b, err := decodeAddress(tr.To); err == nil && wanted[b] && tr.Block >= first && tr.Block <= last {
				list = append(list, tr)
			}
		}
	}
	slices.SortFunc(list, recharge.Compare)
	return list, nil
}

// logged reads the receipt of a transaction that a log names.
func (t *Tron) logged(ctx context.Context, l rpcLog, final recharge.Head) ([]recharge.Transfer, error) {
	block := int64(l.Block)
	young := block > final.Number
	seen := l.TxID + l.Hash // until its block is replaced or final, nothing of it changes
	if list, ok := t.receipts.GetIfPresent(seen); ok && young {
		return list, nil
	}
	list, found, err := t.receipt(ctx, l.TxID, final, young)
	switch {
	case err != nil:
		return nil, err
	case found && young && len(list) > 0 && list[0].Block == block:
		t.receipts.Set(seen, list)
	case !found && !young && final.Number-block < lagBlocks:
		// Either a node lags, then to leave it out would be a gap below the head, or
		// its block was replaced, then waiting must end.
		return nil, fmt.Errorf("%s: transaction %s is logged and has no receipt yet", t.network, l.TxID)
	case !found && !young:
		t.log.Warn("a log has no receipt and is left out", "network", t.network, "tx", l.TxID, "block", block)
	}
	return list, nil
}

// The topics of a Transfer that hold its parties.
const (
	fromTopic = 1
	toTopic   = 2
)

// logs lists the token's transfers of more than nothing with one of the addresses
// in a topic, in blocks first to last.
func (t *Tron) logs(ctx context.Context, topic int, addresses map[[20]byte]bool, first, last int64) ([]rpcLog, error) {
	words := make([]string, 0, len(addresses))
	for b := range addresses {
		words = append(words, "0x"+strings.Repeat("0", 24)+hex.EncodeToString(b[:]))
	}
	slices.Sort(words)
	var all []rpcLog
	for from := first; from <= last; from += maxRange {
		for part := range slices.Chunk(words, maxAddresses) {
			found, err := t.someLogs(ctx, topic, part, from, min(from+maxRange-1, last))
			if err != nil {
				return nil, err
			}
			for i := range found {
				if t.concerns(&found[i], topic, addresses, first, last) {
					all = append(all, found[i])
				}
			}
		}
	}
	return all, nil
}

// someLogs reads the logs of a range, in halves if they are too many for one
// answer.
func (t *Tron) someLogs(ctx context.Context, topic int, words []string, first, last int64) ([]rpcLog, error) {
	topics := []any{"0x" + transferTopic, nil, nil}
	topics[topic] = words
	var found []rpcLog
	err := t.source.rpc(ctx, newCall("eth_getLogs", map[string]any{"address": "0x" + hex.EncodeToString(t.contract[:]),
		"fromBlock": hexInt(first).String(), "toBlock": hexInt(last).String(), "topics": topics}), &found)
	if tooMany := new(rpcError); !errors.As(err, &tooMany) || tooMany.Code != tooManyLogs {
		return found, err
	}
	half := func(words []string, first, last int64) {
		if err != nil {
			return
		}
		var some []rpcLog
		some, err = t.someLogs(ctx, topic, words, first, last)
		found = append(found, some...)
	}
	switch {
	case first < last:
		err = nil
		middle := first + (last-first)/2
		half(words, first, middle)
		half(words, middle+1, last)
	case len(words) > 1:
		err = nil
		half(words[:len(words)/2], first, last)
		half(words[len(words)/2:], first, last)
	}
	return found, err
}

// concerns checks a log again: what a source does not understand it ignores. It
// writes the id of the transaction in its normal form.
func (t *Tron) concerns(l *rpcLog, topic int, addresses map[[20]byte]bool, first, last int64) bool {
	id, named := normalTx(strings.TrimPrefix(l.TxID, "0x"))
	e := l.event()
	if !named || l.Removed || int64(l.Block) < first || int64(l.Block) > last || !t.isTransfer(&e) {
		return false
	}
	l.TxID = id
	party, ok := topicAddress(e.Topics[topic])
	// Poisoning with nothing comes in hundreds, and a receipt costs a call.
	return ok && addresses[party] && e.Data != strings.Repeat("0", 64)
}
