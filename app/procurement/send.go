package procurement

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/turns"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// send places a planned order: everything that may be read is read first, then
// the order is marked as sent, and then one call may spend money.
func (u purchases) send(ctx context.Context, _ session.Session, o procurement.Order) error {
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.refuse(ctx, o, procurement.Invalid, notConfigured)
	}
	if now, err := turn(ctx, u.Driver, p, o); err != nil || !now {
		return err
	}
	before, cost, err := u.preflight(ctx, p, o)
	if err != nil {
		return u.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	o, err = u.markSent(ctx, p, o, before, cost)
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	d, err := u.order(ctx, p, o)
	switch c := procurement.ClassOf(err); c {
	case "":
		return u.confirm(ctx, o, d)
	case procurement.Ambiguous:
		return u.markUnknown(ctx, o, procurement.ReasonOf(err))
	default:
		return u.refuse(ctx, o, c, procurement.ReasonOf(err))
	}
}

// turn reports whether a planned order is to be sent now. If the provider does not keep order
// keys, orders that are alike are sent one after the other: a new one in the provider's list
// then has one possible cause. It is decided before anything is read there.
func turn(ctx context.Context, u *Driver, p ports.Provider, o procurement.Order) (now bool, err error) {
	if p.Capabilities().Labels(o.Intent.Type) {
		return true, nil
	}
	err = u.mark(ctx, o, func(ctx context.Context, c *change) (err error) {
		now, err = c.waits(ctx, turns.Take)
		return err
	})
	return now, unlessTooLong(ctx, u, o, err)
}

// waits stores when a planned order looks again, and reports that it does not have to.
func (c *change) waits(ctx context.Context, take turns.Rule) (bool, error) {
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
	if errors.Is(err, turns.ErrWaitedTooLong) {
		return u.refuse(ctx, o, turns.ErrWaitedTooLong.Class, turns.ErrWaitedTooLong.Reason)
	}
	return err
}

// preflight returns the provider's cost of an order and, if the provider does not
// keep order keys, a snapshot of its existing orders.
func (u purchases) preflight(
	ctx context.Context, p ports.Provider, o procurement.Order,
) (before procurement.Snapshot, cost domain.Money, err error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	q, err := p.Quote(ctx, o.Intent)
	u.calls.Count(p, "quote", err)
	if err != nil {
		return before, 0, err
	}
	if q.Stock == procurement.StockNo {
		return before, 0, procurement.Refuse(procurement.OutOfStock, "the provider has none")
	}
	if err := o.Affordable(q); err != nil {
		return before, 0, err
	}
	if p.Capabilities().Labels(o.Intent.Type) {
		return before, q.Cost, nil
	}
	found, err := p.Find(ctx, o.Intent)
	u.calls.Count(p, "find", err)
	if err != nil {
		return before, 0, err
	}
	before.Refs = procurement.Refs(found)
	before.At = u.clock.Now()
	before.Funds, err = u.fundsBefore(ctx, p)
	return before, q.Cost, err
}

// fundsBefore returns the operator's balance at a provider before an order. It is
// not Known while another order of the provider is on its way: whether the
// balance has paid for that one cannot be distinguished from the cost of this one.
func (u *Driver) fundsBefore(ctx context.Context, p ports.Provider) (procurement.ProviderBalance, error) {
	busy := false
	err := u.store.View(ctx, func(ctx context.Context, tx Repos) error {
		open, _, err := tx.Orders().Rivals(ctx, procurement.Order{Provider: p.Name()})
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

// markSent stores that an order is about to be sent, and returns it as it is
// then; one that is still Planned is not to be sent, or not yet.
func (u *Driver) markSent(
	ctx context.Context, p ports.Provider, o procurement.Order, before procurement.Snapshot, cost domain.Money,
) (procurement.Order, error) {
	planned, take := o, turns.Rule(turns.Free)
	if p.Capabilities().Labels(o.Intent.Type) {
		take = turns.None
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

// order makes the call that buys.
func (u purchases) order(ctx context.Context, p ports.Provider, o procurement.Order) (procurement.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, moneyTimeout)
	defer cancel()
	d, err := p.Order(ctx, o.Intent)
	u.calls.Count(p, "order", err)
	return d, err
}

// confirm stores what a provider has for an order.
func (u purchases) confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error {
	return u.change(ctx, o, func(ctx context.Context, c *change) (err error) {
		if c.order.Status == procurement.Refused {
			u.log.Error("a provider made an order that was refused before; cancel it there",
				"order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider, "ref", d.Ref)
		}
		if c.order, err = c.order.Confirm(d, c.now); err != nil {
			return err
		}
		return u.confirmed(ctx, c, d)
	})
}

// change is like mark for a change that concerns the session, which is announced.
func (u *Driver) change(ctx context.Context, o procurement.Order, fn func(ctx context.Context, c *change) error) error {
	err := u.mark(ctx, o, fn)
	if err == nil {
		u.hub.SessionChanged(o.SessionID)
	}
	return err
}

// change is a transaction on an order and its session, as they are now.
type change struct {
	tx      Repos
	now     time.Time
	session session.Session
	order   procurement.Order
}

// put stores the order.
func (c *change) put(ctx context.Context) error { return c.tx.Orders().Put(ctx, c.order) }

// mark changes an order in one transaction. The session is locked before the
// order, as everywhere. An order that is decided meanwhile stays as it is.
func (u *Driver) mark(ctx context.Context, o procurement.Order, fn func(ctx context.Context, c *change) error) error {
	var before procurement.Order
	var c change
	err := u.store.Update(ctx, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		if err != nil {
			return err
		}
		if before, err = tx.Orders().Get(ctx, o.ID); err != nil {
			return err
		}
		c = change{tx: tx, now: u.clock.Now(), session: s, order: before}
		return fn(ctx, &c)
	})
	if err == nil && c.order.Excess() > before.Excess() {
		u.reportExcess(c.order, c.order.Excess()-before.Excess())
	}
	if errors.Is(err, procurement.ErrDecided) {
		return nil
	}
	return err
}
