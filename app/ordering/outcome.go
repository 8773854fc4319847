package ordering

import (
	"context"
	"time"

	"agentproxy/app/settlement"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// How often a provider is asked about a live order, and for the usage of a direct session.
const (
	checkEvery     = time.Hour
	pollUsageEvery = 30 * time.Second
)

// markUnknown stores that the outcome of an order is not known.
func (u *Driver) markUnknown(ctx context.Context, o procurement.Order, reason string) error {
	var frozen bool
	err := u.mark(ctx, o, func(ctx context.Context, c *change) (err error) {
		before := c.order.FrozenAt
		if c.order, err = c.order.MarkUnknown(reason, c.now); err != nil {
			return err
		}
		frozen = before.IsZero() && !c.order.FrozenAt.IsZero()
		return c.put(ctx)
	})
	if err == nil && frozen {
		u.log.Error("the outcome of an upstream order is unknown for a day; the operator has to adopt or release it",
			"order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider)
	}
	return err
}

// refuse stores that an order provably bought nothing, and what follows from it.
// A proof from before the order was sent is void if another process has sent it
// meanwhile.
func (u *Driver) refuse(ctx context.Context, o procurement.Order, class procurement.Class, reason string) error {
	u.log.Warn("a provider refused an order", "order_id", o.ID, "session_id", o.SessionID, "provider", o.Provider,
		"class", string(class), "reason", reason)
	proven := o.Status
	return u.change(ctx, o, func(ctx context.Context, c *change) (err error) {
		if proven == procurement.Planned && c.order.Status != procurement.Planned {
			return procurement.ErrDecided
		}
		if c.order, err = c.order.Refuse(class, reason, c.now); err != nil {
			return err
		}
		if err := c.put(ctx); err != nil {
			return err
		}
		return u.handlerOf(c.order).refused(ctx, c.tx, c.session, c.order, c.now)
	})
}

// confirmed stores a confirmed purchase as the provider has it, and activates the
// session as soon as it is delivered. If the session has ended meanwhile the
// order is cancelled next.
func (u *Driver) confirmed(ctx context.Context, c *change, d procurement.Delivery) (err error) {
	o, s := c.order, c.session
	if o.Incomplete(d, c.now) {
		d.State = procurement.Pending
		o = o.Record(d, c.now)
	}
	direct := u.catalog.SellsDirect(s.ProductNo)
	if o.SealedDelivery, err = u.access.Seal(o, d, direct); err != nil {
		return err
	}
	switch {
	case s.AwaitsOutcome() && d.State == procurement.Pending: // it is read until it is delivered
	case s.Status.Over():
		o, err = u.settle(ctx, c, o, d)
	case d.State == procurement.Gone:
		o.NextAt, o.Reason = c.now, "the provider took it back"
		err = u.lifecycle.Fail(ctx, c.tx, s, ports.ErrProvider, c.now)
	case d.State == procurement.Live:
		o.NextAt = c.now.Add(checkAfter(direct))
		var active session.Session
		if active, err = u.lifecycle.Activate(ctx, c.tx, s, d.Exits(s.Type), c.now); ports.NothingBought(err) {
			o.NextAt = c.now
			err = u.lifecycle.Fail(ctx, c.tx, s, err, c.now)
		} else if err == nil {
			err = c.tx.Sessions().Put(ctx, active)
		}
	}
	if err != nil {
		return err
	}
	c.order = o
	return c.put(ctx)
}

// settle settles what an ended session holds for a purchase: what was delivered as
// ordered is charged, anything else is given back. What was delivered is closed next.
func (u *Driver) settle(
	ctx context.Context, c *change, o procurement.Order, d procurement.Delivery,
) (procurement.Order, error) {
	o.NextAt = c.now
	if d.State == procurement.Gone {
		o.Reason = "the provider took it back"
	}
	if d.State == procurement.Live && len(d.Exits(c.session.Type)) == c.session.Quantity {
		return o, settlement.Unit{Tx: c.tx, IDs: u.ids, Now: c.now}.Charge(ctx, c.session, o)
	}
	return o, settlement.Unit{Tx: c.tx, IDs: u.ids, Now: c.now}.ReleaseHeld(ctx, c.session, o)
}

// checkAfter returns how long a live order is left alone.
func checkAfter(direct bool) time.Duration {
	if direct {
		return pollUsageEvery
	}
	return checkEvery
}
