package ordering

import (
	"context"
	"errors"

	"agentproxy/app/catalogs"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// ErrNoCallback refuses a call for a provider that makes none.
var ErrNoCallback = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND",
	Message: "no provider of this name calls back"}

// Callbacks takes the calls of providers whose orders have changed.
type Callbacks struct {
	store   ports.Unit[Repos]
	clock   ports.Clock
	catalog *catalogs.Catalog
	driver  *Driver
}

// NewCallbacks returns Callbacks.
func NewCallbacks(store ports.Store, clock ports.Clock, catalog *catalogs.Catalog, driver *Driver) *Callbacks {
	return &Callbacks{store: narrow(store), clock: clock, catalog: catalog, driver: driver}
}

// Receive takes a provider's call that an order has changed. It is only a hint:
// the orders that it may be about become due at once.
func (c *Callbacks) Receive(ctx context.Context, provider string, header map[string][]string, body []byte) error {
	p, _ := c.catalog.Provider(provider)
	calls, ok := p.(ports.Callbacks)
	if !ok {
		return ErrNoCallback
	}
	refs, err := calls.Callback(header, body, c.clock.Now())
	c.driver.calls.Count(p, "callback", err)
	if err != nil {
		return domain.ErrInvalid.Msgf("the signature of the call is invalid")
	}
	var orders []procurement.Order
	err = c.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		orders, err = named(ctx, tx, provider, refs)
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := c.driver.mark(ctx, o, makeDue); err != nil {
			return err
		}
	}
	return nil
}

// makeDue lets an order be read before its time.
func makeDue(ctx context.Context, c *change) error {
	if !c.order.NextAt.After(c.now) {
		return nil
	}
	c.order.NextAt = c.now
	return c.put(ctx)
}

// named returns the orders that a call names, or without a name those of the
// provider that are unknown or not delivered yet.
func named(ctx context.Context, tx Repos, provider string, refs []string) (orders []procurement.Order, err error) {
	for _, ref := range refs {
		o, err := tx.Orders().ByRef(ctx, provider, ref)
		if errors.Is(err, procurement.ErrOrderNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	if len(refs) > 0 {
		return orders, nil
	}
	for _, status := range []procurement.Status{procurement.Unknown, procurement.Confirmed} {
		list, err := tx.Orders().List(ctx, ports.OrderFilter{Provider: provider, Status: status},
			domain.Page{Number: 1, Size: domain.MaxPageSize})
		if err != nil {
			return nil, err
		}
		for _, o := range list.Items {
			if status == procurement.Unknown || o.State == procurement.Pending {
				orders = append(orders, o)
			}
		}
	}
	return orders, nil
}
