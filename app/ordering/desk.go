package ordering

import (
	"cmp"
	"context"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// Desk is what the operator may ask and decide about upstream orders.
type Desk struct {
	store  ports.Unit[Repos]
	driver *Driver
}

// NewDesk returns a Desk.
func NewDesk(store ports.Store, driver *Driver) *Desk {
	return &Desk{store: narrow(store), driver: driver}
}

// ListOrders asks for a page of upstream orders.
type ListOrders struct {
	Filter ports.OrderFilter
	Page   domain.Page
}

// List returns a page of upstream orders, the newest first.
func (u *Desk) List(ctx context.Context, in ListOrders) (list domain.List[procurement.Order], err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		list, err = tx.Orders().List(ctx, in.Filter, in.Page)
		return err
	})
	return list, err
}

func (u *Desk) get(ctx context.Context, id string) (o procurement.Order, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		o, err = tx.Orders().Get(ctx, id)
		return err
	})
	return o, err
}

// Adopt decides that a provider did make an unknown order, under a ref; a renewal
// has the ref of its purchase. The order is read there first.
func (u *Desk) Adopt(ctx context.Context, id, ref string) (procurement.Order, error) {
	o, err := u.undecided(ctx, id)
	if err != nil {
		return o, err
	}
	p, ok := u.driver.catalog.Provider(o.Provider)
	if !ok {
		return o, ports.ErrProvider.Msgf("the provider %s is not configured", o.Provider)
	}
	ref = cmp.Or(o.Ref, ref)
	d, err := p.Read(ctx, ref)
	if err != nil {
		return o, ports.Refusal(procurement.ClassOf(err)).Msgf("the provider does not show %s: %v", ref, err)
	}
	if err = u.driver.handlerOf(o).confirm(ctx, o, d); err == nil {
		_, err = u.driver.Drive(ctx, o.SessionID)
	}
	return u.decided(ctx, id, procurement.Confirmed, err)
}

// Release decides that a provider did not make an unknown order: the next source
// is tried, and without one the money is given back. The provider need not be
// configured any more.
func (u *Desk) Release(ctx context.Context, id string) (procurement.Order, error) {
	o, err := u.undecided(ctx, id)
	if err != nil {
		return o, err
	}
	err = u.driver.refuse(ctx, o, procurement.Temporary, "released by the operator")
	return u.decided(ctx, id, procurement.Refused, err)
}

// Lost decides that a provider does not have a confirmed purchase, which it has not
// delivered for a day or does not show any more. What its agent did not get is given back.
func (u *Desk) Lost(ctx context.Context, id string) (o procurement.Order, err error) {
	if o, err = u.get(ctx, id); err != nil {
		return o, err
	}
	var refused error
	err = u.driver.change(ctx, o, func(ctx context.Context, c *change) error {
		if refused = c.order.MayBeLost(); refused != nil {
			return refused // so that the unit, and with it the operator's action, is not committed
		}
		if c.session.Status.Over() && c.session.Money.Held.Total() == 0 {
			refused = procurement.ErrDecided.Msgf("the session has ended, and nothing is held for it")
			return refused
		}
		return deliveries{u.driver}.endLost(ctx, c)
	})
	if err = cmp.Or(refused, err); err == nil {
		_, err = u.driver.Drive(ctx, o.SessionID)
	}
	return u.decided(ctx, id, procurement.Confirmed, err)
}

// undecided returns an order that the operator may decide.
func (u *Desk) undecided(ctx context.Context, id string) (procurement.Order, error) {
	o, err := u.get(ctx, id)
	if err != nil {
		return o, err
	}
	if o.Status != procurement.Unknown {
		return o, procurement.ErrDecided.Msgf("the order is %s; only an unknown one can be decided", o.Status)
	}
	return o, nil
}

// decided returns the order after the operator's decision. It returns ErrDecided
// if the order was decided otherwise meanwhile.
func (u *Desk) decided(
	ctx context.Context, id string, want procurement.Status, failed error,
) (o procurement.Order, err error) {
	if failed != nil {
		return o, failed
	}
	if o, err = u.get(ctx, id); err == nil && o.Status != want {
		err = procurement.ErrDecided.Msgf("meanwhile the order is %s", o.Status)
	}
	return o, err
}

// Tally counts the orders whose outcome is still to come, and of these the ones that wait for the operator.
func (u *Desk) Tally(ctx context.Context) (open, frozen int, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		open, frozen, err = tx.Orders().Tally(ctx)
		return err
	})
	return open, frozen, err
}
