package chain

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

const (
	// tronRequired is the number of super representatives that must build on a
	// block until it is solidified: more than 70 percent of 27 (TRON developer
	// documentation, "Consensus", confirmation of blocks).
	tronRequired = 19
	// receiptWeight bounds the cache of final receipts, in transfers and
	// receipts: about 10 MB.
	receiptWeight = 50_000
	// indexLag is the time after finality during which a listed transaction without
	// a receipt is attributed to a lagging node, and later to a replaced block.
	indexLag = 10 * time.Minute
)

// Tron reads USDT on TRON. Logs and the index of an address only name candidate
// transactions: amounts are read from the events of their receipts, and finality
// from the node's solidified state.
type Tron struct {
	network  string
	address  string   // of the token
	contract [20]byte // the same
	source   *tronSource
	node     tronNode
	witness  *tronWitness // of large transfers; nil without one
	log      *slog.Logger
	receipts cache.Cache[string, []recharge.Transfer] // of final ones, which never change

	mu    sync.Mutex
	heads recharge.Heads // the highest that were read
}

var _ ports.Chain = (*Tron)(nil)

// NewTron returns a Tron for a valid configuration. It makes no call.
func NewTron(cfg TronConfig) (*Tron, error) {
	cfg, contract, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	t := &Tron{network: cfg.Network, address: cfg.Contract, contract: contract, source: newTronSource(cfg),
		log: cfg.Logger, receipts: cache.New(cache.Bounds[string, []recharge.Transfer]{Weight: receiptWeight,
			Weigh: func(_ string, list []recharge.Transfer) uint32 { return uint32(1 + len(list)) }})}
	t.node = restNode{t}
	if cfg.JSONRPC {
		t.node = rpcNode{t}
	}
	if t.witness, err = newWitness(cfg); err != nil {
		return nil, err
	}
	return t, nil
}

// String omits the source, which contains the API key.
func (t *Tron) String() string { return t.network }

// GoString omits the source from %#v.
func (t *Tron) GoString() string { return t.network }

// LogValue omits the source from logs.
func (t *Tron) LogValue() slog.Value { return slog.StringValue(t.network) }

// Network returns the configured network.
func (t *Tron) Network() string { return t.network }

// Required returns 19, which takes about a minute, longer if producers are
// missing.
func (t *Tron) Required() int { return tronRequired }

// Valid accepts the 34 characters of base58check and no other form.
func (t *Tron) Valid(address string) bool {
	_, err := decodeAddress(address)
	return err == nil
}

// Heads reads the final head first, so that it is never above the latest one.
// The host balances calls over many nodes: a node that lags a little does not
// move the heads back, one that lags by more than tronRequired blocks is an
// error.
func (t *Tron) Heads(ctx context.Context) (recharge.Heads, error) {
	final, err := t.node.final(ctx)
	if err != nil {
		return recharge.Heads{}, err
	}
	latest, err := t.node.latest(ctx)
	if err != nil {
		return recharge.Heads{}, err
	}
	return t.advance(recharge.Heads{Latest: latest, Final: final})
}

// Final reads the final head, under the same rule as Heads.
func (t *Tron) Final(ctx context.Context) (recharge.Head, error) {
	final, err := t.node.final(ctx)
	if err != nil {
		return recharge.Head{}, err
	}
	heads, err := t.advance(recharge.Heads{Latest: final, Final: final})
	return heads.Final, err
}

func (t *Tron) advance(read recharge.Heads) (recharge.Heads, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if behind := t.heads.Final.Number - read.Final.Number; behind > tronRequired {
		return recharge.Heads{}, fmt.Errorf("%s: the final head is %d blocks behind what it was", t.network, behind)
	}
	t.heads.Final = higher(t.heads.Final, read.Final)
	t.heads.Latest = higher(higher(t.heads.Latest, read.Latest), t.heads.Final)
	return t.heads, nil
}

func higher(a, b recharge.Head) recharge.Head {
	if b.Number > a.Number {
		return b
	}
	return a
}

// known returns the highest heads read so far, and reads them if there are
// none.
func (t *Tron) known(ctx context.Context) (recharge.Heads, error) {
	t.mu.Lock()
	heads := t.heads
	t.mu.Unlock()
	if heads.Final.Number > 0 {
		return heads, nil
	}
	return t.Heads(ctx)
}

// tronBlock has the fields used of a block.
type tronBlock struct {
	Header struct {
		Raw struct {
			Number int64 `json:"number"`
			Time   int64 `json:"timestamp"` // ms
		} `json:"raw_data"`
	} `json:"block_header"`
}

// restNode is TronGrid, which is read by the HTTP API of the node and by its index.
type restNode struct{ *Tron }

func (t restNode) final(ctx context.Context) (recharge.Head, error) {
	return t.head(ctx, "/walletsolidity/getnowblock")
}

func (t restNode) latest(ctx context.Context) (recharge.Head, error) {
	return t.head(ctx, "/wallet/getnowblock")
}

func (t restNode) head(ctx context.Context, path string) (recharge.Head, error) {
	var b tronBlock
	if _, err := t.source.object(ctx, path, struct{}{}, &b); err != nil {
		return recharge.Head{}, err
	}
	if b.Header.Raw.Number <= 0 || b.Header.Raw.Time <= 0 {
		return recharge.Head{}, fmt.Errorf("%s: %s: no block in the answer", t.network, path)
	}
	return recharge.Head{Number: b.Header.Raw.Number, Time: time.UnixMilli(b.Header.Raw.Time).UTC()}, nil
}

