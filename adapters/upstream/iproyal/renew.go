package iproyal

import (
	"context"
	"net/http"
	"strconv"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Renew extends an order, whose addresses all have one end. It fails with Ambiguous
// if the call was accepted and the end did not move, or the history of the order shows
// no extension.
func (p *Provider) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	if err := p.sells(session.Static); err != nil {
		return nil, err
	}
	old, err := p.getOrder(ctx, ref)
	if err != nil {
		return nil, err
	}
	before, err := old.delivery()
	if err != nil {
		return nil, err
	}
	if before.State == procurement.Gone {
		return nil, procurement.Refuse(procurement.NotFound, "the order has ended")
	}
	if in.Quantity == 0 {
		in.Quantity = before.Quantity
	}
	list, err := p.products(ctx)
	if err != nil {
		return nil, err
	}
	plan, ok := planOf(list, in)
	if !ok {
		return nil, procurement.Refuse(procurement.Invalid, "the product has no plan of "+strconv.Itoa(in.Days)+" days")
	}
	var out rest.Unwrapped[order]
	err = p.reseller.CallWith(ctx, rest.Once, http.MethodPost, "/orders/"+ref+"/extend", rest.RequestID(in.Key),
		map[string]any{"product_plan_id": plan.ID}, &out)
	if err != nil {
		return nil, p.refusal(ctx, err, in, false)
	}
	noEnd := procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and the order shows no new end")
	extended, err := p.getOrder(ctx, ref)
	if err != nil {
		return nil, noEnd
	}
	after, err := extended.delivery()
	if err != nil || !after.ExpiresAt.After(before.ExpiresAt) {
		return nil, noEnd
	}
	switch {
	case old.Extensions == nil || extended.Extensions == nil: // the end alone proves it
	case len(*extended.Extensions) <= len(*old.Extensions):
		return nil, procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and the history of the order "+
			"does not show it")
	case after.State == procurement.Pending: // its addresses are not listed at the moment
		after.State, after.IPs = procurement.Live, before.IPs
	}
	if after.State != procurement.Live {
		return nil, noEnd
	}
	done := make([]procurement.Renewed, len(after.IPs))
	for i, ip := range after.IPs {
		done[i] = procurement.Renewed{Addr: ip.Addr, ExpiresAt: after.ExpiresAt}
	}
	return done, nil
}

func planOf(list []product, in procurement.Intent) (plan, bool) {
	for _, product := range list {
		for _, plan := range product.Plans {
			if strconv.FormatInt(product.ID, 10) == in.SKU && plan.days() == in.Days && in.Days > 0 {
				return plan, true
			}
		}
	}
	return plan{}, false
}
