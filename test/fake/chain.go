package fake

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/btcsuite/btcd/btcutil/base58"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// The simulated chain has TRON's parameters: a block every 3 s, which is final once 19 of
// the 27 producers have built on it.
const (
	BlockEvery  = 3 * time.Second
	FinalBehind = 19

	firstHead   = 1000 // number of the latest block of NewChain
	tronVersion = 0x41 // first byte of every address of TRON
)

// Move is one transfer of a transaction.
type Move struct {
	From, To string
	Amount   domain.Money // 0: a transfer of nothing
	Foreign  bool         // of another token
	Failed   bool         // reverted by the chain
	Absurd   bool         // an amount that USDT cannot have
}

// counts reports whether the chain's only token moved.
func (m Move) counts() bool { return !m.Foreign && !m.Failed && !m.Absurd && m.Amount > 0 }

type transaction struct {
	id    string
	moves []Move
}

// Chain is a simulated TRON. It mines on demand, replaces blocks that are not final, and
// loses answers. It may be used by many goroutines; the same calls create the same chain.
type Chain struct {
	network string
	start   time.Time

	mu      sync.Mutex
	blocks  map[int64][]transaction // those that are not empty
	latest  int64
	pending []transaction
	sent    uint64
	onCall  func(call string) error
	hidden  map[recharge.Key]int
	calls   map[string]int
}

var _ ports.Chain = (*Chain)(nil)

// NewChain returns an empty chain whose latest block has the given time; earlier blocks
// reach back from there.
func NewChain(network string, start time.Time) *Chain {
	return &Chain{network: network, start: start.UTC().Truncate(time.Microsecond), latest: firstHead,
		blocks: map[int64][]transaction{}, hidden: map[recharge.Key]int{}, calls: map[string]int{}}
}

// Now returns the time of the latest block.
func (c *Chain) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head(c.latest).Time
}

// Mine adds n blocks; the first contains everything that is pending.
func (c *Chain) Mine(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.latest++
		if len(c.pending) > 0 {
			c.blocks[c.latest], c.pending = c.pending, nil
		}
	}
}

// Send moves money in the next block.
func (c *Chain) Send(from, to string, amount domain.Money) recharge.Key {
	return c.SendTx(Move{From: from, To: to, Amount: amount})[0]
}

// SendTx makes several transfers in one transaction of the next block. It returns the keys
// of all moves, including those that do not count.
func (c *Chain) SendTx(moves ...Move) []recharge.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(c.network), c.sent))
	tx := transaction{id: hex.EncodeToString(sum[:]), moves: slices.Clone(moves)}
	c.pending = append(c.pending, tx)
	return c.keys(tx)
}

// Fork replaces the last blocks that are not final by empty ones and returns the transfers
// that it removed. Their transactions are lost or, with remine, pending again.
func (c *Chain) Fork(depth int, remine bool) []recharge.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []recharge.Key
	var back []transaction
	for n := max(c.latest-int64(depth), c.final()) + 1; n <= c.latest; n++ {
		for _, tx := range c.blocks[n] {
			gone = append(gone, c.keys(tx)...)
		}
		back = append(back, c.blocks[n]...)
		delete(c.blocks, n)
	}
	if remine {
		c.pending = append(back, c.pending...)
	}
	return gone
}

// OnCall sets a function that is called before each method with its name. Its error is
// returned to the caller. It runs on the caller's goroutine and may use the chain; nil
// removes it.
func (c *Chain) OnCall(f func(call string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onCall = f
}

// Hide omits a transfer from the given number of reads of histories and blocks that
// contain it, as a source does that lags behind but claims to be complete.
func (c *Chain) Hide(k recharge.Key, reads int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hidden[k] = reads
}

// Calls returns the number of calls by the name of the method, including failed ones.
func (c *Chain) Calls() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// Finals returns every transfer that counts and is final, in chain order.
func (c *Chain) Finals() []recharge.Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.transfers(0, func(_ transaction, m Move) bool { return m.counts() }, c.final())
}

// Network returns the name given to NewChain.
func (c *Chain) Network() string { return c.network }

// Required returns FinalBehind.
func (c *Chain) Required() int { return FinalBehind }

// Heads returns the latest block and the latest final one.
func (c *Chain) Heads(ctx context.Context) (h recharge.Heads, err error) {
	err = c.call(ctx, "heads", func() error {
		h = recharge.Heads{Latest: c.head(c.latest), Final: c.head(c.final())}
		return nil
	})
	return h, err
}

// History returns the transfers to or from an address, without hidden ones.
func (c *Chain) History(ctx context.Context, address string, since time.Time) (list []recharge.Transfer, err error) {
	err = c.call(ctx, "history", func() error {
		list = c.transfers(0, func(_ transaction, m Move) bool { return m.To == address || m.From == address }, c.latest)
		list = c.visible(slices.DeleteFunc(list, func(t recharge.Transfer) bool { return t.BlockTime.Before(since) }))
		return nil
	})
	return list, err
}

// Final returns the latest final block.
func (c *Chain) Final(ctx context.Context) (h recharge.Head, err error) {
	err = c.call(ctx, "final", func() error {
		h = c.head(c.final())
		return nil
	})
	return h, err
}

// Since returns the last final block that is not later than a time.
func (c *Chain) Since(ctx context.Context, at time.Time) (n int64, err error) {
	err = c.call(ctx, "since", func() error {
		n = c.final()
		if ahead := c.head(n).Time.Sub(at); ahead > 0 {
			n = max(n-int64((ahead+BlockEvery-1)/BlockEvery), 0)
		}
		return nil
	})
	return n, err
}

