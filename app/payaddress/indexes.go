// Package payaddress decides which index of the operator's account key becomes the payment address of an agent.
package payaddress

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Before an index is given out the chain is asked about its address: a database that went back in time, or a second
// one with the same account key, would give a customer's address to another. One call asks about indexesAtOnce, and
// its answer holds for lookEvery, so accounts that are opened without end cost one call in that time.
const (
	indexesAtOnce = 50
	lookEvery     = time.Minute
	looksAtOnce   = 20 // of one call, each at indexes that are all used
	lookWithin    = 10 * time.Second
)

// repos is the repositories that hold indexes.
type repos interface {
	PayAddresses() ports.PayAddresses
	Transfers() ports.Transfers
}

// Config holds the settings of the indexes.
type Config struct {
	// Off means that no address is given out: nothing is compared.
	Off bool
	// Mark keeps the indexes that were given out outside the database; nil: nothing does.
	Mark ports.IndexMark
	// Lost returns how often rows of the database were lost while the service ran, as by a failover; nil: never.
	Lost func() int64
	Log  *slog.Logger // nil: none
}

func (c Config) warn(message string, args ...any) {
	if c.Log != nil {
		c.Log.Error(message, args...)
	}
}

// Indexes gives out the indexes of one account key.
type Indexes struct {
	cfg   Config
	store ports.Unit[repos]
	clock ports.Clock
	chain ports.Chain
	keys  ports.Deriver

	busy    chan struct{} // one at a time takes an index; what follows it shares the answer
	kept    bool          // Resume has compared the mark with the database
	lost    int64         // of Config.Lost, those after which indexes were left out
	from    uint32
	used    []bool // from there on
	at      time.Time
	skipped int
}

// New wires the use cases.
func New(cfg Config, store ports.Store, clock ports.Clock, chain ports.Chain, keys ports.Deriver) *Indexes {
	return &Indexes{cfg: cfg, store: ports.Narrow(store, func(tx ports.Tx) repos { return tx }), clock: clock,
		chain: chain, keys: keys, busy: make(chan struct{}, 1)}
}

// isUsed reports whether an index is used, and whether that is known.
func (u *Indexes) isUsed(index uint32, now time.Time) (used, known bool) {
	if index < u.from || index-u.from >= uint32(len(u.used)) || now.Sub(u.at).Abs() > lookEvery {
		return false, false
	}
	return u.used[index-u.from], true
}

// enter waits for the turn to take an index.
func (u *Indexes) enter(ctx context.Context) error {
	select {
	case u.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *Indexes) leave() { <-u.busy }

// Skipped returns how many indexes this process has left out because their addresses are used.
func (u *Indexes) Skipped(ctx context.Context) (int, error) {
	if err := u.enter(ctx); err != nil {
		return 0, err
	}
	defer u.leave()
	return u.skipped, nil
}

// Take takes an unused index. It returns recharge.ErrNoAddress if the chain does not answer.
func (u *Indexes) Take(ctx context.Context) (index uint32, err error) {
	if err := u.enter(ctx); err != nil {
		return 0, err
	}
	defer u.leave()
	if err := u.resume(ctx); err != nil {
		return 0, err
	}
	for range looksAtOnce {
		if err := u.look(ctx); err != nil {
			return 0, err
		}
		if index, err = u.takeIndex(ctx); err != nil || index > 0 {
			return index, err
		}
	}
	return 0, recharge.ErrNoAddress
}

// look asks the chain about the next indexes, unless it is known of the first.
func (u *Indexes) look(ctx context.Context) error {
	var next uint32
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		next, _, err = tx.PayAddresses().Unused(ctx, u.chain.Network(), u.keys.Fingerprint())
		return err
	})
	if err != nil {
		return err
	}
	now := u.clock.Now()
	if _, known := u.isUsed(next, now); known {
		return nil
	}
	addresses := make([]string, indexesAtOnce)
	for i := range addresses {
		if addresses[i], err = u.keys.Address(next + uint32(i)); err != nil {
			return fmt.Errorf("derive address %d: %w", next+uint32(i), err)
		}
		if !u.chain.Valid(addresses[i]) {
			return fmt.Errorf("address %d: %q is not an address of %s", next+uint32(i), addresses[i], u.chain.Network())
		}
	}
	asked, stop := context.WithTimeout(ctx, lookWithin)
	defer stop()
	used, err := u.chain.Used(asked, addresses)
	if err != nil {
		if ctx.Err() == nil {
			u.cfg.warn("the chain could not be asked whether payment addresses are unused; none is given out", "err", err)
		}
		return recharge.ErrNoAddress
	}
	u.from, u.used, u.at = next, used, now
	return nil
}

