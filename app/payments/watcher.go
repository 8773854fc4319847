// Package payments holds recharge orders, and the watcher that credits what arrives
// on the chain.
package payments

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// Watcher reads the chain and credits what arrived. Each method can run on
// several replicas at once: uniqueness decides, not luck.
//
// What is known of an address rests on two promises, and everything else
// follows from them:
//
//	every final transfer of an address up to its ReadThrough is stored;
//	every final transfer of every address up to Mark.Final is stored.
//
// So an address is known through the later of the two, whichever way it was read
// before, and either way of reading takes over from the other. ReadThrough moves
// after a history that began at or before the time it is known through; it moves
// to the final head that was read before that history. Mark.Final moves by one
// block, after all of that block is stored, or jumps, after the history of every
// address that was not known through its goal is stored. An address that is made
// after the goal was read needs no history: no transfer can have been sent to it.
//
// While addresses are read one by one, only those with an order are; the audit
// reads each of the others in its turn.
type Watcher struct {
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
	chain ports.Chain
	log   *slog.Logger

	// What a process remembers may be lost: it saves calls and promises nothing.
	mu       sync.Mutex
	few      int   // up to this many watched addresses are read one by one
	byBlocks bool  // the way of reading
	again    bool  // the last final blocks were read again
	shown    int64 // the last block above the final head that was read
	jump     *jump
	warned   time.Time

	skip   atomic.Int64 // addresses in front that the audit could not read
	found  sync.Mutex
	drifts map[string]domain.Money // by address, as this process last saw them
}

// NewWatcher wires the watcher.
func NewWatcher(store ports.Store, clock ports.Clock, ids ports.IDs, chain ports.Chain, log *slog.Logger) *Watcher {
	return &Watcher{store: narrow(store), clock: clock, ids: ids, chain: chain, log: log, few: 10,
		drifts: map[string]domain.Money{}}
}

// The bounds of one pass: it ends soon, and the next goes on where it ended.
const (
	blocksAtOnce    = 200
	addressesAtOnce = 200
	seenAtOnce      = 100
	overdueAtOnce   = 500
)

// overlap is how much of what is known is read again, by time and in blocks: an
// index may lag behind the block that it reports to be complete.
const (
	overlap       = 10 * time.Minute
	overlapBlocks = 200
)

// look is what one pass rests on. Everything is read after its heads.
type look struct {
	heads  recharge.Heads
	began  recharge.ScanCursor // when the pass began
	mark   recharge.ScanCursor // as it moves
	upTo   int64               // the block up to which seen transfers should be final by now
	whole  bool                // nothing is left for the next pass
	stored int                 // answers of the chain that were stored
	// histories caches the histories by address, when it is not nil.
	histories map[string][]recharge.Transfer
}

// Watch takes one look at the chain: what is new is stored, what became final
// is credited, what went away is withdrawn, and windows that are over close. An
// error of the chain proves nothing: what could not be read stays as it is.
func (p *Watcher) Watch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	heads, err := p.chain.Heads(ctx)
	if err != nil {
		return fmt.Errorf("read the heads of the chain: %w", err)
	}
	p.warnOfSkew(heads)
	l := &look{heads: heads}
	watched, err := p.begin(ctx, l)
	if err != nil {
		return err
	}
	read, err := p.read(ctx, l, watched)
	err = errors.Join(err, p.resolve(ctx, l, read))
	if p.byBlocks {
		err = errors.Join(err, p.closeWindows(ctx, l))
	}
	if err != nil && l.stored == 0 {
		return err // nothing was learned
	}
	return errors.Join(err, p.putMark(ctx, l, err == nil && l.whole))
}

// begin reads where the last pass ended, and decides how to read. Watched are
// addresses with an order that money may still pay. It is measured from the last
// complete pass, so that no address is forgotten in an outage.
func (p *Watcher) begin(ctx context.Context, l *look) (watched []recharge.Address, err error) {
	err = p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		if l.mark, _, err = tx.Recharges().ScanCursor(ctx, p.chain.Network()); err != nil {
			return err
		}
		since := l.heads.Final.Time
		if at := l.mark.ReadAt; !at.IsZero() && at.Before(since) {
			since = at
		}
		watched, err = tx.Recharges().Watched(ctx, p.chain.Network(), since.Add(-recharge.Late-overlap), p.atOnce())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read how far the chain is known: %w", err)
	}
	l.began = l.mark
	// Between half of few and few, the method of reading stays as it is: each change costs
	// calls.
	p.byBlocks = len(watched) > p.few || p.byBlocks && len(watched) > p.few/2
	return watched, nil
}

