// Package payments holds recharge orders, and the watcher that credits what arrives
// on the chain.
package payments

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/app/payaddress"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Watcher reads the chain and credits what arrived. Each method can run on
// several replicas at once: uniqueness decides, not luck.
//
// What is known rests on one promise: every final transfer up to Mark.Final is stored that
// goes to an address which was ever paid or has an order of the last days. Each scan reads
// these from a little before there. The rest is read each hour, up to a cursor of its own, from
// which an address that gets an order is read at once. What leaves an address is found by the
// audit, by its balance.
type Watcher struct {
	*payaddress.Holder

	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
	chain ports.Chain
	log   *slog.Logger

	// These caches may be lost: they only save calls.
	mu      sync.Mutex
	watched *payaddress.Watched
	rested  time.Time     // when reading the rest of the addresses last began
	idle    time.Duration // between scans while no order is open
	began   time.Time     // of the last scan
	warned  time.Time
	recent  map[recharge.Key]settledAs
	retried time.Time // when what is set aside was last tried again

	skip      atomic.Int64            // addresses in front that the audit could not read
	found     sync.Mutex              // of drifts, fullReads and failing
	failing   map[string]int          // by agent, how often its transfers could not be settled in succession
	drifts    map[string]domain.Money // by address, as this process last computed them
	fullReads map[string]time.Time    // when the whole history of an address was read last
}

// NewWatcher wires the watcher.
func NewWatcher(store ports.Store, clock ports.Clock, ids ports.IDs, chain ports.Chain, log *slog.Logger) *Watcher {
	return &Watcher{Holder: payaddress.NewHolder(store, chain), watched: payaddress.NewWatched(store, chain),
		store: narrow(store), clock: clock, ids: ids, chain: chain,
		log: log, recent: map[recharge.Key]settledAs{}, drifts: map[string]domain.Money{},
		fullReads: map[string]time.Time{}, failing: map[string]int{}}
}

// SetIdle sets how long Watch lets pass between two scans of the chain while no
// order is open. It must be called before Watch.
func (p *Watcher) SetIdle(d time.Duration) { p.idle = d }

// snapshot is the state of the chain that one scan works from. Everything is read after its heads.
type snapshot struct {
	heads    recharge.Heads
	ours     []recharge.Address  // that are read
	added    []recharge.Address  // those of them that the last scan did not read
	began    recharge.ScanCursor // when the scan began
	mark     recharge.ScanCursor // as it moves
	recent   map[recharge.Key]settledAs
	complete bool // nothing is left for the next scan
	stored   int  // answers of the chain that were stored
}

// settledAs is what a transfer was when it was settled.
type settledAs struct {
	block int64
	state recharge.State
}

// heads reads the final head and the latest one.
func (p *Watcher) heads(ctx context.Context) (recharge.Heads, error) {
	heads, err := p.chain.Heads(ctx)
	if err != nil {
		return heads, fmt.Errorf("read the heads of the chain: %w", err)
	}
	return heads, nil
}

// finalHead reads the final head alone, and returns it as the latest one too.
func (p *Watcher) finalHead(ctx context.Context) (recharge.Heads, error) {
	final, err := p.chain.Final(ctx)
	if err != nil {
		return recharge.Heads{}, fmt.Errorf("read the final head of the chain: %w", err)
	}
	return recharge.Heads{Final: final, Latest: final}, nil
}

// begin reads where the last scan ended, and which addresses are read. Those
// that are made later cannot have been paid in a block up to the heads.
func (p *Watcher) begin(ctx context.Context, l *snapshot) (err error) {
	if l.ours, l.added, err = p.watched.Often(ctx, p.clock.Now()); err != nil {
		return err
	}
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		l.mark, _, err = tx.Transfers().ScanCursor(ctx, p.chain.Network())
		return err
	})
	if err != nil {
		return fmt.Errorf("read how far the chain is known: %w", err)
	}
	l.began = l.mark
	return nil
}

// putMark stores how far this scan came. Complete means that all of it was read.
func (p *Watcher) putMark(ctx context.Context, l *snapshot, complete bool) error {
	err := p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		cur, _, err := tx.Transfers().ScanCursor(ctx, p.chain.Network())
		if err != nil {
			return err
		}
		next := cur
		next.Latest = max(cur.Latest, l.heads.Latest.Number)
		if complete {
			next.ReadAt = p.clock.Now()
		}
		// Another replica may have gone further meanwhile; and what was read here only
		// joins on to where the mark was.
		if to := l.mark.Final; cur.Final.Number >= l.began.Final.Number && to.Number >= cur.Final.Number {
			next.Final = recharge.Head{Number: to.Number, Time: later(to.Time, cur.Final.Time)}
		}
		if next == cur {
			return nil
		}
		if l.stored == 0 && next.Final == cur.Final && p.clock.Now().Sub(cur.ReadAt).Abs() < markEvery {
			// Only the time has moved on. Confirmations are not counted unless a
			// transfer waits for them.
			seen, err := tx.Transfers().SeenUpTo(ctx, p.chain.Network(), 1<<62, 1)
			if err != nil || len(seen) == 0 {
				return err
			}
		}
		return tx.Transfers().PutScanCursor(ctx, p.chain.Network(), next, false)
	})
	if err != nil {
		return fmt.Errorf("store how far the chain is known: %w", err)
	}
	return nil
}

// markEvery is how often it is stored that nothing has happened: a scan may run
// several times a second, and each write goes to the disk.
const markEvery = 5 * time.Second

// clockSkew is a difference between the clocks that is worth a warning, warnEvery
// how often.
const (
	clockSkew = 5 * time.Minute
	warnEvery = time.Hour
)

// warnOfSkew logs a warning about a clock that is wrong, or a chain that has
// stopped. Nothing is decided by it: windows close by block time.
func (p *Watcher) warnOfSkew(heads recharge.Heads) {
	now := p.clock.Now()
	skew := heads.Latest.Time.Sub(now) // or that of the final head, which is a minute older
	if skew.Abs() <= clockSkew || !p.warned.IsZero() && now.Sub(p.warned).Abs() < warnEvery {
		return
	}
	p.warned = now
	p.log.Warn("the clock and the newest block differ: a clock is wrong, or the chain makes no blocks",
		"network", p.chain.Network(), "ahead", skew.String(), "block", heads.Latest.Number)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
