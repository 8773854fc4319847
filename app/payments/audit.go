package payments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/recharge"
)

// Drift is an address whose balance on the chain is not what is known of it.
type Drift struct {
	AgentID string
	Address string
	Chain   domain.Money // at the final head
	Known   domain.Money // final transfers to it less those from it
	Fault   string       // also set: what else does not hold, such as a final transfer that is gone
}

// auditor compares addresses with the chain.
type auditor struct{ *Watcher }

// Audit reads what is new of the addresses that were audited longest ago, at most limit,
// compares them with the chain, reads the whole history of those that differ, and
// keeps what difference is left.
func (p *Watcher) Audit(ctx context.Context, limit int) error {
	skip := int(p.skip.Load())
	var list []recharge.Address
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		list, err = tx.Recharges().Addresses(ctx, p.chain.Network(), skip+limit)
		return err
	})
	if err != nil {
		return fmt.Errorf("list addresses to audit: %w", err)
	}
	_, _, failed, err := auditor{p}.auditEach(ctx, list[min(skip, len(list)):])
	// What cannot be read stays in front, and must not keep the others waiting.
	switch {
	case failed > 0 && skip < len(list):
		p.skip.Add(int64(failed))
	default:
		p.skip.Store(int64(skip / 2))
	}
	return err
}

// AuditAll compares every address, changes nothing but what Audit does, and
// returns those that differ.
func (p *Watcher) AuditAll(ctx context.Context) (checked int, drifts []Drift, err error) {
	err = auditor{p}.everyPage(ctx, func(list []recharge.Address) error {
		n, some, _, err := auditor{p}.auditEach(ctx, list)
		checked, drifts = checked+n, append(drifts, some...)
		return err
	})
	return checked, drifts, err
}

// everyPage calls fn with all addresses, page by page. A page that fails does
// not stop the others.
func (p auditor) everyPage(ctx context.Context, fn func([]recharge.Address) error) error {
	var faults []error
	for n := 1; ctx.Err() == nil; n++ {
		all, err := p.page(ctx, n, domain.MaxPageSize)
		if err != nil || len(all.Items) == 0 {
			return errors.Join(append(faults, err)...)
		}
		faults = append(faults, fn(all.Items))
	}
	return errors.Join(append(faults, ctx.Err())...)
}

func (p auditor) auditEach(
	ctx context.Context, list []recharge.Address,
) (checked int, drifts []Drift, failed int, err error) {
	if len(list) == 0 {
		return 0, nil, 0, nil
	}
	l, err := p.lookNow(ctx)
	if err != nil {
		return 0, nil, 0, err // no address is to blame
	}
	var faults []error
	for _, a := range list {
		d, err := p.audit(ctx, l, a)
		if err != nil {
			failed++
			faults = append(faults, fmt.Errorf("audit %s: %w", a.Address, err))
			continue
		}
		checked++
		if d.Chain != d.Known || d.Fault != "" {
			drifts = append(drifts, d)
		}
	}
	return checked, drifts, failed, errors.Join(faults...)
}

// audit compares one address and keeps the outcome. Whatever it finds, it
// reverses nothing: what is wrong is for the operator to judge. A balance shows
// nothing of money that came and left again, or went from an address to itself, so
// what is not known yet is read first: no other scan may read this address.
func (p auditor) audit(ctx context.Context, l *look, a recharge.Address) (Drift, error) {
	d := Drift{AgentID: a.AgentID, Address: a.Address}
	var err error
	if known := l.known(a); known.Before(l.heads.Final.Time) {
		if err = p.readOne(ctx, l, a, known.Add(-overlap)); err != nil {
			return d, err
		}
	}
	if d.Chain, err = p.chain.Balance(ctx, a.Address); err != nil {
		return d, err
	}
	if d.Known, err = p.knownOf(ctx, a.Address, recharge.Head{}); err != nil {
		return d, err
	}
	if d.Chain != d.Known {
		if err := p.reread(ctx, a, &d); err != nil {
			return d, err
		}
	}
	drift := d.Chain - d.Known
	err = p.store.Update(ctx, func(ctx context.Context, tx repos) error {
		if _, err := tx.Ledger().Wallet(ctx, a.AgentID); err != nil {
			return err
		}
		ours, err := tx.Recharges().Owned(ctx, a.Network, []string{a.Address})
		if err != nil {
			return err
		}
		cur := ours[a.Address]
		cur.AuditedAt, cur.Drift = p.clock.Now(), drift
		return tx.Recharges().PutAddress(ctx, cur)
	})
	if err != nil {
		return d, err
	}
	p.remember(a.Address, drift)
	if drift != 0 || d.Fault != "" {
		p.log.Error("the balance of an address is not what is known of it", "agent_id", a.AgentID, "address", a.Address,
			"chain", d.Chain.String(), "known", d.Known.String(), "fault", d.Fault)
	}
	return d, nil
}

