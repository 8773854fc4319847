package chain

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// tronNode reads what depends on the kind of the source. Logs and balances by the
// batch are read in one way from all.
type tronNode interface {
	final(ctx context.Context) (recharge.Head, error)
	latest(ctx context.Context) (recharge.Head, error)
	// receipt returns nil if the node has no receipt. Solid is true if the block of it
	// is solidified on the node that answered; a young one is known not to be.
	receipt(ctx context.Context, txID string, young bool) (r *tronReceipt, solid bool, err error)
	// touching names the transactions that may touch an address from a time on.
	touching(ctx context.Context, address string, since time.Time) ([]hint, error)
	// balance is that of an address at the final head.
	balance(ctx context.Context, owner [20]byte) (domain.Money, error)
}

// rpcNode is a java-tron node, or a vendor of such, that is read by JSON-RPC alone.
type rpcNode struct{ *Tron }

func (n rpcNode) final(ctx context.Context) (recharge.Head, error)  { return n.block(ctx, "finalized") }
func (n rpcNode) latest(ctx context.Context) (recharge.Head, error) { return n.block(ctx, "latest") }

func blockCall(name string) rpcCall { return newCall("eth_getBlockByNumber", name, false) }

func (n rpcNode) block(ctx context.Context, name string) (recharge.Head, error) {
	var b *rpcBlock
	if err := n.source.rpc(ctx, blockCall(name), &b); err != nil {
		return recharge.Head{}, err
	}
	if b == nil || b.Number <= 0 || b.Time <= 0 {
		return recharge.Head{}, fmt.Errorf("%s: there is no block %s", n.network, name)
	}
	return recharge.Head{Number: int64(b.Number), Time: time.Unix(int64(b.Time), 0).UTC()}, nil
}

// rpcReceipt has the fields used of a receipt.
type rpcReceipt struct {
	TxID   string   `json:"transactionHash"`
	Block  hexInt   `json:"blockNumber"`
	Status string   `json:"status"`
	Logs   []rpcLog `json:"logs"`
}

// receipt asks in one batch for the final head too, so that both come from one
// node: a node on a fork does not count its blocks as final.
func (n rpcNode) receipt(ctx context.Context, txID string, _ bool) (*tronReceipt, bool, error) {
	var in *rpcReceipt
	var head *rpcBlock
	err := n.source.batch(ctx, []rpcCall{newCall("eth_getTransactionReceipt", "0x"+txID), blockCall("finalized")},
		[]any{&in, &head})
	if err != nil || in == nil {
		return nil, false, err
	}
	if head == nil {
		return nil, false, fmt.Errorf("%s: there is no final block", n.network)
	}
	r := &tronReceipt{ID: strings.TrimPrefix(in.TxID, "0x"), Block: int64(in.Block)}
	if in.Status == "0x1" {
		r.Receipt.Result = "SUCCESS"
	}
	for i := range in.Logs {
		r.Log = append(r.Log, in.Logs[i].event())
		if at := in.Logs[i].Time; at != nil {
			r.Time = int64(*at) * 1000
		}
	}
	if r.Time == 0 {
		made, err := n.block(ctx, in.Block.String())
		if err != nil {
			return nil, false, err
		}
		r.Time = made.Time.UnixMilli()
	}
	return r, in.Block <= head.Number, nil
}