// Incoming returns the transfers to some addresses in some blocks, without hidden ones.
func (c *Chain) Incoming(ctx context.Context, to []string, first, last int64) (list []recharge.Transfer, err error) {
	wanted := make(map[string]bool, len(to))
	for _, address := range to {
		wanted[address] = true
	}
	err = c.call(ctx, "incoming", func() error {
		list = c.visible(c.transfers(first, func(_ transaction, m Move) bool { return wanted[m.To] }, min(last, c.latest)))
		return nil
	})
	return list, err
}

// visible removes transfers that are hidden from this read.
func (c *Chain) visible(list []recharge.Transfer) []recharge.Transfer {
	return slices.DeleteFunc(list, func(t recharge.Transfer) bool {
		left := c.hidden[t.Key]
		if left > 0 {
			c.hidden[t.Key] = left - 1
		}
		return left > 0
	})
}

// Transaction returns the transfers of a transaction in a block.
func (c *Chain) Transaction(ctx context.Context, txID string) (list []recharge.Transfer, err error) {
	err = c.call(ctx, "transaction", func() error {
		list = c.transfers(0, func(tx transaction, _ Move) bool { return tx.id == txID }, c.latest)
		return nil
	})
	return list, err
}

// Balance returns what an address received less what it sent. It is below zero for
// addresses that send more than they received.
func (c *Chain) Balance(ctx context.Context, address string) (sum domain.Money, err error) {
	err = c.call(ctx, "balance", func() error {
		for _, t := range c.transfers(0, func(_ transaction, m Move) bool { return m.counts() }, c.final()) {
			if t.To == address {
				sum += t.Amount
			}
			if t.From == address {
				sum -= t.Amount
			}
		}
		return nil
	})
	return sum, err
}

// Balances returns what addresses received less what they sent up to the latest block.
func (c *Chain) Balances(ctx context.Context, addresses []string) (list []domain.Money, err error) {
	err = c.call(ctx, "balances", func() error {
		sums := map[string]domain.Money{}
		for _, t := range c.transfers(0, func(_ transaction, m Move) bool { return m.counts() }, c.latest) {
			sums[t.To] += t.Amount
			sums[t.From] -= t.Amount
		}
		list = nil
		for _, address := range addresses {
			list = append(list, sums[address])
		}
		return nil
	})
	return list, err
}

// Used reports which addresses have transfers up to the latest block.
func (c *Chain) Used(ctx context.Context, addresses []string) (list []bool, err error) {
	err = c.call(ctx, "used", func() error {
		touched := map[string]bool{}
		for _, t := range c.transfers(0, func(_ transaction, m Move) bool { return m.counts() }, c.latest) {
			touched[t.To], touched[t.From] = true, true
		}
		list = nil
		for _, address := range addresses {
			list = append(list, touched[address])
		}
		return nil
	})
	return list, err
}

// Valid reports whether a text is an address of TRON.
func (c *Chain) Valid(address string) bool {
	raw, version, err := base58.CheckDecode(address)
	return err == nil && version == tronVersion && len(raw) == 20
}

// call counts a call, calls the function of OnCall and runs work under the lock.
func (c *Chain) call(ctx context.Context, name string, work func() error) error {
	c.mu.Lock()
	c.calls[name]++
	ask := c.onCall
	c.mu.Unlock()
	if ask != nil {
		if err := ask(name); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return work()
}

func (c *Chain) final() int64 { return c.latest - FinalBehind }

func (c *Chain) head(n int64) recharge.Head {
	return recharge.Head{Number: n, Time: c.start.Add(time.Duration(n-firstHead) * BlockEvery)}
}

func (c *Chain) keys(tx transaction) []recharge.Key {
	keys := make([]recharge.Key, len(tx.moves))
	for i := range keys {
		keys[i] = recharge.Key{Network: c.network, TxID: tx.id, LogIndex: i}
	}
	return keys
}

// transfers returns the transfers of blocks first to last as an adapter does, in chain
// order.
func (c *Chain) transfers(first int64, want func(transaction, Move) bool, last int64) []recharge.Transfer {
	var list []recharge.Transfer
	for n, txs := range c.blocks {
		if n < first || n > last {
			continue
		}
		for _, tx := range txs {
			keys := c.keys(tx)
			for i, m := range tx.moves {
				if (m.counts() || m.Absurd) && want(tx, m) {
					list = append(list, c.show(keys[i], m, n))
				}
			}
		}
	}
	slices.SortFunc(list, recharge.Compare)
	return list
}

func (c *Chain) show(k recharge.Key, m Move, block int64) recharge.Transfer {
	t := recharge.Transfer{Key: k, From: m.From, To: m.To, Amount: m.Amount,
		Block: block, BlockTime: c.head(block).Time, State: recharge.Seen}
	switch {
	case m.Absurd:
		t.Amount, t.State, t.Note = 0, recharge.Ignored, "the amount is none that USDT can have"
	case block <= c.final():
		t.State = recharge.Final
	}
	return t
}

// ChainAddress returns the n-th of a series of valid addresses without a key.
func ChainAddress(n int) string { return address("stranger", uint32(n)) }

// Keys derives addresses that are valid and the same on every run.
type Keys struct{ fingerprint string }

var _ ports.Deriver = (*Keys)(nil)

// NewKeys returns an account key with the given name.
func NewKeys(fingerprint string) *Keys { return &Keys{fingerprint} }

// Fingerprint returns the name given to NewKeys.
func (k *Keys) Fingerprint() string { return k.fingerprint }

// Address returns the address of an index.
func (k *Keys) Address(index uint32) (string, error) {
	if index >= 1<<31 {
		return "", fmt.Errorf("index %d cannot be derived", index)
	}
	return address("key "+k.fingerprint, index), nil
}

func address(of string, n uint32) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint32([]byte(of), n))
	return base58.CheckEncode(sum[:20], tronVersion)
}
