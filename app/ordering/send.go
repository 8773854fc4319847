package ordering

import (
	"context"
	"errors"

	"agentproxy/app/fairqueue"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// turn reports whether a planned order is to be sent now. If the provider does not keep order
// keys, orders that are alike are sent one after the other: a new one in the provider's list
// then has one possible cause. It is decided before anything is read there.
func turn(ctx context.Context, u *Driver, p ports.Provider, o procurement.Order) (now bool, err error) {
	if p.Capabilities().Labels(o.Intent.Type) {
		return true, nil
	}
	err = u.mark(ctx, o, func(ctx context.Context, c *change) (err error) {
		now, err = c.waits(ctx, fairqueue.Queued(u.funding))
		return err
	})
	return now, unlessTooLong(ctx, u, o, err)
}

// waits stores when a planned order looks again, and reports that it does not have to.
func (c *change) waits(ctx context.Context, take fairqueue.Rule) (bool, error) {
	if c.order.Status != procurement.Planned {
		return false, nil // another process has sent it, or the session has ended
	}
	wait, err := take(ctx, c.tx, c.order, c.now)
	if err != nil || wait == 0 {
		return err == nil, err
	}
	c.order.Class, c.order.NextAt = procurement.RateLimited, c.now.Add(wait)
	return false, c.put(ctx)
}

// unlessTooLong refuses an order that has waited too long for its turn.
func unlessTooLong(ctx context.Context, u *Driver, o procurement.Order, err error) error {
	if errors.Is(err, fairqueue.ErrWaitedTooLong) {
		return u.refuse(ctx, o, fairqueue.ErrWaitedTooLong.Class, fairqueue.ErrWaitedTooLong.Reason)
	}
	return err
}

// markSent stores that an order is about to be sent, and returns it as it is
// then; one that is still Planned is not to be sent, or not yet.
func (u *Driver) markSent(
	ctx context.Context, p ports.Provider, o procurement.Order, before procurement.Snapshot, cost domain.Money,
) (procurement.Order, error) {
	planned, take := o, fairqueue.Rule(fairqueue.Exclusive)
	if p.Capabilities().Labels(o.Intent.Type) {
		take = fairqueue.None
	}
	err := u.mark(ctx, o, func(ctx context.Context, c *change) error {
		o = planned
		if now, err := c.waits(ctx, take); err != nil || !now {
			return err
		}
		c.order.Class, c.order.Cost = "", cost // until the provider returns what it charged
		sent, err := c.order.Send(before, c.now)
		if err != nil {
			return err
		}
		o = sent
		return c.tx.Orders().Put(ctx, o)
	})
	return o, unlessTooLong(ctx, u, planned, err)
}

// fundsBefore returns the operator's balance at a provider before an order. It is
// not Known while another order of the provider is on its way: whether the
// balance has paid for that one cannot be distinguished from the cost of this one.
func (u *Driver) fundsBefore(ctx context.Context, p ports.Provider) (procurement.ProviderBalance, error) {
	busy := false
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		open, _, err := tx.Orders().CountOpen(ctx, procurement.Order{Provider: p.Name()})
		busy = open > 0
		return err
	})
	if err != nil {
		busy = true // it may be
	}
	funds, err := p.Balance(ctx)
	u.calls.Count(p, "balance", err)
	if busy {
		funds = procurement.ProviderBalance{}
	}
	return funds, err
}
