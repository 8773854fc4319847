package ordering

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/app/fulfilment"
	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/notify"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// givenBack returns the addresses that an agent gave back and is not sold again yet.
func givenBack(ctx context.Context, tx Repos, agentID string, now time.Time) (map[string]bool, error) {
	list, err := tx.Replacements().GivenBack(ctx, agentID, now.Add(-replacement.NotSoldAgain))
	set := make(map[string]bool, len(list))
	for _, ip := range list {
		set[ip] = true
	}
	return set, err
}

// Exchanges replaces addresses of static sessions.
type Exchanges struct{ Driver *Driver }

// Another returns an address of this host that a static session can have in place of one, in the same place
// and by its rule. It returns an error for which ports.NothingBought is true if there is none.
func (e Exchanges) Another(
	ctx context.Context, tx Repos, s session.Session, now time.Time,
) (netip.Addr, error) {
	product, err := e.Driver.catalog.Product(s.ProductNo)
	if err != nil {
		return netip.Addr{}, ports.ErrProvider.Msgf("the product is no longer sold")
	}
	s.Quantity = 1
	_, d, err := orderLocal(ctx, e.Driver, tx, s, product.Source(s.Provider), nil, now)
	if err != nil {
		return netip.Addr{}, err
	}
	return d.IPs[0].Addr, nil
}

// Plan stores that the seller of a session is to be asked for another address, in the transaction that
// stores the replacement under the order's id.
func (e Exchanges) Plan(
	ctx context.Context, tx Repos, s session.Session, now time.Time,
) (o procurement.Order, err error) {
	list, err := tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return o, err
	}
	bought, ok := fulfilment.Purchased(list)
	if !ok {
		return o, ports.ErrProvider.Msgf("the provider has no record of this session; buy a new one")
	}
	o = procurement.Order{ID: e.Driver.ids.New(orderPrefix), Kind: procurement.Exchange, SessionID: s.ID,
		Provider: s.Provider, Intent: bought.Intent, Status: procurement.Planned, Ref: bought.Ref, PlannedAt: now,
		NextAt: now.Add(sendWithin)}
	o.Intent.Key, o.Intent.MaxCost = o.ID, 0
	return o, tx.Orders().Insert(ctx, o)
}

// exchanges takes the steps of orders that replace an address of a static session.
type exchanges struct{ *Driver }

// send asks the seller, once. What becomes of it is read later: most answer before they have another address.
func (e exchanges) send(ctx context.Context, s session.Session, o procurement.Order) error {
	known, _ := e.catalog.Provider(o.Provider)
	p, ok := known.(ports.Replacer)
	if !ok {
		return e.refuse(ctx, o, procurement.Invalid, notConfigured)
	}
	if s.Status != session.Active {
		return e.refuse(ctx, o, procurement.Temporary, "the session has ended")
	}
	var r replacement.Replacement
	var avoid map[string]bool
	err := e.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
		if r, _, err = tx.Replacements().OfOrder(ctx, o.ID); err == nil {
			avoid, err = givenBack(ctx, tx, s.AgentID, e.clock.Now())
		}
		return err
	})
	if err != nil {
		return err
	}
	in := procurement.Replacement{Key: o.ID, Addr: r.Old, Fault: r.Fault, Location: s.Location, Avoid: avoid}
	if list, ok := known.(ports.ExitLister); ok && !s.Require.Empty() {
		one := s
		one.Quantity = 1
		if err := learnListed(ctx, e.Driver, list, one); ports.NothingBought(err) {
			return e.refuse(ctx, o, procurement.OutOfStock, "no exit meets the rule of the session")
		} else if err != nil {
			return e.refuse(ctx, o, procurement.Temporary, "the exits could not be measured")
		}
		in.Passes = e.Gate.Filter(s.Require, s.Location.Country).Passes
	}
	d, err := e.read(ctx, p, o.Ref)
	if err != nil {
		return e.refuse(ctx, o, procurement.ProvenClass(err), procurement.ReasonOf(err))
	}
	if d.State != procurement.Live {
		return e.refuse(ctx, o, procurement.Temporary, "the addresses are not there at the moment")
	}
	err = e.mark(ctx, o, func(ctx context.Context, c *change) (err error) {
		if c.order, err = c.order.Send(procurement.Snapshot{Ends: d.Ends(), At: c.now}, c.now); err != nil {
			return err
		}
		o = c.order
		return c.put(ctx)
	})
	if err != nil || o.Status != procurement.Sent {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, moneyTimeout)
	defer cancel()
	err = p.Replace(bounded, o.Ref, in)
	e.calls.Count(p, "replace", err)
	switch c := procurement.ClassOf(err); c {
	case "":
		return e.look(ctx, p, s, o, "accepted; the other address is to come")
	case procurement.Ambiguous:
		return e.markUnknown(ctx, o, procurement.ReasonOf(err))
	default:
		return e.refuse(ctx, o, c, procurement.ReasonOf(err))
	}
}

