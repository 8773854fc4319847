package ordering

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/notify"
	"agentproxy/app/settlement"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// deliveries takes the steps of confirmed orders.
type deliveries struct{ *Driver }

// await reads an order that the provider has accepted and not delivered
// yet. After procurement.FreezeAfter it is logged and marked as frozen.
func (u deliveries) await(ctx context.Context, _ session.Session, o procurement.Order) error {
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.postpone(ctx, o, notConfigured)
	}
	d, err := u.read(ctx, p, o.Ref)
	gone := procurement.ClassOf(err) == procurement.NotFound && u.clock.Now().Sub(o.SentAt) >= procurement.ListingDelay
	if err != nil && !gone {
		return u.postpone(ctx, o, procurement.ReasonOf(err))
	}
	return u.change(ctx, o, func(ctx context.Context, c *change) error {
		switch {
		case c.session.Status != session.Creating && !c.session.AwaitsOutcome():
			return nil // another process has activated or settled it meanwhile
		case gone:
			return u.noteMissing(ctx, c)
		}
		var frozen bool
		if c.order, frozen = c.order.Await(d, c.now); frozen {
			u.log.Error("an upstream order is not delivered for a day; orders lost gives it up", "order_id", o.ID,
				"session_id", o.SessionID, "provider", o.Provider)
		}
		return u.confirmed(ctx, c, d)
	})
}

// cancelEnded cancels the order of a session that has ended, once nothing of it is left to
// settle. One that cannot be cancelled runs to its end.
func (u deliveries) cancelEnded(ctx context.Context, s session.Session, o procurement.Order) error {
	if settled, err := u.direct.Settle(ctx, s, o); err != nil || !settled {
		return err
	}
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.postpone(ctx, o, notConfigured)
	}
	reason, unlisted := "", error(nil)
	if u.clock.Now().Sub(o.SentAt) < procurement.ListingDelay {
		_, unlisted = u.read(ctx, p, o.Ref) // what is not listed yet is not cancelled either
	}
	bounded, stop := withCallTimeout(ctx)
	defer stop()
	err := p.Cancel(bounded, o.Ref)
	u.calls.Count(p, "cancel", err)
	switch class := procurement.ClassOf(err); {
	case class == procurement.Unsupported:
		reason = "it runs to its end at the provider"
	case class != "" && class != procurement.NotFound:
		return u.postpone(ctx, o, procurement.ReasonOf(err))
	case unlisted != nil:
		return u.postpone(ctx, o, procurement.ReasonOf(unlisted))
	}
	return u.mark(ctx, o, func(ctx context.Context, c *change) error {
		c.order.ClosedAt, c.order.NextAt, c.order.Reason = c.now, time.Time{}, reason
		return c.put(ctx)
	})
}

// check reads a live order and takes over what has changed. One that is lost ends the
// session, and the unused part is refunded.
func (u deliveries) check(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.postpone(ctx, o, notConfigured)
	}
	g, err := u.access.Open(o)
	if err != nil {
		return err
	}
	if g.Direct {
		if err := u.pollUsage(ctx, p, s, o); err != nil {
			return u.postpone(ctx, o, procurement.ReasonOf(err))
		}
	}
	d, err := u.read(ctx, p, o.Ref)
	gone := procurement.ClassOf(err) == procurement.NotFound || err == nil && d.State == procurement.Gone
	if err != nil && !gone {
		return u.postpone(ctx, o, procurement.ReasonOf(err))
	}
	err = u.change(ctx, o, func(ctx context.Context, c *change) error {
		switch {
		case c.session.Status != session.Active:
			return nil
		case gone:
			return u.noteMissing(ctx, c)
		}
		return u.refresh(ctx, c, d, g.Direct)
	})
	if errors.Is(err, ports.ErrDuplicate) { // the session that has the address may have to lose it first
		return u.postpone(ctx, o, "another session has an address of it")
	}
	return err
}

// noteMissing notes that an order is not found at its provider. Once it is lost its session
// ends, and it is cancelled too, so that it costs nothing should it come back.
func (u deliveries) noteMissing(ctx context.Context, c *change) error {
	if c.session.Status.Over() && !c.session.AwaitsOutcome() || !c.order.ClosedAt.IsZero() {
		return nil // another process has ended it meanwhile
	}
	c.order = c.order.RecordMissing(c.now)
	if err := c.put(ctx); err != nil {
		return err
	}
	owed, err := c.tx.Orders().Owed(ctx)
	if err != nil || !c.order.Lost(owed[c.order.Provider], c.now) {
		return err
	}
	return u.endLost(ctx, c)
}

// endLost ends what was bought because its provider does not have it: its session, or what is
// held for it. What an ended session holds for traffic is settled next (app/direct).
func (u deliveries) endLost(ctx context.Context, c *change) error {
	c.order.State = procurement.Gone
	switch {
	case c.session.Status.Over() && !c.session.AwaitsOutcome():
		c.order.NextAt = c.now
	case c.session.Status != session.Active:
		return u.confirmed(ctx, c, procurement.Delivery{Ref: c.order.Ref, State: procurement.Gone})
	}
	if err := c.put(ctx); err != nil || c.session.Status.Over() {
		return err
	}
	_, err := u.lifecycle.Terminate(ctx, c.tx, c.session, session.ProviderLost, c.now)
	return err
}

// refresh takes over what a provider changed of a live order: new credentials, a
// new end, an address that it replaced.
func (u deliveries) refresh(ctx context.Context, c *change, d procurement.Delivery, direct bool) (err error) {
	o, s, changed := c.order, c.session, false
	if d.State == procurement.Live {
		if o.SealedDelivery, err = u.access.Seal(o, d, direct); err != nil {
			return err
		}
	}
	o = o.Record(d, c.now)
	o.LostAt, o.NextAt = time.Time{}, c.now.Add(checkAfter(direct))
	if s.Type == session.Static && d.State == procurement.Live && len(d.IPs) == s.Quantity {
		s, changed = s.TakeOver(d.Exits(s.Type))
	}
	if changed {
		if err := c.tx.Addresses().Free(ctx, s.ID); err != nil {
			return err
		}
		if err := c.tx.Addresses().Take(ctx, s.Provider, s.ID, session.Addresses(s.Exits)); err != nil {
			return err
		}
		if err := notify.LogEvent(ctx, c.tx, u.ids, s.ID, eventlog.Replaced, "", c.now); err != nil {
			return err
		}
		if err := c.tx.Sessions().Put(ctx, s); err != nil {
			return err
		}
	}
	c.order = o
	return c.put(ctx)
}

// pollUsage books what a provider counted of a direct session.
func (u deliveries) pollUsage(ctx context.Context, p ports.Provider, s session.Session, o procurement.Order) error {
	used, ok, err := u.direct.Poll(ctx, p, s, o)
	if err != nil || !ok {
		return err
	}
	return u.change(ctx, o, func(ctx context.Context, c *change) error {
		if c.session.Status != session.Active {
			return nil
		}
		total, err := settlement.Total(ctx, c.tx, &c.order, used, p.Capabilities().CounterLag)
		if err != nil {
			return err
		}
		return u.lifecycle.RecordUsage(ctx, c.tx, c.session, total, c.now)
	})
}
