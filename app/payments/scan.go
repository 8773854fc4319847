package payments

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"agentproxy/app/crediting"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// The bounds of one scan. A source reads as many blocks and addresses in one
// call, so a scan of a watcher that keeps up is one call for a thousand addresses,
// and three days of TRON are 18 ranges.
const (
	rangeBlocks   = 5000
	rangesAtOnce  = 20
	seenAtOnce    = 100
	overdueAtOnce = 500
)

// addressesAtOnce is how many addresses are read in one call.
const addressesAtOnce = 1000

// overlap is how much of what is known is read again in every scan, by time and
// in blocks: a source may lag behind the block that it reports to be complete.
const (
	overlap       = 10 * time.Minute
	overlapBlocks = 200
)

// Watch takes one look at the chain: what is new is stored, what became final
// is credited, what went away is withdrawn, and windows that are over close. An
// error of the chain proves nothing: what could not be read stays as it is.
// While no order is open the chain is not read each time, and while none can be
// paid any more only its final part.
func (p *Watcher) Watch(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	rest := !p.began.IsZero() && now.Sub(p.began).Abs() < p.idle
	awaited, err := p.awaited(ctx, now, rest)
	if err != nil || rest && !awaited {
		return err
	}
	p.began = now
	read := p.finalHead
	if awaited { // what is above the final head matters too
		read = p.heads
	}
	heads, err := read(ctx)
	if err != nil {
		return err
	}
	p.warnOfSkew(heads)
	l := &snapshot{heads: heads, recent: p.recent}
	if err := p.begin(ctx, l); err != nil {
		return err
	}
	err = errors.Join(p.scan(ctx, l), p.resolve(ctx, l), p.closeWindows(ctx, l), p.retryAside(ctx, l))
	if err != nil && l.stored == 0 {
		return err // the chain could not be read
	}
	return errors.Join(err, p.putMark(ctx, l, err == nil && l.complete))
}

// awaited reports whether an order may be paid: whether one is open, or also,
// unless that is all that is asked for, one that has expired and can be paid late.
func (p *Watcher) awaited(ctx context.Context, now time.Time, openAlone bool) (awaited bool, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		agents, err := tx.Recharges().Overdue(ctx, p.chain.Network(), endOfTime, 1)
		if awaited = len(agents) > 0; err != nil || awaited || openAlone {
			return err
		}
		late, err := tx.Recharges().Orders(ctx, "", recharge.Expired, domain.Page{Number: 1, Size: 1})
		awaited = len(late.Items) > 0 && now.Before(late.Items[0].ExpiresAt.Add(recharge.Late+overlap))
		return err
	})
	if err != nil {
		return false, fmt.Errorf("look for orders that may be paid: %w", err)
	}
	return awaited, nil
}

// endOfTime is after the window of every order.
var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// scan reads the blocks after the cursor, and a little before it, for transfers to any of our
// addresses. Transfers above the final head are recorded as unconfirmed and credit nothing.
func (p *Watcher) scan(ctx context.Context, l *snapshot) error {
	from, err := p.beginning(ctx, l)
	if err == nil {
		err = p.catchUp(ctx, l)
	}
	if err != nil {
		return err
	}
	final := l.heads.Final.Number
	for range rangesAtOnce {
		last := min(from+rangeBlocks-1, final)
		top := last
		if last == final {
			top = max(last, min(l.heads.Latest.Number, from+rangeBlocks-1))
		}
		if _, err := p.readRange(ctx, l, from, last, top); err != nil {
			return err
		}
		if l.complete = last == final; l.complete {
			return p.readRest(ctx, l)
		}
		if err := p.putMark(ctx, l, false); err != nil {
			return err
		}
		from = last + 1
	}
	return nil
}

// beginning returns the first block that must be read. Older versions stored
// addresses through a time of their own, which may be later than the cursor. An
// address that is made later needs nothing before: no transfer can have been sent
// to it.
func (p *Watcher) beginning(ctx context.Context, l *snapshot) (int64, error) {
	if len(l.ours) == 0 { // no agent can have been paid
		l.mark.Final = l.heads.Final
	}
	next := min(l.mark.Final.Number, l.heads.Final.Number) + 1 - overlapBlocks
	known := l.heads.Final.Time
	for _, a := range l.ours {
		if through := later(a.ReadThrough, l.mark.Final.Time); through.Before(known) {
			known = through
		}
	}
	if l.mark.Final.Number == 0 || known.After(l.mark.Final.Time) {
		n, err := p.chain.Since(ctx, known.Add(-overlap))
		if err != nil {
			return 0, fmt.Errorf("look for the block of a time: %w", err)
		}
		next = max(next, n)
	}
	return max(min(next, l.heads.Final.Number), 0), nil
}

