package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/domain/recharge"
)

// scan reads the final blocks after the cursor, a batch per pass. It needs the same
// calls however many addresses there are.
func (p *Watcher) scan(ctx context.Context, l *look) error {
	if err := p.scanAgain(ctx, l); err != nil {
		return err
	}
	final := l.heads.Final
	last := min(final.Number, l.mark.Final.Number+blocksAtOnce)
	at := l.mark.Final.Time
	var faults []error
	failed := map[string]bool{}
	for n := l.mark.Final.Number + 1; n <= last; n++ {
		transfers, err := p.finalBlock(ctx, n)
		if err != nil {
			faults = append(faults, err)
			break
		}
		// The time of a block is known from its content, that of an empty one from the head it is,
		// or not at all. The times of blocks grow, so the last that is known is
		// never too late.
		for _, t := range transfers {
			if t.Block == n && t.BlockTime.Before(final.Time) {
				at = later(at, t.BlockTime)
			}
		}
		if n == final.Number {
			at = final.Time
		}
		// What fails for one agent does not stop the others: only the mark stays,
		// and those that failed wait for the next pass, to be settled in order.
		faults = append(faults, p.settleAll(ctx, transfers, l, at, failed))
		if len(failed) == 0 {
			l.mark.Final = recharge.Head{Number: n, Time: at}
			l.stored++
		}
	}
	if l.mark.Final.Number == final.Number {
		l.mark.Final.Time = later(l.mark.Final.Time, final.Time)
		l.whole = true
	}
	return errors.Join(faults...)
}

// scanAgain reads the last blocks before the mark once more when the process
// begins: the node that answered then may have left something out.
func (p *Watcher) scanAgain(ctx context.Context, l *look) error {
	if p.again {
		return nil
	}
	for n := max(l.mark.Final.Number-overlapBlocks+1, 0); n <= l.mark.Final.Number; n++ {
		transfers, err := p.finalBlock(ctx, n)
		if err == nil {
			err = p.settleAll(ctx, transfers, l, l.mark.Final.Time, map[string]bool{})
		}
		if err != nil {
			return err
		}
	}
	p.again = true
	return nil
}

// finalBlock reads a block that the chain reports as final.
func (p *Watcher) finalBlock(ctx context.Context, n int64) ([]recharge.Transfer, error) {
	transfers, err := p.chain.Block(ctx, n, true)
	if err != nil {
		return nil, fmt.Errorf("read block %d: %w", n, err)
	}
	for _, t := range transfers {
		if t.State != recharge.Final && t.State != recharge.Ignored {
			return nil, fmt.Errorf("read block %d: transfer %s:%d is %s in a final block", n, t.TxID, t.LogIndex, t.State)
		}
	}
	return transfers, nil
}

// show reads the blocks above the final head once each: what is in them is seen,
// and nothing is credited by it. If one of them is replaced, its transfers are
// found again in a final block, or resolve asks for them.
func (p *Watcher) show(ctx context.Context, l *look) error {
	first := max(l.heads.Final.Number, p.shown, l.heads.Latest.Number-blocksAtOnce) + 1
	for n := first; n <= l.heads.Latest.Number; n++ {
		transfers, err := p.chain.Block(ctx, n, false)
		if err != nil {
			return fmt.Errorf("read block %d: %w", n, err)
		}
		if err := p.settleAll(ctx, l.upToFinal(transfers), l, l.mark.Final.Time, map[string]bool{}); err != nil {
			return err
		}
		p.shown = n
	}
	return nil
}

// settleAll settles what concerns us of some transfers, one unit an agent, but
// for agents that failed before. Through is the chain time up to which every
// address is known with them.
func (p *Watcher) settleAll(
	ctx context.Context, transfers []recharge.Transfer, l *look, through time.Time, failed map[string]bool,
) error {
	ours, err := p.owners(ctx, transfers)
	if err != nil {
		failed[""] = true
		return err
	}
	var faults []error
	for _, r := range p.sorted(transfers, ours) {
		if failed[r.agentID] {
			continue
		}
		r.blocks = through
		if _, err := p.settle(ctx, r); err != nil {
			failed[r.agentID] = true
			faults = append(faults, err)
			continue
		}
		l.stored++
	}
	return errors.Join(faults...)
}

// grace is how many final blocks a transfer that was only seen is given to be
// found in one of them. After that the chain is asked for it.
const grace = 40

// resolve asks what became of transfers that were seen and are not final though
// they should be. None stays seen for ever. One that is final after all is
// settled if its turn in the order of the chain has come.
func (p *Watcher) resolve(ctx context.Context, l *look, settled settledFunc) error {
	var rows []recharge.Transfer
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		rows, err = tx.Recharges().SeenUpTo(ctx, p.chain.Network(), l.upTo-grace, seenAtOnce)
		return err
	})
	if err != nil {
		return fmt.Errorf("list transfers that are seen: %w", err)
	}
	var faults []error
	asked := map[string]bool{}
	for _, row := range rows {
		if asked[row.TxID] {
			continue
		}
		asked[row.TxID] = true
		now, err := p.chain.Transaction(ctx, row.TxID)
		if err != nil {
			faults = append(faults, fmt.Errorf("read transaction %s: %w", row.TxID, err))
			continue
		}
		now = l.upToFinal(now)
		there := map[recharge.Key]bool{}
		for i, t := range now {
			there[t.Key] = true
			if t.State == recharge.Final && !settled(t) {
				now[i].State = recharge.Seen
			}
		}
		for _, t := range rows {
			if t.TxID == row.TxID && !there[t.Key] {
				t.State = recharge.Orphaned
				now = append(now, t)
			}
		}
		faults = append(faults, p.settleAll(ctx, now, l, l.mark.Final.Time, map[string]bool{}))
	}
	return errors.Join(faults...)
}

// closeWindows settles agents with an order whose window closed before the mark.
// Where addresses are read one by one, that is done with each of them.
func (p *Watcher) closeWindows(ctx context.Context, l *look) error {
	var agents []string
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		agents, err = tx.Recharges().Overdue(ctx, p.chain.Network(), l.mark.Final.Time, overdueAtOnce)
		return err
	})
	if err != nil {
		return fmt.Errorf("list windows that are over: %w", err)
	}
	var faults []error
	for _, id := range agents {
		_, err := p.settle(ctx, reading{agentID: id, blocks: l.mark.Final.Time})
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
