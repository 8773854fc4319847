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
	"agentproxy/ports"
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
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		list, err = tx.PayAddresses().Addresses(ctx, p.chain.Network(), skip+limit)
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
	var ours []recharge.Address
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		ours, err = tx.PayAddresses().AllAddresses(ctx, p.chain.Network())
		return err
	})
	if err != nil {
		return 0, nil, fmt.Errorf("list addresses to audit: %w", err)
	}
	var faults []error
	for some := range slices.Chunk(ours, auditAtOnce) {
		n, found, _, err := auditor{p}.auditEach(ctx, some)
		checked, drifts, faults = checked+n, append(drifts, found...), append(faults, err)
	}
	return checked, drifts, errors.Join(faults...)
}

// auditAtOnce is how many balances are read at a time.
const auditAtOnce = 100

func (p auditor) auditEach(
	ctx context.Context, list []recharge.Address,
) (checked int, drifts []Drift, failed int, err error) {
	if len(list) == 0 {
		return 0, nil, 0, nil
	}
	to := make([]string, len(list))
	for i, a := range list {
		to[i] = a.Address
	}
	balances, err := p.chain.Balances(ctx, to)
	if err != nil {
		return 0, nil, 0, fmt.Errorf("read balances: %w", err) // no address is to blame
	}
	var faults []error
	for i, a := range list {
		d, err := p.audit(ctx, a, balances[i])
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

// audit compares one address with its balance at the latest block and keeps the
// outcome. Only where they differ it is read more closely. Whatever it finds, it
// reverses nothing: what is wrong is for the operator to check.
func (p auditor) audit(ctx context.Context, a recharge.Address, balance domain.Money) (Drift, error) {
	d := Drift{AgentID: a.AgentID, Address: a.Address, Chain: balance}
	var err error
	if d.Known, err = p.finalSum(ctx, a.Address, recharge.Head{}); err != nil {
		return d, err
	}
	if d.Chain != d.Known {
		if err := p.reread(ctx, a, &d); err != nil {
			return d, err
		}
	}
	drift := d.Chain - d.Known
	err = p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if _, err := tx.Ledger().Wallet(ctx, a.AgentID); err != nil {
			return err
		}
		ours, err := tx.PayAddresses().Owned(ctx, a.Network, []string{a.Address})
		if err != nil {
			return err
		}
		cur := ours[a.Address]
		cur.AuditedAt, cur.Drift = p.clock.Now(), drift
		return tx.PayAddresses().PutAddress(ctx, cur)
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

// finalSum returns the sum of the final transfers of an address, of blocks up to a
// head unless that is zero.
func (p auditor) finalSum(ctx context.Context, address string, upTo recharge.Head) (sum domain.Money, err error) {
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if sum, err = tx.Transfers().Known(ctx, p.chain.Network(), address); err != nil || upTo == (recharge.Head{}) {
			return err
		}
		after, err := tx.Transfers().FinalOf(ctx, p.chain.Network(), address, upTo.Time)
		for _, t := range after {
			if t.Block > upTo.Number {
				sum -= moved(t, address)
			}
		}
		return err
	})
	return sum, err
}

// moved returns the change that a transfer made to the balance of an address.
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

// fullReadEvery is how often the whole history of an address is read that goes on
// differing by the same amount: without an index it takes many calls.
const fullReadEvery = 6 * time.Hour

// reread reads what touches an address, credits what was missed, and compares
// again: first since the last audit that found no difference, and if that does not
// explain it since the address was made.
func (p auditor) reread(ctx context.Context, a recharge.Address, d *Drift) error {
	if !a.AuditedAt.IsZero() && a.Drift == 0 {
		if _, err := p.readOne(ctx, a, a.AuditedAt.Add(-overlap)); err != nil {
			return err
		}
	}
	if err := p.compare(ctx, a, d); err != nil || d.Chain == d.Known {
		return err
	}
	now := p.clock.Now()
	if drift := d.Chain - d.Known; drift == a.Drift && now.Sub(p.fullReadAt(a.Address)).Abs() < fullReadEvery {
		return nil
	}
	l, err := p.readOne(ctx, a, a.CreatedAt.Add(-maxClockSkew))
	if err != nil {
		return err
	}
	if d.Fault, err = p.gone(ctx, a.Address, l.heads.Final, l.history); err != nil {
		return err
	}
	p.deepened(a.Address, now)
	return p.compare(ctx, a, d)
}

// compare compares the balance of an address with what is known, both at one
// final head: what becomes final in between is not a difference.
func (p auditor) compare(ctx context.Context, a recharge.Address, d *Drift) error {
	for range stillTries {
		before, err := p.chain.Final(ctx)
		if err != nil {
			return err
		}
		if d.Chain, err = p.chain.Balance(ctx, a.Address); err != nil {
			return err
		}
		after, err := p.chain.Final(ctx)
		if err != nil {
			return err
		}
		if before != after {
			continue
		}
		if _, err := p.readOne(ctx, a, after.Time.Add(-overlap)); err != nil {
			return err
		}
		d.Known, err = p.finalSum(ctx, a.Address, after)
		return err
	}
	return errNotStill
}

// closeScan is a scan of one address.
type closeScan struct {
	snapshot
	history []recharge.Transfer
}

// readOne reads what touches an address from a time on and settles it.
func (p auditor) readOne(ctx context.Context, a recharge.Address, since time.Time) (*closeScan, error) {
	l := &closeScan{}
	var err error
	if l.heads, err = p.finalHead(ctx); err != nil {
		return nil, err
	}
	err = p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		l.mark, _, err = tx.Transfers().ScanCursor(ctx, p.chain.Network())
		return err
	})
	if err != nil {
		return nil, err
	}
	if l.history, err = p.chain.History(ctx, a.Address, since); err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", a.Address, err)
	}
	_, err = p.settleAll(ctx, l.upToFinal(l.history), &l.snapshot, l.mark.Final.Time)
	return l, err
}

