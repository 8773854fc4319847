package chain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

const (
	devNetwork = "devchain"
	// devRequired is how many blocks on top make a transfer final.
	devRequired = 5
	// devStart is the number of blocks of a new chain.
	devStart = 100
	// devEvery is the default duration of a block.
	devEvery = 3 * time.Second
)

// devFaucet is the sender of the money on the development chain. No key has
// this address.
var devFaucet = encodeAddress([20]byte([]byte("development's faucet")))

// DevchainConfig configures the development chain. Seed is required.
type DevchainConfig struct {
	BlockEvery time.Duration // the duration of a block; 0 keeps the stored one, or 3 s
	Seed       []byte        // of DevAccount
}

// LogValue omits the seed.
func (c DevchainConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

// GoString omits the seed from %#v.
func (c DevchainConfig) GoString() string { return c.String() }

// String omits the seed.
func (c DevchainConfig) String() string { return "a block every " + c.BlockEvery.String() }

// Devchain is a simulated chain for development: it is kept in the store, its
// blocks follow the clock and are never replaced. It is safe for concurrent
// use.
type Devchain struct {
	store ports.Store
	clock ports.Clock
	ids   ports.IDs
	every time.Duration // 0 for the stored one

	starting sync.Mutex
	begun    bool
}

var _ ports.Chain = (*Devchain)(nil)

// NewDevchain opens the chain of a store.
func NewDevchain(store ports.Store, clock ports.Clock, ids ports.IDs, config DevchainConfig) *Devchain {
	every := config.BlockEvery.Truncate(time.Microsecond)
	return &Devchain{store: store, clock: clock, ids: ids, every: max(every, 0)}
}

// schedule is the time of block 0 and the duration of a block, in microseconds,
// which cover more years than the nanoseconds of a Duration.
type schedule struct{ genesis, every int64 }

func scheduleAt(genesis time.Time, every time.Duration) schedule {
	return schedule{genesis.UnixMicro(), every.Microseconds()}
}

func (p schedule) latest(now time.Time) int64 {
	return max((now.UnixMicro()-p.genesis)/p.every, devRequired)
}

func (p schedule) head(number int64) recharge.Head {
	return recharge.Head{Number: number, Time: time.UnixMicro(p.genesis + number*p.every).UTC()}
}

func (p schedule) heads(now time.Time) recharge.Heads {
	latest := p.latest(now)
	return recharge.Heads{Latest: p.head(latest), Final: p.head(latest - devRequired)}
}

// genesisOf returns the time of block 0 if block number begins at now.
func genesisOf(now time.Time, number int64, every time.Duration) time.Time {
	return time.UnixMicro(now.UnixMicro() - number*every.Microseconds()).UTC()
}

// Start begins the chain with the configured duration of blocks. Without it the
// first call does.
func (c *Devchain) Start(ctx context.Context) error { return c.begin(ctx) }

// begin sets the genesis of a new chain. If the duration of blocks has changed,
// it moves the genesis so that the numbers continue after a gap that makes all
// earlier blocks final: their times follow the old duration, and the final head
// must not pass a time whose transfers are not final.
func (c *Devchain) begin(ctx context.Context) error {
	c.starting.Lock()
	defer c.starting.Unlock()
	if c.begun {
		return nil
	}
	err := c.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		now := c.clock.Now()
		at, every, set, err := tx.Devchain().Genesis(ctx)
		switch {
		case err != nil:
			return err
		case !set:
			every = cmp.Or(c.every, devEvery)
			return tx.Devchain().SetGenesis(ctx, genesisOf(now, devStart, every), every)
		case c.every > 0 && c.every != every:
			last := scheduleAt(at, every).latest(now)
			return tx.Devchain().SetGenesis(ctx, genesisOf(now, last+devRequired+1, c.every), c.every)
		}
		return nil
	})
	c.begun = err == nil
	return err
}

// scheduleOf reads the schedule of a chain that was begun.
func scheduleOf(ctx context.Context, tx ports.Tx) (schedule, error) {
	at, every, set, err := tx.Devchain().Genesis(ctx)
	if err == nil && !set {
		err = errors.New("it has no genesis")
	}
	return scheduleAt(at, every), err
}

// read runs fn on a snapshot with the current heads.
func (c *Devchain) read(
	ctx context.Context, what string, fn func(ctx context.Context, blocks ports.Devchain, h recharge.Heads) error,
) error {
	err := c.begin(ctx)
	if err == nil {
		err = c.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			p, err := scheduleOf(ctx, tx)
			if err != nil {
				return err
			}
			return fn(ctx, tx.Devchain(), p.heads(c.clock.Now()))
		})
	}
	if err != nil {
		return fmt.Errorf("development chain: read %s: %w", what, err)
	}
	return nil
}

// Network returns "devchain".
func (c *Devchain) Network() string { return devNetwork }

// Required returns 5.
func (c *Devchain) Required() int { return devRequired }

// Valid reports whether a text is a TRON address.
func (c *Devchain) Valid(address string) bool { return ValidAddress(address) }

// Heads returns both ends of the chain. It reads the genesis in a read-write
// transaction, which locks it as every sender does: a transfer may be stored
// after its block has ended, and then its sender, in whichever process, locked
// the genesis before.
func (c *Devchain) Heads(ctx context.Context) (heads recharge.Heads, err error) {
	if err = c.begin(ctx); err == nil {
		err = c.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			p, err := scheduleOf(ctx, tx)
			if err == nil {
				heads = p.heads(c.clock.Now())
			}
			return err
		})
	}
	if err != nil {
		return recharge.Heads{}, fmt.Errorf("development chain: read heads: %w", err)
	}
	return heads, nil
}

