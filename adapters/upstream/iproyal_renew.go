package upstream

import (
	"context"
	"net/http"
	"strconv"

	"agentproxy/domain/session"
	"agentproxy/domain/supply"
)

// Renew extends an order: all its addresses have one end. It is Ambiguous when
// the end did not move though the call was accepted.
func (p *iproyal) Renew(ctx context.Context, ref string, in supply.Intent) ([]supply.Renewed, error) {
	if err := p.sells(session.Static); err != nil {
		return nil, err
	}
	before, err := p.readOrder(ctx, ref)
	if err != nil {
		return nil, err
	}
	if before.State == supply.Gone {
		return nil, supply.Refuse(supply.NotFound, "the order has ended")
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
		return nil, supply.Refuse(supply.Invalid, "the product has no plan of "+strconv.Itoa(in.Days)+" days")
	}
	var out inData[iproyalOrder]
	err = p.static.callWith(ctx, once, http.MethodPost, "/orders/"+ref+"/extend", intentHeader(in.Key),
		map[string]any{"product_plan_id": plan.ID}, &out)
	if err != nil {
		return nil, p.why(ctx, err, in, false)
	}
	after, err := p.readOrder(ctx, ref)
	if err != nil || after.State != supply.Live || !after.ExpiresAt.After(before.ExpiresAt) {
		return nil, supply.Refuse(supply.Ambiguous, "the renewal was accepted, and its new end is not told")
	}
	done := make([]supply.Renewed, len(after.IPs))
	for i, ip := range after.IPs {
		done[i] = supply.Renewed{Addr: ip.Addr, ExpiresAt: ip.ExpiresAt}
	}
	return done, nil
}

func planOf(list []iproyalProduct, in supply.Intent) (iproyalPlan, bool) {
	for _, product := range list {
		for _, plan := range product.Plans {
			if strconv.FormatInt(product.ID, 10) == in.SKU && plan.days() == in.Days && in.Days > 0 {
				return plan, true
			}
		}
	}
	return iproyalPlan{}, false
}

// Replace is not offered by the API.
func (p *iproyal) Replace(context.Context, string, supply.IP) error {
	return supply.Refuse(supply.Unsupported, "the seller exchanges no addresses")
}
