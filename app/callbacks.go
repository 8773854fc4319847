package app

import (
	"context"
	"errors"
	"net/http"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// ErrNoCallback answers calls for a provider that calls nobody.
var ErrNoCallback = &domain.Error{Kind: domain.NotFound, Code: "NOT_FOUND", Message: "no provider of this name calls back"}

// Callback takes a provider's call that an order has changed. It is only a hint:
// the orders that it may be about are read again, soon.
func (u *Sessions) Callback(ctx context.Context, provider string, header http.Header, body []byte) error {
	p, _ := u.catalog.provider(provider)
	calls, ok := p.(ports.Callbacks)
	if !ok {
		return ErrNoCallback
	}
	refs, err := calls.Callback(header, body, u.clock.Now())
	u.count(p, "callback", err)
	if err != nil {
		return domain.ErrInvalid.Msgf("the signature of the call does not hold")
	}
	var orders []procurement.Order
	err = u.store.View(ctx, func(ctx context.Context, tx ports.Tx) error {
		orders, err = meant(ctx, tx, provider, refs)
		return err
	})
	if err != nil {
		return err
	}
	for _, o := range orders {
		if err := u.mark(ctx, o, hurry); err != nil {
			return err
		}
	}
	return nil
}

// hurry lets an order be read before its time.
func hurry(ctx context.Context, b books, _ session.Session, o procurement.Order) error {
	if !o.NextAt.After(b.now) {
		return nil
	}
	o.NextAt = b.now
	return b.tx.Orders().Put(ctx, o)
}

// meant are the orders that a call names; without a name, those of the provider
// that are on their way.
func meant(ctx context.Context, tx ports.Tx, provider string, refs []string) (orders []procurement.Order, err error) {
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
		list, err := tx.Orders().List(ctx, ports.OrderFilter{Provider: provider, Status: status}, domain.Page{Number: 1, Size: domain.MaxPageSize})
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
