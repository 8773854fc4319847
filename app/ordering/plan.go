package ordering

import (
	"context"
	"slices"
	"time"

	"agentproxy/app/fulfilment"
	"agentproxy/app/idempotency"
	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// orderPrefix begins the ids of upstream orders.
const orderPrefix = "ord_"

// sendWithin is when an order is sent by another process, should the one that
// planned it die.
const sendWithin = idempotency.InFlightTimeout

// Plan stores what is to be bought of a source for a session, in the transaction
// that holds the money.
func (u *Driver) Plan(ctx context.Context, tx Repos, s session.Session, from procurement.Source, now time.Time) error {
	in := from.Intent(s)
	in.Key, in.MaxCost = u.ids.New(orderPrefix), from.MaxCost(from.CostOf(s, s.Days), s.Money.Held.Total())
	return tx.Orders().Insert(ctx, procurement.Order{ID: in.Key, Kind: procurement.Purchase, SessionID: s.ID,
		Provider: from.Provider, Intent: in, Status: procurement.Planned, PlannedAt: now, NextAt: now.Add(sendWithin)})
}

// PlanRenewal stores a renewal of that many days of what was bought for a
// session, which the agent pays that much for, in the transaction that holds the money
// under the order's id.
func (u *Driver) PlanRenewal(
	ctx context.Context, tx Repos, s session.Session, days int, paid domain.Money, now time.Time,
) (o procurement.Order, err error) {
	orders, err := tx.Orders().Of(ctx, s.ID)
	if err != nil {
		return o, err
	}
	bought, ok := fulfilment.Purchased(orders)
	if !ok {
		return o, ports.ErrProvider.Msgf("the provider has no record of this session; buy a new one")
	}
	if slices.ContainsFunc(orders, func(o procurement.Order) bool { return o.Kind == procurement.Exchange && o.Open() }) {
		return o, session.ErrNotReady.Msgf("an address of this session is being replaced; try again when that is decided")
	}
	o = procurement.Order{ID: u.ids.New(orderPrefix), Kind: procurement.Renewal, SessionID: s.ID, Provider: s.Provider,
		Intent: bought.Intent, Status: procurement.Planned, Ref: bought.Ref, PlannedAt: now, NextAt: now.Add(sendWithin)}
	product, err := u.catalog.Product(s.ProductNo)
	if err != nil {
		return o, err
	}
	from := product.Source(s.Provider)
	o.Intent.Key, o.Intent.Days = o.ID, days
	o.Intent.MaxCost = from.MaxRenewalCost(from.CostOf(s, days), paid)
	return o, tx.Orders().Insert(ctx, o)
}

// Deliver buys the exits of a session of a provider in this process and activates
// it, all in one transaction. A session with a rule at a seller has the turn that was chosen for it.
func (u *Driver) Deliver(
	ctx context.Context, tx Repos, s session.Session, from procurement.Source, turn *Turn, now time.Time,
) (session.Session, error) {
	s, d, err := orderLocal(ctx, u, tx, s, from, turn, now)
	if err != nil {
		return s, err
	}
	return u.lifecycle.Activate(ctx, tx, s, d.Exits(s.Type), now)
}

// orderLocal orders the exits of a session of a provider in this process. It returns the session with the turn that was
// chosen for it.
func orderLocal(
	ctx context.Context, u *Driver, tx Repos, s session.Session, from procurement.Source, turn *Turn, now time.Time,
) (_ session.Session, d procurement.Delivery, err error) {
	provider, ok := u.catalog.InProcess(from.Provider)
	if !ok {
		return s, d, ports.ErrProvider
	}
	in := from.Intent(s)
	if s.Type == session.Static {
		if in.Taken, err = tx.Addresses().Taken(ctx, provider.Name()); err != nil {
			return s, d, err
		}
		if in.Avoid, err = givenBack(ctx, tx, s.AgentID, now); err != nil {
			return s, d, err
		}
	}
	filter := u.Gate.Filter(s.Require, s.Location.Country)
	if filter != nil {
		if _, local := provider.(ports.ExitPool); !local && !turn.fits(s) {
			return s, d, exit.ErrNotMet
		}
		in.Passes, s = filter.Passes, turn.Take(s)
	}
	d, err = provider.Order(ctx, in)
	u.calls.Count(provider, "order", err)
	if err != nil {
		return s, d, filter.Refusal(ports.Refusal(procurement.ClassOf(err)))
	}
	return s, d, nil
}

// deliverInProcess delivers a session that is creating and has no order, or fails
// it. After any other error neither is known yet.
func (u *Driver) deliverInProcess(ctx context.Context, s session.Session) error {
	product, err := u.catalog.Product(s.ProductNo)
	if _, known := u.catalog.InProcess(s.Provider); err != nil || !known {
		return u.fail(ctx, s.ID, ports.ErrProvider.Msgf("the product is no longer sold"))
	}
	turn, err := Learn(ctx, u, s)
	switch {
	case ports.NothingBought(err):
		return u.fail(ctx, s.ID, err)
	case err != nil:
		return err
	}
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Load(ctx, s.ID)
		if err != nil || s.Status != session.Creating {
			return err
		}
		if s, err = u.Deliver(ctx, tx, s, product.Source(s.Provider), turn, u.clock.Now()); err != nil {
			return err
		}
		return tx.Sessions().Put(ctx, s)
	})
	if ports.NothingBought(err) {
		return u.fail(ctx, s.ID, err)
	}
	if err == nil {
		u.hub.SessionChanged(s.ID)
	}
	return err
}

// fail ends a session that is still creating and gives everything back.
func (u *Driver) fail(ctx context.Context, id string, cause error) error {
	err := u.store.Update(context.WithoutCancel(ctx), ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil || s.Status != session.Creating {
			return err
		}
		return u.lifecycle.Fail(ctx, tx, s, cause, u.clock.Now())
	})
	if err == nil {
		u.hub.SessionChanged(id)
	}
	return err
}

// NewExit returns the exit of a dynamic session after the one it has. It makes no
// call: the next exit of an upstream is the one of the next token, or, with a rule, of the turn that was chosen.
// Without one it returns exit.ErrNotMet.
func (u *Driver) NewExit(s session.Session, turn *Turn) (session.Exit, error) {
	known, _ := u.catalog.Provider(s.Provider)
	provider, ok := known.(ports.Dynamic)
	if !ok {
		return session.Exit{}, ports.ErrProvider.Msgf("the provider of this session is not configured any more; " +
			"create a new one")
	}
	product, _ := u.catalog.Product(s.ProductNo)
	in, filter := product.Source(s.Provider).Intent(s), u.Gate.Filter(s.Require, s.Location.Country)
	if filter != nil {
		if _, local := known.(ports.ExitPool); local {
			in.Passes = filter.Passes
		} else if !turn.fits(s) {
			return session.Exit{}, exit.ErrNotMet
		}
	}
	next, err := provider.NewExit(in, s.Exits[0])
	u.calls.Count(provider, "rotate", err)
	if err != nil {
		return next, filter.Refusal(ports.Refusal(procurement.ClassOf(err)))
	}
	return next, nil
}

// Extend renews a session by that many days at a provider in this process.
func (u *Driver) Extend(ctx context.Context, p ports.Static, s session.Session, days int) error {
	in := procurement.Source{}.Intent(s)
	in.Days = days
	_, err := p.Renew(ctx, s.ID, in)
	u.calls.Count(p, "renew", err)
	if err != nil {
		return ports.Refusal(procurement.ClassOf(err))
	}
	return nil
}
