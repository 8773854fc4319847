package ordering

import (
	"context"
	"errors"
	"time"

	"agentproxy/app/fairqueue"
	"agentproxy/app/settlement"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// purchases takes the steps of orders that deliver a new session.
type purchases struct{ *Driver }

// send places a planned order: everything that may be read is read first, then
// the order is marked as sent, and then one call may spend money.
func (u purchases) send(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.refuse(ctx, o, procurement.Invalid, notConfigured)
	}
	if now, err := turn(ctx, u.Driver, p, o); err != nil || !now {
		return err
	}
	planned, err := held(ctx, u.Driver, s, o)
	if errors.Is(err, domain.ErrInvalid) {
		return u.refuse(ctx, o, procurement.Invalid, err.Error())
	}
	if err != nil {
		return err
	}
	before, cost, err := u.preflight(ctx, p, planned)
	if err != nil {
		return u.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	o, err = u.markSent(ctx, p, o, before, cost)
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	o.Intent.Passes = planned.Intent.Passes
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

// order makes the call that buys.
func (u purchases) order(ctx context.Context, p ports.Provider, o procurement.Order) (procurement.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, moneyTimeout)
	defer cancel()
	if o.Intent.Type == session.Static {
		var err error
		if o.Intent.Avoid, err = u.avoids(ctx, o); err != nil {
			u.log.Warn("an order may get an address that its agent gave back", "order_id", o.ID, "err", err)
		}
	}
	d, err := p.Order(ctx, o.Intent)
	u.calls.Count(p, "order", err)
	return d, err
}

// avoids returns the addresses that the agent of an order gave back.
func (u purchases) avoids(ctx context.Context, o procurement.Order) (back map[string]bool, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		if err == nil {
			back, err = givenBack(ctx, tx, s.AgentID, u.clock.Now())
		}
		return err
	})
	return back, err
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

// refused goes to the next source of a session whose order was refused. Without
// one the session fails. One that has ended gets back what it holds.
func (u purchases) refused(ctx context.Context, tx Repos, s session.Session, o procurement.Order, now time.Time) error {
	if s.Status != session.Creating {
		return settlement.Unit{Tx: tx, IDs: u.ids, Now: now}.ReleaseHeld(ctx, s, o)
	}
	product, err := u.catalog.Product(s.ProductNo)
	if err != nil {
		return u.lifecycle.Fail(ctx, tx, s, failureOf(s, o.Class), now)
	}
	orders, err := tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return err
	}
	tried := map[[2]string]bool{}
	for _, o := range orders {
		tried[[2]string{o.Provider, o.Intent.SKU}] = true
	}
	for _, from := range u.catalog.Sources(product, s.Location, s.Days) {
		if tried[[2]string{from.Provider, from.SKU}] {
			continue
		}
		s.Provider = from.Provider
		if _, local := u.catalog.InProcess(from.Provider); local {
			active, err := u.Deliver(ctx, tx, s, from, nil, now)
			if ports.NothingBought(err) {
				continue
			}
			if err != nil {
				return err
			}
			return tx.Sessions().Put(ctx, active)
		}
		if !keeps(u.Driver, s, from) {
			continue
		}
		if err := u.Plan(ctx, tx, s, from, now); err != nil {
			return err
		}
		return tx.Sessions().Put(ctx, s)
	}
	s.Provider = o.Provider
	return u.lifecycle.Fail(ctx, tx, s, failureOf(s, o.Class), now)
}

// repeatFor is how long after its first call an order is repeated if the provider
// is idempotent. What is not found procurement.ListingDelay after that does not come.
const repeatFor = procurement.SendTimeout + 2*time.Minute