// read reads what is new, by blocks when many addresses are watched. It returns
// which transfers resolve may settle.
func (p *Watcher) read(ctx context.Context, l *look, watched []recharge.Address) (settled settledFunc, err error) {
	l.upTo = l.heads.Final.Number
	if p.byBlocks {
		ready, err := p.contiguous(ctx, l)
		if err == nil && ready {
			err = errors.Join(p.scan(ctx, l), p.show(ctx, l))
			l.upTo = l.mark.Final.Number
			return func(t recharge.Transfer) bool { return t.Block <= l.mark.Final.Number }, err
		}
		settled, failed := p.readWatched(ctx, l, watched)
		return settled, errors.Join(err, failed)
	}
	p.jump = nil
	return p.readWatched(ctx, l, watched)
}

// atOnce is how many watched addresses a pass takes on.
func (p *Watcher) atOnce() int { return max(addressesAtOnce, p.few+1) }

// putMark stores how far this pass came. Complete means that all of it was read.
func (p *Watcher) putMark(ctx context.Context, l *look, complete bool) error {
	err := p.store.Update(ctx, func(ctx context.Context, tx repos) error {
		cur, _, err := tx.Recharges().ScanCursor(ctx, p.chain.Network())
		if err != nil {
			return err
		}
		next := cur
		next.Latest = max(cur.Latest, l.heads.Latest.Number)
		if complete {
			next.ReadAt = p.clock.Now()
		}
		// Somebody may have gone further meanwhile; and what was read here only
		// joins on to where the mark was.
		if to := l.mark.Final; cur.Final.Number >= l.began.Final.Number && to.Number >= cur.Final.Number {
			next.Final = recharge.Head{Number: to.Number, Time: later(to.Time, cur.Final.Time)}
		}
		if next == cur {
			return nil
		}
		if l.stored == 0 && next.Final == cur.Final && p.clock.Now().Sub(cur.ReadAt).Abs() < markEvery {
			// Only the time has moved on. Nobody counts confirmations unless a
			// transfer waits for them.
			seen, err := tx.Recharges().SeenUpTo(ctx, p.chain.Network(), 1<<62, 1)
			if err != nil || len(seen) == 0 {
				return err
			}
		}
		return tx.Recharges().PutScanCursor(ctx, p.chain.Network(), next, false)
	})
	if err != nil {
		return fmt.Errorf("store how far the chain is known: %w", err)
	}
	return nil
}

// markEvery is how often it is stored that nothing has happened: a pass may come
// several times a second, and each write goes to the disk.
const markEvery = 5 * time.Second

// doubtful is a difference between the clocks that is worth a warning, warnEvery
// how often.
const (
	doubtful  = 5 * time.Minute
	warnEvery = time.Hour
)

// warnOfSkew logs a warning about a clock that is wrong, or a chain that has
// stopped. Nothing is decided by it: windows close by block time.
func (p *Watcher) warnOfSkew(heads recharge.Heads) {
	now := p.clock.Now()
	skew := heads.Latest.Time.Sub(now)
	if skew.Abs() <= doubtful || !p.warned.IsZero() && now.Sub(p.warned).Abs() < warnEvery {
		return
	}
	p.warned = now
	p.log.Warn("the clock and the newest block differ: a clock is wrong, or the chain stands still",
		"network", p.chain.Network(), "ahead", skew.String(), "block", heads.Latest.Number)
}

// Status is the state of the watcher.
type Status struct {
	ReadAt   time.Time    // when a pass last read all it had to; zero: never
	Final    int64        // blocks are known completely up to here; 0: not read by blocks
	Latest   int64        // the newest block that was seen
	Seen     int          // transfers that wait to become final, at most a thousand are counted
	Drifting int          // addresses whose balance this process found wrong
	Drift    domain.Money // the sum of these differences, without their signs
}

// Status returns the state of the watcher without reading the chain.
func (p *Watcher) Status(ctx context.Context) (s Status, err error) {
	err = p.store.View(ctx, func(ctx context.Context, tx repos) error {
		mark, _, err := tx.Recharges().ScanCursor(ctx, p.chain.Network())
		if err != nil {
			return err
		}
		seen, err := tx.Recharges().SeenUpTo(ctx, p.chain.Network(), 1<<62, 1000)
		s = Status{ReadAt: mark.ReadAt, Final: mark.Final.Number, Latest: mark.Latest, Seen: len(seen)}
		return err
	})
	auditor{p}.drifting(&s)
	return s, err
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
