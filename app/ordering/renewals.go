package ordering

import (
	"context"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/notify"
	"agentproxy/app/settlement"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// renewals takes the steps of orders that extend a static session.
type renewals struct{ *Driver }

// send reads when the addresses end, marks the renewal as sent, and makes the one
// call that may spend money.
func (r renewals) send(ctx context.Context, _ session.Session, o procurement.Order) error {
	known, _ := r.catalog.Provider(o.Provider)
	p, ok := known.(ports.Static)
	if !ok {
		return r.refuse(ctx, o, procurement.Invalid, notConfigured)
	}
	if now, err := turn(ctx, r.Driver, p, o); err != nil || !now {
		return err
	}
	bounded, cancel := withCallTimeout(ctx)
	defer cancel()
	d, err := r.read(bounded, p, o.Ref)
	if err != nil {
		return r.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	switch d.State {
	case procurement.Gone:
		return r.refuse(ctx, o, procurement.NotFound, "the order has ended")
	case procurement.Pending: // without its ends it could not be proven later that they moved
		return r.refuse(ctx, o, procurement.Temporary, "the addresses are not there at the moment")
	}
	before := procurement.Snapshot{Ends: d.Ends(), At: r.clock.Now()}
	before.Funds, err = r.fundsBefore(bounded, p)
	if err != nil {
		return r.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	// No provider returns the cost of a renewal beforehand: it is about that of a
	// new order of its term, whether that can be had or not.
	q, err := p.Quote(bounded, o.Intent)
	r.calls.Count(p, "quote", err)
	if c := procurement.ClassOf(err); c != "" && c != procurement.OutOfStock && c != procurement.Unsupported {
		return r.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	if err := o.Affordable(q); err != nil {
		return r.refuse(ctx, o, procurement.ClassOf(err), procurement.ReasonOf(err))
	}
	o, err = r.markSent(ctx, p, o, before, q.Cost)
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	return r.place(ctx, p, o)
}

// place makes the call and stores its outcome.
func (r renewals) place(ctx context.Context, p ports.Static, o procurement.Order) error {
	bounded, cancel := context.WithTimeout(ctx, moneyTimeout)
	defer cancel()
	list, err := p.Renew(bounded, o.Ref, o.Intent)
	r.calls.Count(p, "renew", err)
	var end time.Time
	if err == nil {
		end, err = procurement.CheckRenewed(list, o.Intent.Quantity)
	}
	switch c := procurement.ClassOf(err); c {
	case "":
		return r.confirm(ctx, o, procurement.Delivery{ExpiresAt: end})
	case procurement.Ambiguous:
		return r.markUnknown(ctx, o, procurement.ReasonOf(err))
	default:
		return r.refuse(ctx, o, c, procurement.ReasonOf(err))
	}
}

// resolve reads the ends of the addresses again and lets the domain decide. If
// the session has ended and the addresses with it, the renewal is refused.
func (r renewals) resolve(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := r.catalog.Provider(o.Provider)
	if !ok {
		return r.markUnknown(ctx, o, notConfigured)
	}
	bounded, cancel := withCallTimeout(ctx)
	defer cancel()
	d, err := r.read(bounded, p, o.Ref)
	gone := err == nil && d.State == procurement.Gone || procurement.ClassOf(err) == procurement.NotFound
	if gone && s.Status.Over() && (!s.AwaitsOutcome() || !r.clock.Now().Before(o.Before.LastEnd())) {
		return r.refuse(ctx, o, procurement.NotFound, "the session has ended, and what was bought for it")
	}
	if err != nil {
		return r.markUnknown(ctx, o, procurement.ReasonOf(err))
	}
	var e procurement.Evidence
	err = r.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		e.Spent, err = tx.Orders().Spent(ctx, o.Provider, o.Before.At)
		return err
	})
	if err != nil {
		return err
	}
	e.Funds, err = p.Balance(bounded)
	r.calls.Count(p, "balance", err)
	if err != nil {
		return r.markUnknown(ctx, o, procurement.ReasonOf(err))
	}
	switch verdict, reason := procurement.DecideRenewal(o, d, e, r.clock.Now()); verdict {
	case procurement.Adopt:
		return r.confirm(ctx, o, d)
	case procurement.Absent:
		return r.refuse(ctx, o, procurement.Temporary, reason)
	default:
		return r.markUnknown(ctx, o, reason)
	}
}

// confirm extends the session and charges what is held for it.
func (r renewals) confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error {
	return r.change(ctx, o, func(ctx context.Context, c *change) (err error) {
		made := procurement.Delivery{Ref: c.order.Ref, State: procurement.Live, ExpiresAt: d.ExpiresAt}
		if c.order, err = c.order.Confirm(made, c.now); err != nil {
			return err
		}
		c.order.ClosedAt = c.now
		if err := c.put(ctx); err != nil {
			return err
		}
		if c.session.Status != session.Active { // it ended meanwhile; the days are the service's
			return settlement.Unit{Tx: c.tx, IDs: r.ids, Now: c.now}.Charge(ctx, c.session, c.order)
		}
		s, err := c.session.Extend(c.order.Intent.Days)
		if err != nil {
			return err
		}
		_, err = r.lifecycle.Renewed(ctx, c.tx, s, c.order.Intent.Days, c.now)
		return err
	})
}

// refused gives back what is held for a renewal, and frees its Idempotency-Key.
func (r renewals) refused(ctx context.Context, tx Repos, s session.Session, o procurement.Order, now time.Time) error {
	if err := tx.Idempotency().DropFor(ctx, s.AgentID, idempotency.RenewalResource(s.ID, o.ID)); err != nil {
		return err
	}
	if s.Status != session.Active {
		return settlement.Unit{Tx: tx, IDs: r.ids, Now: now}.ReleaseHeld(ctx, s, o)
	}
	if err := (settlement.Unit{Tx: tx, IDs: r.ids, Now: now}).Release(ctx, &s, o); err != nil {
		return err
	}
	if err := notify.LogEvent(ctx, tx, r.ids, s.ID, eventlog.RenewalFailed, ports.Refusal(o.Class).Code, now); err != nil {
		return err
	}
	return tx.Sessions().Put(ctx, s)
}