// onChain removes transfers in blocks after the latest one and sets the state
// of the rest.
func onChain(list []recharge.Transfer, h recharge.Heads) []recharge.Transfer {
	list = slices.DeleteFunc(list, func(t recharge.Transfer) bool { return t.Block > h.Latest.Number })
	for i := range list {
		list[i].State = recharge.Seen
		if list[i].Block <= h.Final.Number {
			list[i].State = recharge.Final
		}
	}
	return list
}

// History lists transfers from or to an address.
func (c *Devchain) History(ctx context.Context, address string, since time.Time) (list []recharge.Transfer, err error) {
	list, err = c.transfersOf(ctx, address)
	return slices.DeleteFunc(list, func(t recharge.Transfer) bool { return t.BlockTime.Before(since) }), err
}

func (c *Devchain) transfersOf(ctx context.Context, address string) (list []recharge.Transfer, err error) {
	if !c.Valid(address) {
		return nil, fmt.Errorf("development chain: %q: %w", address, errAddress)
	}
	err = c.read(ctx, "transfers of "+address, func(ctx context.Context, blocks ports.Devchain, h recharge.Heads) error {
		found, err := blocks.Touching(ctx, address, 0)
		list = onChain(found, h)
		return err
	})
	return list, err
}

// Final returns the final head.
func (c *Devchain) Final(ctx context.Context) (recharge.Head, error) {
	heads, err := c.Heads(ctx)
	return heads.Final, err
}

// Since returns 0: blocks may have had another duration before.
func (c *Devchain) Since(context.Context, time.Time) (int64, error) { return 0, nil }

// Incoming lists the transfers to some addresses in some blocks.
func (c *Devchain) Incoming(ctx context.Context, to []string, first, last int64) (list []recharge.Transfer, err error) {
	what := fmt.Sprintf("blocks %d to %d", first, last)
	wanted := make(map[string]bool, len(to))
	for _, address := range to {
		if !c.Valid(address) {
			return nil, fmt.Errorf("development chain: %q: %w", address, errAddress)
		}
		wanted[address] = true
	}
	err = c.read(ctx, what, func(ctx context.Context, blocks ports.Devchain, h recharge.Heads) error {
		found, err := blocks.Blocks(ctx, first, last)
		list = slices.DeleteFunc(onChain(found, h), func(t recharge.Transfer) bool { return !wanted[t.To] })
		return err
	})
	return list, err
}

// Transaction lists the transfers of a transaction.
func (c *Devchain) Transaction(ctx context.Context, txID string) (list []recharge.Transfer, err error) {
	err = c.read(ctx, "transaction "+txID, func(ctx context.Context, blocks ports.Devchain, h recharge.Heads) error {
		found, err := blocks.Transaction(ctx, txID)
		list = onChain(found, h)
		return err
	})
	return list, err
}

// Balance returns the final transfers to an address less those from it. It is
// negative for the faucet.
func (c *Devchain) Balance(ctx context.Context, address string) (domain.Money, error) {
	return c.balance(ctx, address, true)
}

func (c *Devchain) balance(ctx context.Context, address string, final bool) (sum domain.Money, err error) {
	list, err := c.transfersOf(ctx, address)
	for _, t := range list {
		if final && t.State != recharge.Final {
			continue
		}
		if t.To == address {
			sum += t.Amount
		}
		if t.From == address {
			sum -= t.Amount
		}
	}
	return sum, err
}

// Balances counts the transfers that are not final too.
func (c *Devchain) Balances(ctx context.Context, addresses []string) (list []domain.Money, err error) {
	for _, address := range addresses {
		sum, err := c.balance(ctx, address, false)
		if err != nil {
			return nil, err
		}
		list = append(list, sum)
	}
	return list, nil
}

// Used reports which addresses have transfers.
func (c *Devchain) Used(ctx context.Context, addresses []string) (list []bool, err error) {
	for _, address := range addresses {
		touching, err := c.transfersOf(ctx, address)
		if err != nil {
			return nil, err
		}
		list = append(list, len(touching) > 0)
	}
	return list, nil
}

// Send puts a transfer of new money into the next block.
func (c *Devchain) Send(ctx context.Context, to string, amount domain.Money) (recharge.Transfer, error) {
	return c.send(ctx, devFaucet, to, amount)
}

func (c *Devchain) send(ctx context.Context, from, to string, amount domain.Money) (t recharge.Transfer, err error) {
	if !c.Valid(to) {
		return t, domain.InvalidField("address", "must be a TRON address: 34 characters that begin with T, case and all")
	}
	if amount <= 0 {
		return t, domain.InvalidField("amount", "must be above 0")
	}
	if err := c.begin(ctx); err != nil {
		return t, fmt.Errorf("development chain: %w", err)
	}
	id := sha256.Sum256([]byte(c.ids.New("tx_")))
	key := recharge.Key{Network: devNetwork, TxID: hex.EncodeToString(id[:])}
	err = c.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		p, err := scheduleOf(ctx, tx)
		if err != nil {
			return err
		}
		next := p.head(p.latest(c.clock.Now()) + 1)
		t = recharge.Transfer{Key: key, From: from, To: to, Amount: amount, Block: next.Number, BlockTime: next.Time,
			State: recharge.Seen}
		return tx.Devchain().Append(ctx, t)
	})
	if err != nil {
		return recharge.Transfer{}, fmt.Errorf("development chain: send: %w", err)
	}
	return t, nil
}
