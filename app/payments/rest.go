package payments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// restEvery is how often the addresses are read that no order awaits a payment at and that were never paid, and
// restAgain how soon after a failure.
const (
	restEvery = time.Hour
	restAgain = 5 * time.Minute
)

// restOf names the cursor of these addresses.
func restOf(network string) string { return network + "/rest" }

// rest returns the cursor of the addresses that are read each hour. Before the first there is none: all were read
// through the cursor of the scan, as by earlier versions.
func (p *Watcher) rest(ctx context.Context, l *snapshot) (mark recharge.ScanCursor, found bool, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		mark, found, err = tx.Transfers().ScanCursor(ctx, restOf(p.chain.Network()))
		return err
	})
	if err == nil && !found {
		mark = l.began
	}
	return mark, found, err
}

// catchUp reads the addresses that the last scan did not read, from where the rest is read up to the cursor, so that
// they are as far as the others. One that was made after the cursor cannot have been paid before it.
func (p *Watcher) catchUp(ctx context.Context, l *snapshot) error {
	older := slices.DeleteFunc(l.added, func(a recharge.Address) bool { return a.CreatedAt.After(l.mark.Final.Time) })
	if len(older) > 0 && l.mark.Final.Number > 0 {
		mark, _, err := p.rest(ctx, l)
		if err != nil {
			return err
		}
		if err := p.readOthers(ctx, l, older, mark); err != nil {
			return err
		}
	}
	p.watched.Through(l.ours)
	return nil
}

// readRest reads the addresses up to the cursor that no scan reads, each hour.
func (p *Watcher) readRest(ctx context.Context, l *snapshot) error {
	mark, found, err := p.rest(ctx, l)
	if err != nil {
		return err
	}
	now := p.clock.Now()
	if found {
		if now.Sub(mark.ReadAt).Abs() < restEvery || now.Sub(p.rested).Abs() < restAgain {
			return nil
		}
		p.rested = now
		others, err := p.watched.Rest(ctx)
		if err != nil {
			return err
		}
		if err := p.readOthers(ctx, l, others, mark); err != nil {
			return err
		}
		mark = recharge.ScanCursor{Final: l.mark.Final}
	}
	if mark.Final.Number == 0 {
		mark.Final = l.mark.Final // there was no address yet
	}
	mark.Latest, mark.ReadAt = max(mark.Final.Number, l.heads.Latest.Number), now
	err = p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Transfers().PutScanCursor(ctx, restOf(p.chain.Network()), mark, false)
	})
	if err != nil {
		return fmt.Errorf("store how far the other addresses are known: %w", err)
	}
	return nil
}

// readOthers reads and settles what went to some addresses from a cursor to that of the scan.
func (p *Watcher) readOthers(
	ctx context.Context, l *snapshot, list []recharge.Address, from recharge.ScanCursor,
) error {
	part := snapshot{heads: l.heads, mark: l.mark, ours: list}
	for first := max(from.Final.Number+1-overlapBlocks, 0); first <= l.mark.Final.Number; first += rangeBlocks {
		transfers, err := p.incoming(ctx, &part, first, min(first+rangeBlocks-1, l.mark.Final.Number))
		if err != nil {
			return err
		}
		for _, t := range transfers {
			if t.State == recharge.Seen {
				return fmt.Errorf("transfer %s:%d is not final in block %d", t.TxID, t.LogIndex, t.Block)
			}
		}
		if _, err := p.settleAll(ctx, transfers, &part, l.mark.Final.Time); err != nil {
			return err
		}
		for _, t := range transfers {
			for _, a := range list {
				if a.Address == t.To {
					p.watched.Paid(a)
				}
			}
		}
	}
	l.stored += part.stored
	return nil
}