// readRange reads and settles blocks first to top, of which those up to last are
// final, and moves the cursor to last. If an agent cannot be settled the cursor
// stays, and the whole range is read again, in order, until the agent is known to be sick.
func (p *Watcher) readRange(ctx context.Context, l *snapshot, first, last, top int64) (credited int, err error) {
	transfers, err := p.incoming(ctx, l, first, top)
	if err != nil {
		return 0, err
	}
	// The time of a block is known from its content, that of an empty one from the
	// head it is, or not at all. The times of blocks grow, so the last that is known
	// is never too late.
	at := l.mark.Final.Time
	for _, t := range transfers {
		if t.Block > last {
			continue
		}
		if t.State == recharge.Seen {
			return 0, fmt.Errorf("transfer %s:%d is not final in block %d", t.TxID, t.LogIndex, t.Block)
		}
		if t.BlockTime.Before(l.heads.Final.Time) {
			at = later(at, t.BlockTime)
		}
	}
	if last == l.heads.Final.Number {
		at = l.heads.Final.Time
	}
	if credited, err = p.settleAll(ctx, l.fresh(transfers), l, at); err != nil {
		return credited, err
	}
	l.remember(transfers, last)
	if last >= l.mark.Final.Number {
		l.mark.Final = recharge.Head{Number: last, Time: later(at, l.mark.Final.Time)}
		l.stored++
	}
	return credited, nil
}

// fresh returns the transfers that this process has not settled as they are: the
// last blocks are read in every scan, and each agent would cost a unit of work.
func (l *snapshot) fresh(transfers []recharge.Transfer) []recharge.Transfer {
	return slices.DeleteFunc(slices.Clone(transfers), func(t recharge.Transfer) bool {
		was, known := l.recent[t.Key]
		return known && was == settledAs{t.Block, t.State}
	})
}

// remember caches what was settled, and drops blocks that are not read again.
func (l *snapshot) remember(transfers []recharge.Transfer, last int64) {
	if l.recent == nil {
		return
	}
	for _, t := range transfers {
		l.recent[t.Key] = settledAs{t.Block, t.State}
	}
	maps.DeleteFunc(l.recent, func(_ recharge.Key, was settledAs) bool { return was.block <= last-overlapBlocks })
}

// incoming reads the transfers to our addresses in some blocks, in chain order.
func (p *Watcher) incoming(ctx context.Context, l *snapshot, first, last int64) ([]recharge.Transfer, error) {
	var all []recharge.Transfer
	for some := range slices.Chunk(l.ours, addressesAtOnce) {
		to := make([]string, len(some))
		for i, a := range some {
			to[i] = a.Address
		}
		found, err := p.chain.Incoming(ctx, to, first, last)
		if err != nil {
			return nil, fmt.Errorf("read blocks %d to %d: %w", first, last, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, recharge.Compare)
	return l.upToFinal(all), nil
}

// upToFinal takes back that transfers are final which are above the final head
// that this look rests on: others before them may not be known yet.
func (l *snapshot) upToFinal(transfers []recharge.Transfer) []recharge.Transfer {
	out := slices.Clone(transfers)
	for i := range out {
		if out[i].State == recharge.Final && out[i].Block > l.heads.Final.Number {
			out[i].State = recharge.Seen
		}
	}
	return out
}

// settleAll settles what concerns us of some transfers, one unit an agent, and
// returns how many were credited. What fails for one agent does not stop the
// others. Through is the chain time up to which every address is known with them.
func (p *Watcher) settleAll(
	ctx context.Context, transfers []recharge.Transfer, l *snapshot, through time.Time,
) (credited int, err error) {
	ours, err := p.owners(ctx, transfers)
	if err != nil {
		return 0, err
	}
	var faults []error
	for _, r := range p.sorted(transfers, ours) {
		r.Blocks = through
		n, err := p.settle(ctx, r)
		credited += n
		if p.sick(ctx, r.AgentID, err) {
			err = p.setAside(ctx, r, err)
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		l.stored++
	}
	return credited, errors.Join(faults...)
}

// grace is how many final blocks a transfer that was only seen is given to be
// found in one of them. After that the chain is asked for it.
const grace = 40

// resolve reads the state of transfers that were seen and are not final though
// they should be, so that each becomes final or is dropped. One that is final after all is
// settled if its turn in the order of the chain has come.
func (p *Watcher) resolve(ctx context.Context, l *snapshot) error {
	var rows []recharge.Transfer
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		rows, err = tx.Transfers().SeenUpTo(ctx, p.chain.Network(), l.mark.Final.Number-grace, seenAtOnce)
		return err
	})
	if err != nil {
		return fmt.Errorf("list transfers that are seen: %w", err)
	}
	var faults []error
	asked := map[string]bool{}
	for _, row := range rows {
		if asked[row.TxID] || p.isSick(row.AgentID) {
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
			if t.State == recharge.Final && t.Block > l.mark.Final.Number {
				now[i].State = recharge.Seen
			}
		}
		for _, t := range rows {
			if t.TxID == row.TxID && !there[t.Key] {
				t.State = recharge.Orphaned
				now = append(now, t)
			}
		}
		_, err = p.settleAll(ctx, now, l, l.mark.Final.Time)
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// closeWindows settles agents with an order whose window closed before the mark.
func (p *Watcher) closeWindows(ctx context.Context, l *snapshot) error {
	var agents []string
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		agents, err = tx.Recharges().Overdue(ctx, p.chain.Network(), l.mark.Final.Time, overdueAtOnce)
		return err
	})
	if err != nil {
		return fmt.Errorf("list windows that are over: %w", err)
	}
	var faults []error
	for _, id := range agents {
		_, err := p.settle(ctx, crediting.Reading{AgentID: id, Blocks: l.mark.Final.Time})
		if !p.sick(ctx, id, err) { // its orders stay open
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}
