package upstream

import (
	"context"
	"net/http"
	"strconv"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Renew extends an order: all its addresses have one end. It is Ambiguous when
// the end did not move though the call was accepted.
func (p *iproyal) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
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
	var out inData[iproyalOrder]
	err = p.static.callWith(ctx, once, http.MethodPost, "/orders/"+ref+"/extend", intentHeader(in.Key),
		map[string]any{"product_plan_id": plan.ID}, &out)
	if err != nil {
		return nil, p.why(ctx, err, in, false)
	}
	after, err := p.readOrder(ctx, ref)
	if err != nil || after.State != procurement.Live || !after.ExpiresAt.After(before.ExpiresAt) {
		return nil, procurement.Refuse(procurement.Ambiguous, "the renewal was accepted, and its new end is not told")
	}
	done := make([]procurement.Renewed, len(after.IPs))
	for i, ip := range after.IPs {
		done[i] = procurement.Renewed{Addr: ip.Addr, ExpiresAt: ip.ExpiresAt}
	}
	return done, nil
}

func planOf(list []iproyalProduct, in procurement.Intent) (iproyalPlan, bool) {
	for _, product := range list {
		for _, plan := range product.Plans {
			if strconv.FormatInt(product.ID, 10) == in.SKU && plan.days() == in.Days && in.Days > 0 {
				return plan, true
			}
		}
	}
	return iproyalPlan{}, false
}