// touching reads the logs of both directions. A range of them costs two calls for
// four hours of the chain.
func (n rpcNode) touching(ctx context.Context, address string, since time.Time) (hints []hint, err error) {
	owner, err := decodeAddress(address)
	if err != nil {
		return nil, err
	}
	heads, err := n.known(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[string]bool{}
	for _, topic := range []int{fromTopic, toTopic} {
		logs, err := n.logs(ctx, topic, map[[20]byte]bool{owner: true}, blockBefore(heads.Final, since), heads.Latest.Number)
		if err != nil {
			return nil, err
		}
		for _, l := range logs {
			if !listed[l.TxID] {
				listed[l.TxID] = true
				// Only whether it is final and for how long depends on the time.
				hints = append(hints, hint{l.TxID, heads.Final.Time.Add(time.Duration(int64(l.Block)-heads.Final.Number) * slot)})
			}
		}
	}
	return hints, nil
}

// stillTries is how often a balance is read until no block comes in between.
const stillTries = 5

var errNotStill = errors.New("a block came whenever the balance was read")

// balance takes back what is not final: a node executes calls on its latest block
// alone.
func (n rpcNode) balance(ctx context.Context, owner [20]byte) (domain.Money, error) {
	heads, err := n.known(ctx)
	if err != nil {
		return 0, err
	}
	word := "0x" + strings.Repeat("0", 24) + hex.EncodeToString(owner[:])
	above := func(topic int) rpcCall {
		topics := []any{"0x" + transferTopic, nil, nil}
		topics[topic] = word
		return newCall("eth_getLogs", map[string]any{"address": "0x" + hex.EncodeToString(n.contract[:]),
			"fromBlock": hexInt(heads.Final.Number).String(), "toBlock": "latest", "topics": topics})
	}
	for range stillTries {
		var before, after hexInt
		var amount string
		var in, out []rpcLog
		err := n.source.batch(ctx, []rpcCall{newCall("eth_blockNumber"), n.balanceCall(owner), above(toTopic),
			above(fromTopic), newCall("eth_blockNumber")}, []any{&before, &amount, &in, &out, &after})
		if err != nil {
			return 0, err
		}
		if before != after {
			continue
		}
		sum, err := n.amount(amount)
		for _, part := range []struct {
			logs []rpcLog
			sign domain.Money
		}{{in, -1}, {out, 1}} {
			for i := range part.logs {
				if l := &part.logs[i]; err == nil && int64(l.Block) > heads.Final.Number && !l.Removed {
					var moved domain.Money
					moved, err = n.amount(l.Data)
					sum += part.sign * moved
				}
			}
		}
		return sum, err
	}
	return 0, fmt.Errorf("%s: %w", n.network, errNotStill)
}

// balanceCall calls balanceOf of the token's contract (TIP-20, EIP-20).
func (t *Tron) balanceCall(owner [20]byte) rpcCall {
	return newCall("eth_call", map[string]string{"to": "0x" + hex.EncodeToString(t.contract[:]),
		"data": "0x70a08231" + strings.Repeat("0", 24) + hex.EncodeToString(owner[:])}, "latest")
}

// amount decodes an amount of 32 bytes.
func (t *Tron) amount(text string) (domain.Money, error) {
	var word [32]byte
	if !decodeHex(word[:], strings.TrimPrefix(text, "0x")) {
		return 0, fmt.Errorf("%s: %q is not an amount of 32 bytes", t.network, excerpt(text))
	}
	amount, ok := smallAmount(&word)
	if !ok {
		return 0, fmt.Errorf("%s: an amount is above what USDT can have", t.network)
	}
	return amount, nil
}

// Used reads what addresses hold of the token and of TRX at the latest block, fifty addresses a call.
func (t *Tron) Used(ctx context.Context, addresses []string) ([]bool, error) {
	var list []bool
	for part := range slices.Chunk(addresses, maxBatch/2) {
		calls, into := make([]rpcCall, 2*len(part)), make([]any, 2*len(part))
		tokens, coins := make([]string, len(part)), make([]hexInt, len(part))
		for i, address := range part {
			owner, err := decodeAddress(address)
			if err != nil {
				return nil, fmt.Errorf("%s: use of %q: %w", t.network, address, err)
			}
			calls[2*i], into[2*i] = t.balanceCall(owner), &tokens[i]
			calls[2*i+1] = newCall("eth_getBalance", "0x"+hex.EncodeToString(owner[:]), "latest")
			into[2*i+1] = &coins[i]
		}
		if err := t.source.batch(ctx, calls, into); err != nil {
			return nil, err
		}
		for i := range part {
			held, err := t.amount(tokens[i])
			if err != nil {
				return nil, err
			}
			list = append(list, held > 0 || coins[i] > 0)
		}
	}
	return list, nil
}

// Balances reads balances at the latest block, a hundred a call.
func (t *Tron) Balances(ctx context.Context, addresses []string) ([]domain.Money, error) {
	var list []domain.Money
	for part := range slices.Chunk(addresses, maxBatch) {
		calls, texts, into := make([]rpcCall, len(part)), make([]string, len(part)), make([]any, len(part))
		for i, address := range part {
			owner, err := decodeAddress(address)
			if err != nil {
				return nil, fmt.Errorf("%s: balance of %q: %w", t.network, address, err)
			}
			calls[i], into[i] = t.balanceCall(owner), &texts[i]
		}
		if err := t.source.batch(ctx, calls, into); err != nil {
			return nil, err
		}
		for _, text := range texts {
			amount, err := t.amount(text)
			if err != nil {
				return nil, err
			}
			list = append(list, amount)
		}
	}
	return list, nil
}