// takeIndex takes the next index that is not used; 0 if it is not known of the next one.
func (u *Indexes) takeIndex(ctx context.Context) (index uint32, err error) {
	network, key := u.chain.Network(), u.keys.Fingerprint()
	var skipped []uint32
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		skipped, index = nil, 0
		for {
			next, err := tx.PayAddresses().NextIndex(ctx, network, key)
			if err != nil {
				return err
			}
			used, known := u.isUsed(next, u.at)
			switch {
			case used:
				skipped = append(skipped, next)
			case known:
				index = next
				return nil
			default: // another process was first
				return nil
			}
		}
	})
	if err != nil {
		return 0, err
	}
	for _, i := range skipped {
		u.skipped++
		address, _ := u.keys.Address(i)
		u.cfg.warn("a payment address that no agent has is used on the chain, and is left out: the database was restored "+
			"without agentproxy restore, or the account serves something else too", "index", i, "address", address)
	}
	if index == 0 || u.cfg.Mark == nil {
		return index, nil
	}
	if err := u.cfg.Mark.Raise(key, index+1); err != nil {
		return 0, fmt.Errorf("keep index %d outside the database: %w", index, err)
	}
	return index, nil
}

// Resume compares the database with what is kept of the indexes outside it. If the database is older, it was
// restored or is a standby that lacks the last rows, and the next index is beyond all that may have been given out.
func (u *Indexes) Resume(ctx context.Context) error {
	if err := u.enter(ctx); err != nil {
		return err
	}
	defer u.leave()
	return u.resume(ctx)
}

func (u *Indexes) resume(ctx context.Context) error {
	if err := u.jump(ctx); err != nil {
		return err
	}
	if u.kept || u.cfg.Off || u.cfg.Mark == nil {
		return nil
	}
	network, key := u.chain.Network(), u.keys.Fingerprint()
	mark, found, err := u.cfg.Mark.Next(key)
	if err != nil {
		return err
	}
	var next uint32
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		have, kept, err := tx.PayAddresses().Unused(ctx, network, key)
		if err != nil {
			return err
		}
		next = have
		if found && have < mark || !found && kept {
			next = max(have, mark) + recharge.IndexJump
			u.cfg.warn("the database is older than its payment addresses: the next indexes are left out", "from", have,
				"to", next)
		}
		return tx.PayAddresses().SkipTo(ctx, network, key, next, true)
	})
	if err == nil {
		err = u.cfg.Mark.Raise(key, next)
	}
	u.kept = err == nil
	return err
}

// jump leaves out the indexes that may have been given out in rows that are lost.
func (u *Indexes) jump(ctx context.Context) error {
	if u.cfg.Off || u.cfg.Lost == nil {
		return nil
	}
	lost := u.cfg.Lost()
	if lost == u.lost {
		return nil
	}
	from, next, err := u.Restored(ctx)
	if err == nil {
		u.lost = lost
		u.cfg.warn("rows of the database were lost: payment addresses that may have been given out are left out",
			"from", from, "next", next)
	}
	return err
}

// Restored lets the next index be beyond all that may have been given out since the copy of the database was made
// that it was restored from. It returns the first that is left out, and the next.
func (u *Indexes) Restored(ctx context.Context) (from, next uint32, err error) {
	network, key := u.chain.Network(), u.keys.Fingerprint()
	var mark uint32
	if u.cfg.Mark != nil {
		if mark, _, err = u.cfg.Mark.Next(key); err != nil {
			return 0, 0, err
		}
	}
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		if from, _, err = tx.PayAddresses().Unused(ctx, network, key); err != nil {
			return err
		}
		next = max(from, mark) + recharge.IndexJump
		return tx.PayAddresses().SkipTo(ctx, network, key, next, u.cfg.Mark != nil)
	})
	if err == nil && u.cfg.Mark != nil {
		err = u.cfg.Mark.Raise(key, next)
	}
	return from, next, err
}