// knownOf is the sum of the final transfers of an address, of blocks up to a
// head unless that is zero.
func (p auditor) knownOf(ctx context.Context, address string, upTo recharge.Head) (sum domain.Money, err error) {
	err = p.store.View(ctx, func(ctx context.Context, tx repos) error {
		if sum, err = tx.Recharges().Known(ctx, p.chain.Network(), address); err != nil || upTo == (recharge.Head{}) {
			return err
		}
		after, err := tx.Recharges().FinalOf(ctx, p.chain.Network(), address, upTo.Time)
		for _, t := range after {
			if t.Block > upTo.Number {
				sum -= moved(t, address)
			}
		}
		return err
	})
	return sum, err
}

// moved is what a transfer did to the balance of an address.
func moved(t recharge.Transfer, address string) (sum domain.Money) {
	if t.To == address {
		sum += t.Amount
	}
	if t.From == address {
		sum -= t.Amount
	}
	return sum
}

// stillTries is how often a balance is read until the final head does not move
// around it.
const stillTries = 5

var errNotStill = errors.New("the final head moved whenever the balance was read")

// epoch is older than every chain.
var epoch = time.Unix(0, 0).UTC()

// reread reads the whole history of an address, credits what was missed, and
// compares again, both sides at one final head: what becomes final in between is
// no difference.
func (p auditor) reread(ctx context.Context, a recharge.Address, d *Drift) error {
	l, err := p.lookNow(ctx)
	if err != nil {
		return err
	}
	l.histories = map[string][]recharge.Transfer{}
	if err := p.readOne(ctx, l, a, epoch); err != nil {
		return err
	}
	if d.Fault, err = p.gone(ctx, a.Address, l.heads.Final, l.histories[a.Address]); err != nil {
		return err
	}
	since := l.heads.Final.Time.Add(-overlap)
	for range stillTries {
		before, err := p.lookNow(ctx)
		if err != nil {
			return err
		}
		if d.Chain, err = p.chain.Balance(ctx, a.Address); err != nil {
			return err
		}
		after, err := p.lookNow(ctx)
		if err != nil {
			return err
		}
		if before.heads.Final != after.heads.Final {
			continue
		}
		if err := p.readOne(ctx, after, a, since); err != nil {
			return err
		}
		d.Known, err = p.knownOf(ctx, a.Address, after.heads.Final)
		return err
	}
	return errNotStill
}

// lookNow is a look at the chain by itself, outside the passes.
func (p auditor) lookNow(ctx context.Context) (*look, error) {
	heads, err := p.chain.Heads(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the heads of the chain: %w", err)
	}
	l := &look{heads: heads}
	err = p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		l.mark, _, err = tx.Recharges().ScanCursor(ctx, p.chain.Network())
		return err
	})
	return l, err
}

// readOne reads an address and settles all that it returns, for our other addresses too:
// what left it is known only then.
func (p auditor) readOne(ctx context.Context, l *look, a recharge.Address, since time.Time) error {
	only := func(address string) bool { return address == a.Address }
	_, _, err := p.readAll(ctx, l, []recharge.Address{a}, only, func(recharge.Address) time.Time { return since })
	return err
}

// gone returns which transfers of an address that were final the chain does not
// have, or has otherwise. An index may leave one out, so the chain is asked for
// it by itself.
func (p auditor) gone(
	ctx context.Context, address string, upTo recharge.Head, history []recharge.Transfer,
) (string, error) {
	var final []recharge.Transfer
	err := p.store.View(ctx, func(ctx context.Context, tx repos) (err error) {
		final, err = tx.Recharges().FinalOf(ctx, p.chain.Network(), address, epoch)
		return err
	})
	if err != nil {
		return "", err
	}
	var faults []string
	for _, t := range final {
		same := func(o recharge.Transfer) bool {
			return o.Key == t.Key && o.From == t.From && o.To == t.To && o.Amount == t.Amount && o.State == recharge.Final
		}
		if t.Block > upTo.Number || slices.ContainsFunc(history, same) {
			continue
		}
		now, err := p.chain.Transaction(ctx, t.TxID)
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(now, same) {
			faults = append(faults, fmt.Sprintf("the final transfer %s:%d of %s is gone or another one", t.TxID, t.LogIndex, t.Amount))
		}
	}
	return strings.Join(faults, "; "), nil
}

// Rescan reads the history of every address from a time on again and credits
// what was missed. It returns how many addresses were read and how many
// transfers were credited.
func (p *Watcher) Rescan(ctx context.Context, from time.Time) (addresses, credited int, err error) {
	from = later(from, epoch)
	all := func(string) bool { return true }
	err = auditor{p}.everyPage(ctx, func(list []recharge.Address) error {
		l, err := auditor{p}.lookNow(ctx)
		if err != nil {
			return err
		}
		done, n, err := p.readAll(ctx, l, list, all, func(recharge.Address) time.Time { return from })
		credited += n
		for _, ok := range done {
			if ok {
				addresses++
			}
		}
		return err
	})
	return addresses, credited, err
}

// remember keeps what an audit of this process found, for Status.
func (p auditor) remember(address string, drift domain.Money) {
	p.found.Lock()
	defer p.found.Unlock()
	if delete(p.drifts, address); drift != 0 {
		p.drifts[address] = drift
	}
}

func (p auditor) drifting(s *Status) {
	p.found.Lock()
	defer p.found.Unlock()
	s.Drifting = len(p.drifts)
	for _, d := range p.drifts {
		s.Drift += max(d, -d)
	}
}
