package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// settledFunc reports whether a final transfer that was looked up by itself may be
// settled: all that is final before it is known, or no other scan reads it.
type settledFunc func(t recharge.Transfer) bool

// readWatched reads the addresses that may be paid, one by one.
func (p *Watcher) readWatched(ctx context.Context, l *look, watched []recharge.Address) (settledFunc, error) {
	from := func(a recharge.Address) time.Time { return l.known(a).Add(-overlap) }
	mine := make(map[string]bool, len(watched))
	for _, a := range watched {
		mine[a.Address] = true
	}
	done, _, err := p.readAll(ctx, l, watched, func(address string) bool { return mine[address] }, from)
	l.whole = err == nil && len(watched) < p.atOnce() && !p.byBlocks
	return func(t recharge.Transfer) bool {
		// No order waits for an address that is not watched, so the order in which
		// its money is found does not matter.
		return done[t.To] || !mine[t.To]
	}, err
}

// known is the time through which an address is known.
func (l *look) known(a recharge.Address) time.Time { return later(a.ReadThrough, l.mark.Final.Time) }

// historiesAtOnce is how many histories are read before they are stored.
const historiesAtOnce = 20

// readAll reads the history of each address from a time on, and settles one unit
// an agent. One that cannot be read does not stop the others: nothing of it
// moves. Turn reports which addresses have a turn, now or in another call: what
// goes to them from our other addresses waits for it, because there it is in the
// order of the chain. It returns which addresses were read and stored, and how
// many transfers were credited.
func (p *Watcher) readAll(ctx context.Context, l *look, list []recharge.Address, turn func(address string) bool,
	from func(recharge.Address) time.Time) (done map[string]bool, credited int, err error) {
	done = map[string]bool{}
	var faults []error
	for some := range slices.Chunk(list, historiesAtOnce) {
		n, err := p.readSome(ctx, l, some, turn, done, from)
		credited += n
		faults = append(faults, err)
		if ctx.Err() != nil {
			break
		}
	}
	return done, credited, errors.Join(faults...)
}

func (p *Watcher) readSome(ctx context.Context, l *look, list []recharge.Address, turn func(string) bool,
	done map[string]bool, from func(recharge.Address) time.Time) (credited int, err error) {
	var faults []error
	var all []recharge.Transfer
	covered := map[string]map[string]time.Time{} // by agent and address
	read := map[string]bool{}
	for _, a := range list {
		since := from(a)
		history, err := p.chain.History(ctx, a.Address, since)
		if err != nil {
			faults = append(faults, fmt.Errorf("read the history of %s: %w", a.Address, err))
			continue
		}
		read[a.Address] = true
		if l.histories != nil {
			l.histories[a.Address] = history
		}
		all = append(all, l.upToFinal(history)...)
		if covered[a.AgentID] == nil {
			covered[a.AgentID] = map[string]time.Time{}
		}
		if !since.After(l.known(a)) { // else there is a gap before it
			covered[a.AgentID][a.Address] = l.heads.Final.Time
		}
	}
	ours, err := p.owners(ctx, all)
	if err != nil {
		return 0, errors.Join(append(faults, err)...)
	}
	all = slices.DeleteFunc(all, func(t recharge.Transfer) bool {
		_, in := ours[t.To]
		return in && turn(t.To) && !read[t.To]
	})
	readings := p.sorted(all, ours)
	for _, a := range list { // those without transfers are known further all the same
		i := slices.IndexFunc(readings, func(r reading) bool { return r.agentID == a.AgentID })
		if i < 0 && read[a.Address] {
			readings, i = append(readings, reading{agentID: a.AgentID}), len(readings)
		}
		if i >= 0 {
			readings[i].covered = covered[a.AgentID]
		}
	}
	for _, r := range readings {
		r.blocks = l.mark.Final.Time
		n, err := p.settle(ctx, r)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		credited += n
		l.stored++
		for _, a := range list {
			done[a.Address] = done[a.Address] || a.AgentID == r.agentID && read[a.Address]
		}
	}
	return credited, errors.Join(faults...)
}

// upToFinal takes back that transfers are final which are above the final head
// that this look rests on: others before them may not be known yet.
func (l *look) upToFinal(transfers []recharge.Transfer) []recharge.Transfer {
	out := slices.Clone(transfers)
	for i := range out {
		if out[i].State == recharge.Final && out[i].Block > l.heads.Final.Number {
			out[i].State = recharge.Seen
		}
	}
	return out
}

// jump is how reading by blocks begins where nothing joins on: every address is
// read until it is known through the goal. Its blocks are then not read.
type jump struct {
	to   recharge.Head
	page int // the next of AllAddresses
	left bool
}

// contiguous reports whether reading by blocks can go on at the mark. If the
// mark is so far behind that reading the addresses costs less than reading the
// blocks, it jumps, a batch of addresses per pass; meanwhile it is false.
func (p *Watcher) contiguous(ctx context.Context, l *look) (bool, error) {
	behind := l.heads.Final.Number - l.mark.Final.Number
	unread := l.mark.Final.Number == 0 && l.mark.Final.Time.IsZero()
	if p.jump == nil || !unread && l.mark.Final.Number >= p.jump.to.Number {
		p.jump = nil
		if !unread && behind <= blocksAtOnce {
			return true, nil
		}
		all, err := p.page(ctx, 1, 1)
		if err != nil {
			return false, err
		}
		if !unread && behind <= blocksAtOnce+int64(all.Total) {
			return true, nil
		}
		p.jump = &jump{to: l.heads.Final, page: 1}
	}
	landed, err := p.land(ctx, l)
	if err != nil || !landed {
		return false, err
	}
	l.mark.Final = p.jump.to
	l.stored++
	p.jump, p.again = nil, true // the histories reached further back
	return true, p.putMark(ctx, l, false)
}

// land reads some of the addresses that are not known through the goal, and
// reports whether all are. An address that is listed twice, because one was made
// before it, is known by then.
func (p *Watcher) land(ctx context.Context, l *look) (bool, error) {
	from := func(a recharge.Address) time.Time { return l.known(a).Add(-overlap) }
	for budget := addressesAtOnce; budget > 0; {
		all, err := p.page(ctx, p.jump.page, domain.MaxPageSize)
		if err != nil {
			return false, err
		}
		if len(all.Items) == 0 {
			if p.jump.left {
				p.jump.page, p.jump.left = 1, false // those that failed
				return false, nil
			}
			return true, nil
		}
		behind := slices.DeleteFunc(all.Items, func(a recharge.Address) bool { return !a.ReadThrough.Before(p.jump.to.Time) })
		budget -= len(behind)
		p.jump.page++
		if _, _, err := p.readAll(ctx, l, behind, func(string) bool { return true }, from); err != nil {
			p.jump.left = true
			return false, err
		}
	}
	return false, nil
}

func (p *Watcher) page(ctx context.Context, number, size int) (list domain.List[recharge.Address], err error) {
	err = p.store.View(ctx, func(ctx context.Context, tx repos) error {
		list, err = tx.Recharges().AllAddresses(ctx, p.chain.Network(), domain.Page{Number: number, Size: size})
		return err
	})
	if err != nil {
		return list, fmt.Errorf("list our addresses: %w", err)
	}
	return list, nil
}