// resolve reads the order again.
func (e exchanges) resolve(ctx context.Context, s session.Session, o procurement.Order) error {
	p, ok := e.catalog.Provider(o.Provider)
	if !ok {
		return e.markUnknown(ctx, o, notConfigured)
	}
	return e.look(ctx, p, s, o, "")
}

// look reads whether the seller has replaced the address. What it has not replaced in procurement.FreezeAfter is
// refused; should it do so later, that is taken over like everything that it changes by itself.
func (e exchanges) look(
	ctx context.Context, p ports.Provider, s session.Session, o procurement.Order, why string,
) error {
	if s.Status != session.Active {
		return e.refuse(ctx, o, procurement.Temporary, "the session has ended")
	}
	d, err := e.read(ctx, p, o.Ref)
	if err == nil {
		var done bool
		if done, err = e.exchanged(ctx, o, d); done && err == nil {
			return e.confirm(ctx, o, d)
		}
	}
	if e.clock.Now().Sub(o.SentAt) >= procurement.FreezeAfter {
		return e.refuse(ctx, o, procurement.Temporary, "the seller has not replaced the address in a day")
	}
	if err != nil {
		why = procurement.ReasonOf(err)
	}
	return e.markUnknown(ctx, o, why)
}

// exchanged reports whether a delivery has another address in place of that of an order.
func (e exchanges) exchanged(ctx context.Context, o procurement.Order, d procurement.Delivery) (done bool, err error) {
	err = e.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		r, _, err := tx.Replacements().OfOrder(ctx, o.ID)
		if err != nil {
			return err
		}
		s, err := tx.Sessions().Load(ctx, o.SessionID)
		after, _ := s.TakeOver(d.Exits(session.Static))
		done = d.State == procurement.Live && err == nil && r.Index < len(s.Exits) && after.Exits[r.Index].IP != r.Old
		return err
	})
	return done, err
}

// confirm gives the session the address that its seller has in place of the old one.
func (e exchanges) confirm(ctx context.Context, o procurement.Order, d procurement.Delivery) error {
	return e.change(ctx, o, func(ctx context.Context, c *change) (err error) {
		r, _, err := c.tx.Replacements().OfOrder(ctx, o.ID)
		if err != nil {
			return err
		}
		if c.session.Status != session.Active {
			return procurement.ErrDecided // the next step refuses it
		}
		after, _ := c.session.TakeOver(d.Exits(session.Static))
		by := after.Exits[r.Index].IP
		if by == r.Old {
			return ports.ErrProvider.Msgf("the provider still has the address %s in this order", r.Old)
		}
		made := procurement.Delivery{Ref: c.order.Ref, State: procurement.Live}
		if c.order, err = c.order.Confirm(made, c.now); err != nil {
			return err
		}
		c.order.ClosedAt = c.now
		if err := c.put(ctx); err != nil {
			return err
		}
		if r, err = r.Decide(by, c.now); err != nil {
			return err
		}
		if err := c.tx.Replacements().Put(ctx, r); err != nil {
			return err
		}
		return e.takeOver(ctx, c, d)
	})
}

// takeOver stores what the seller has of the purchase now.
func (e exchanges) takeOver(ctx context.Context, c *change, d procurement.Delivery) error {
	list, err := c.tx.Orders().Of(ctx, c.session.ID)
	if err != nil {
		return err
	}
	bought, ok := fulfilment.Purchased(list)
	if !ok {
		return ports.ErrProvider.Msgf("nothing was bought for this session")
	}
	g, err := e.access.Open(bought)
	if err != nil {
		return err
	}
	p := change{tx: c.tx, now: c.now, session: c.session, order: bought}
	return deliveries(e).refresh(ctx, &p, d, g.Direct)
}

// refused leaves the session its address, gives back the fee, and frees the Idempotency-Key.
func (e exchanges) refused(ctx context.Context, tx Repos, s session.Session, o procurement.Order, now time.Time) error {
	r, found, err := tx.Replacements().OfOrder(ctx, o.ID)
	if err != nil || !found {
		return err
	}
	if err := tx.Idempotency().DropFor(ctx, s.AgentID, idempotency.RenewalResource(s.ID, r.ID)); err != nil {
		return err
	}
	if r, err = r.Decide(netip.Addr{}, now); err != nil {
		return err
	}
	if s.Status == session.Active { // what an ended one kept is settled
		s.Money.Kept -= r.Kept
		r.Kept = 0
	}
	if err := tx.Replacements().Put(ctx, r); err != nil {
		return err
	}
	if r.Fee > 0 {
		err := ledger.NewBook(tx, e.ids, now).Refund(ctx, &s, r.Fee, "refund:"+s.ID+":"+r.ID, "a replacement was refused")
		if err != nil {
			return err
		}
		if err := tx.Sessions().Put(ctx, s); err != nil {
			return err
		}
	}
	return notify.LogEvent(ctx, tx, e.ids, s.ID, eventlog.ReplacementRefused, ports.Refusal(o.Class).Code, now)
}