// History reads from the index or the logs which transactions touch the address,
// and their receipts. Final are those that are solidified and not above the final head
// that Heads last returned, so that all reads of a scan use the same head.
func (t *Tron) History(ctx context.Context, address string, since time.Time) ([]recharge.Transfer, error) {
	if !t.Valid(address) {
		return nil, fmt.Errorf("%s: history of %q: %w", t.network, address, errAddress)
	}
	heads, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	hints, err := t.node.touching(ctx, address, since)
	if err != nil {
		return nil, fmt.Errorf("%s: history of %s: %w", t.network, address, err)
	}
	var list []recharge.Transfer
	for _, h := range hints {
		all, found, err := t.receipt(ctx, h.txID, heads.Final, h.at.After(heads.Final.Time))
		if err != nil {
			return nil, err
		}
		// Listed, final by its time, and yet without a receipt: either a node
		// lags, then to leave it out would be a gap below the head, or its block
		// was replaced and the index has not noticed, then waiting must end.
		if age := heads.Final.Time.Sub(h.at); !found && age >= 0 && age < indexLag {
			return nil, fmt.Errorf("%s: transaction %s is listed and has no receipt yet", t.network, h.txID)
		}
		for _, tr := range all {
			if (tr.From == address || tr.To == address) && !tr.BlockTime.Before(since) {
				list = append(list, tr)
			}
		}
	}
	slices.SortFunc(list, recharge.Compare)
	return list, nil
}

// Transaction reads the receipt of a transaction.
func (t *Tron) Transaction(ctx context.Context, txID string) ([]recharge.Transfer, error) {
	id, ok := normalTx(txID)
	if !ok {
		return nil, fmt.Errorf("%s: %q is not the id of a transaction", t.network, txID)
	}
	heads, err := t.known(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := t.receipt(ctx, id, heads.Final, false)
	return slices.Clone(list), err // the cache keeps its own
}

// receipt reads the transfers of a transaction. It returns false if the chain
// has no receipt of it. A young transaction is known not to be solidified. The
// caller must not change the list.
func (t *Tron) receipt(ctx context.Context, txID string, final recharge.Head,
	young bool) ([]recharge.Transfer, bool, error) {
	if list, ok := t.receipts.GetIfPresent(txID); ok {
		return list, true, nil
	}
	r, solid, err := t.node.receipt(ctx, txID, young)
	if err != nil || r == nil {
		return nil, false, err
	}
	if err := r.check(txID); err != nil {
		return nil, false, fmt.Errorf("%s: the answer is not the receipt of %s: %w", t.network, txID, err)
	}
	if !solid || r.Block > final.Number {
		return t.appendTransfers(nil, r, recharge.Seen), true, nil
	}
	list := t.appendTransfers(nil, r, recharge.Final)
	if err := t.witness.confirm(ctx, txID, list); err != nil {
		return nil, false, err
	}
	t.receipts.Set(txID, list)
	return list, true, nil
}

func (t restNode) receipt(ctx context.Context, txID string, young bool) (r *tronReceipt, solid bool, err error) {
	if !young {
		if r, err = t.readReceipt(ctx, "/walletsolidity/gettransactioninfobyid", txID); err != nil || r != nil {
			return r, true, err
		}
	}
	r, err = t.readReceipt(ctx, "/wallet/gettransactioninfobyid", txID)
	return r, false, err
}

// readReceipt reads one receipt. It returns nil if the node has none and answers {}.
func (t restNode) readReceipt(ctx context.Context, path, txID string) (*tronReceipt, error) {
	var r tronReceipt
	empty, err := t.source.object(ctx, path, map[string]string{"value": txID}, &r)
	if err != nil || empty {
		return nil, err
	}
	return &r, nil
}

// Balance reads what an address holds at the final head.
func (t *Tron) Balance(ctx context.Context, address string) (domain.Money, error) {
	owner, err := decodeAddress(address)
	if err != nil {
		return 0, fmt.Errorf("%s: balance of %q: %w", t.network, address, err)
	}
	return t.node.balance(ctx, owner)
}

// balance calls balanceOf of the token's contract (TIP-20, EIP-20).
func (t restNode) balance(ctx context.Context, owner [20]byte) (domain.Money, error) {
	const path = "/walletsolidity/triggerconstantcontract"
	var out struct {
		Result struct {
			Result bool   `json:"result"`
			Code   string `json:"code"`
		} `json:"result"`
		Constant    []string `json:"constant_result"`
		Transaction struct {
			Ret []struct {
				Ret      string `json:"ret"`
				Contract string `json:"contractRet"`
			} `json:"ret"`
		} `json:"transaction"`
	}
	hexOwner := hex.EncodeToString(owner[:])
	if _, err := t.source.object(ctx, path, map[string]string{
		"owner_address": tronPrefix + hexOwner, "contract_address": tronPrefix + hex.EncodeToString(t.contract[:]),
		"function_selector": "balanceOf(address)", "parameter": strings.Repeat("0", 24) + hexOwner}, &out); err != nil {
		return 0, err
	}
	// A reverted call also has "result": true.
	failed := !out.Result.Result || out.Result.Code != "" || len(out.Constant) == 0
	for _, r := range out.Transaction.Ret {
		failed = failed || r.Ret == "FAILED" || r.Contract != "" && r.Contract != "SUCCESS"
	}
	if failed {
		return 0, fmt.Errorf("%s: the balance of %s could not be read: %q", t.network, encodeAddress(owner),
			excerpt(out.Result.Code))
	}
	return t.amount(out.Constant[0])
}