func (p auditor) fullReadAt(address string) time.Time {
	p.found.Lock()
	defer p.found.Unlock()
	return p.fullReads[address]
}

func (p auditor) deepened(address string, at time.Time) {
	p.found.Lock()
	defer p.found.Unlock()
	p.fullReads[address] = at
}

// gone returns which transfers of an address that were final the chain does not
// have, or has otherwise. An index may leave one out, so the chain is asked for
// it by itself.
func (p auditor) gone(
	ctx context.Context, address string, upTo recharge.Head, history []recharge.Transfer,
) (string, error) {
	var final []recharge.Transfer
	err := p.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		final, err = tx.Transfers().FinalOf(ctx, p.chain.Network(), address, epoch)
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
			faults = append(faults, fmt.Sprintf("the final transfer %s:%d of %s is gone or another one", t.TxID, t.LogIndex,
				t.Amount))
		}
	}
	return strings.Join(faults, "; "), nil
}

// Rescan reads all blocks from a time on again and credits what was missed. It
// returns how many addresses there are and how many transfers were credited.
// Nothing is read before the first address was made.
func (p *Watcher) Rescan(ctx context.Context, from time.Time) (addresses, credited int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &snapshot{}
	if l.heads, err = p.finalHead(ctx); err != nil {
		return 0, 0, err
	}
	if err := p.begin(ctx, l); err != nil {
		return 0, 0, err
	}
	if l.ours, err = p.watched.All(ctx); err != nil || len(l.ours) == 0 {
		return 0, 0, err
	}
	made := l.heads.Final.Time
	for _, a := range l.ours {
		if a.CreatedAt.Before(made) {
			made = a.CreatedAt
		}
	}
	first, err := p.chain.Since(ctx, later(from, made.Add(-maxClockSkew)))
	if err != nil {
		return 0, 0, fmt.Errorf("look for the block of a time: %w", err)
	}
	next, err := p.beginning(ctx, l) // else orders would close before a gap is read
	if err != nil {
		return 0, 0, err
	}
	first = min(first, next)
	for final := l.heads.Final.Number; first <= final; first += rangeBlocks {
		last := min(first+rangeBlocks-1, final)
		n, err := p.readRange(ctx, l, first, last, last)
		credited += n
		if err != nil {
			return len(l.ours), credited, err
		}
	}
	return len(l.ours), credited, nil
}

// remember stores the result of an audit of this process, for Status.
func (p auditor) remember(address string, drift domain.Money) {
	p.found.Lock()
	defer p.found.Unlock()
	if delete(p.drifts, address); drift != 0 {
		p.drifts[address] = drift
	}
}
