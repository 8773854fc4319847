package payments

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/app/crediting"
	"agentproxy/domain"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// An agent whose transfers cannot be booked fails sickAfter scans before they are set aside: what a moment explains is
// over by then. They are tried again each retryAsideEvery, at most asideAtOnce, because each costs a call.
const (
	sickAfter       = 3
	retryAsideEvery = 10 * time.Minute
	asideAtOnce     = 20
)

// sick notes the outcome of a settlement and reports whether its agent fails by itself, time after time.
func (p *Watcher) sick(ctx context.Context, agentID string, err error) bool {
	p.found.Lock()
	defer p.found.Unlock()
	switch {
	case err == nil:
		delete(p.failing, agentID)
	case ctx.Err() == nil && !errors.Is(err, domain.ErrUnavailable):
		p.failing[agentID]++
	}
	return err != nil && p.failing[agentID] >= sickAfter
}

// isSick reports what sick found last.
func (p *Watcher) isSick(agentID string) bool {
	p.found.Lock()
	defer p.found.Unlock()
	return p.failing[agentID] >= sickAfter
}

// setAside keeps the final transfers of a reading that could not be settled, so that the cursor can go on.
func (p *Watcher) setAside(ctx context.Context, r crediting.Reading, failure error) error {
	reason := failure.Error()
	reason = reason[:min(len(reason), recharge.MaxReason)]
	err := p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		for _, t := range r.Transfers {
			if t.State != recharge.Final {
				continue
			}
			err := tx.Transfers().SetAside(ctx, recharge.Aside{Key: t.Key, AgentID: r.AgentID, Amount: t.Amount, Block: t.Block,
				Reason: reason, TriedAt: p.clock.Now()})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		p.log.Error("transfers of an agent cannot be booked and are set aside; the others go on", "agent_id", r.AgentID,
			"err", failure)
	}
	return err
}

// retryAside tries again to book what is set aside. What became of a transfer is read from the chain.
func (p *Watcher) retryAside(ctx context.Context, l *snapshot) error {
	now := p.clock.Now()
	if !p.retried.IsZero() && now.Sub(p.retried).Abs() < retryAsideEvery {
		return nil
	}
	p.retried = now
	list, _, err := p.Aside(ctx, asideAtOnce)
	var faults []error
	for _, a := range list {
		transfers, err := p.chain.Transaction(ctx, a.TxID)
		if err != nil {
			faults = append(faults, fmt.Errorf("read transaction %s: %w", a.TxID, err))
			continue
		}
		ours, err := p.owners(ctx, transfers)
		if err != nil {
			return err
		}
		for _, r := range p.sorted(l.upToFinal(transfers), ours) {
			r.Blocks = l.mark.Final.Time
			if r.AgentID != a.AgentID {
				continue
			}
			if _, err := p.settle(ctx, r); err != nil {
				faults = append(faults, p.setAside(ctx, r, err))
				continue
			}
			p.sick(ctx, r.AgentID, nil)
			faults = append(faults, p.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
				return tx.Transfers().TakeBack(ctx, a.Key) // who audits may have booked it before
			}))
		}
	}
	return errors.Join(err, errors.Join(faults...))
}