// resolve asks the provider for an unknown order. If the provider is idempotent
// and the session still waits, the order is repeated under its key instead: a
// result is then the outcome, and a refusal is that of the repetition only.
func (u purchases) resolve(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := u.catalog.Provider(o.Provider)
	if !ok {
		return u.markUnknown(ctx, o, notConfigured)
	}
	age, idempotent := u.clock.Now().Sub(o.SentAt), p.Capabilities().Idempotent
	if idempotent && s.Status == session.Creating && age < repeatFor {
		var d procurement.Delivery
		repeated, err := held(ctx, u.Driver, s, o)
		if err == nil {
			d, err = u.order(ctx, p, repeated)
		}
		if err == nil {
			return u.confirm(ctx, o, d)
		}
		return u.markUnknown(ctx, o, procurement.ReasonOf(err))
	}
	e, d, err := u.evidence(ctx, p, o)
	if err != nil {
		return u.markUnknown(ctx, o, procurement.ReasonOf(err))
	}
	verdict, err := u.decide(ctx, p, o, e, d)
	switch {
	case err != nil:
		return err
	case verdict == procurement.Absent && idempotent && age < repeatFor+procurement.ListingDelay:
		return u.markUnknown(ctx, o, "") // the last repetition may be on its way
	case verdict == procurement.Absent:
		return u.refuse(ctx, o, procurement.Temporary, "the provider does not have it")
	case verdict == procurement.Wait:
		return u.markUnknown(ctx, o, "")
	}
	return nil
}

// evidence reads what the provider has of an unknown order, and the whole delivery if that proves to be the order.
func (u purchases) evidence(
	ctx context.Context, p ports.Provider, o procurement.Order,
) (e procurement.Evidence, d procurement.Delivery, err error) {
	ctx, cancel := withCallTimeout(ctx)
	defer cancel()
	e.Found, err = p.Find(ctx, o.Intent)
	u.calls.Count(p, "find", err)
	if err != nil {
		return e, d, err
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		if e.Known, err = tx.Orders().Known(ctx, o.Provider, procurement.Refs(e.Found)); err != nil {
			return err
		}
		e.Spent, err = tx.Orders().Spent(ctx, o.Provider, o.Before.At)
		return err
	})
	if err != nil {
		return e, d, err
	}
	labelled := p.Capabilities().Labels(o.Intent.Type)
	if !labelled {
		e.Funds, err = p.Balance(ctx)
		u.calls.Count(p, "balance", err)
		if err != nil {
			return e, d, err
		}
	}
	verdict, found := procurement.Decide(o, labelled, e, u.clock.Now())
	if verdict != procurement.Adopt {
		return e, d, nil
	}
	d, err = p.Read(ctx, found.Ref)
	u.calls.Count(p, "read", err)
	return e, d, err
}

// decide weighs the evidence in the transaction that adopts the order, in which
// no order of the provider changes. d is the delivery that it was read for.
func (u purchases) decide(
	ctx context.Context, p ports.Provider, o procurement.Order, e procurement.Evidence, d procurement.Delivery,
) (verdict procurement.Verdict, err error) {
	labelled := p.Capabilities().Labels(o.Intent.Type)
	err = u.change(ctx, o, func(ctx context.Context, c *change) error {
		if verdict = procurement.Wait; c.order.Status != procurement.Unknown {
			return nil
		}
		like, err := fairqueue.CountAlike(ctx, c.tx, c.order)
		if err != nil {
			return err
		}
		e.OthersUnknown = like > 0
		if e.Known, err = c.tx.Orders().Known(ctx, c.order.Provider, procurement.Refs(e.Found)); err != nil {
			return err
		}
		var found procurement.Delivery
		verdict, found = procurement.Decide(c.order, labelled, e, c.now)
		if verdict == procurement.Adopt && found.Label == "" {
			others, err := fairqueue.CountMistakable(ctx, c.tx, c.order, found)
			if err != nil {
				return err
			}
			if others > 0 {
				verdict = procurement.Wait
			}
		}
		if verdict != procurement.Adopt || found.Ref != d.Ref {
			return nil
		}
		if c.order, err = c.order.Confirm(d, c.now); err != nil {
			return err
		}
		return u.confirmed(ctx, c, d)
	})
	return verdict, err
}
