package app

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// ListOrders asks for a page of upstream orders.
type ListOrders struct {
	Filter ports.OrderFilter
	Page   domain.Page
}

// Orders lists upstream orders, the newest first, for the operator.
func (u *Sessions) Orders(ctx context.Context, in ListOrders) (list domain.List[procurement.Order], err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		list, err = tx.Orders().List(ctx, in.Filter, in.Page)
		return err
	})
	return list, err
}

// AdoptOrder is the operator's word that a provider did make an unknown order,
// under a ref; of a renewal, that it was made. The provider is asked for it.
func (u *Sessions) AdoptOrder(ctx context.Context, id, ref string) (procurement.Order, error) {
	o, err := u.undecided(ctx, id)
	if err != nil {
		return o, err
	}
	p, ok := u.catalog.provider(o.Provider)
	if !ok {
		return o, ports.ErrProvider.Msgf("the provider %s is not configured", o.Provider)
	}
	if o.Kind == procurement.Renewal {
		ref = o.Ref
	}
	d, err := p.Read(ctx, ref)
	if err != nil {
		return o, ports.Refusal(procurement.ClassOf(err)).Msgf("the provider does not show %s: %v", ref, err)
	}
	if o.Kind == procurement.Renewal {
		err = u.renewalConfirmed(ctx, o, d.ExpiresAt)
	} else {
		err = u.confirm(ctx, o, d)
	}
	if err == nil {
		err = u.drive(ctx, o.SessionID)
	}
	return u.orderNow(ctx, id, procurement.Confirmed, err)
}

// ReleaseOrder is the operator's word that a provider did not make an unknown
// order: the next source is tried, and without one the money is given back. The provider may be one that is not configured
// any more.
func (u *Sessions) ReleaseOrder(ctx context.Context, id string) (procurement.Order, error) {
	o, err := u.undecided(ctx, id)
	if err != nil {
		return o, err
	}
	return u.orderNow(ctx, id, procurement.Refused, u.refuse(ctx, o, procurement.Temporary, "released by the operator"))
}

// undecided is an order that the operator may decide.
func (u *Sessions) undecided(ctx context.Context, id string) (o procurement.Order, err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		o, err = tx.Orders().Get(ctx, id)
		return err
	})
	if err != nil {
		return o, err
	}
	if o.Status != procurement.Unknown {
		return o, procurement.ErrDecided.Msgf("the order is %s; only an unknown one can be decided", o.Status)
	}
	return o, nil
}

// orderNow is the order as the operator wanted it. Somebody else may have decided
// it otherwise meanwhile.
func (u *Sessions) orderNow(ctx context.Context, id string, want procurement.Status, failed error) (o procurement.Order, err error) {
	if failed != nil {
		return o, failed
	}
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		o, err = tx.Orders().Get(ctx, id)
		return err
	})
	if err == nil && o.Status != want {
		err = procurement.ErrDecided.Msgf("meanwhile the order is %s", o.Status)
	}
	return o, err
}

// OrderTally counts the orders whose outcome is still to come, and of these the
// ones that wait for the operator.
func (u *Sessions) OrderTally(ctx context.Context) (open, frozen int, err error) {
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		open, frozen, err = tx.Orders().Tally(ctx)
		return err
	})
	return open, frozen, err
}
