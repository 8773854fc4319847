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
// if the call was accepted and the end did not move.
func (p *Provider) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	if err := p.sells(session.Static); err != nil {
		return nil, err
	}
	before, err := p.readOrder(ctx, ref)
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
	after, err := p.readOrder(ctx, ref)
	if err != nil || after.State != procurement.Live || !after.ExpiresAt.After(before.ExpiresAt) {
		return nil, procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and the order shows no new end")
	}
	done := make([]procurement.Renewed, len(after.IPs))
	for i, ip := range after.IPs {
		done[i] = procurement.Renewed{Addr: ip.Addr, ExpiresAt: ip.ExpiresAt}
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
