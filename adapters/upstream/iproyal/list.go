package iproyal

import (
	"context"
	"net/url"
	"strconv"

	"agentproxy/domain/procurement"
)

// List returns the orders of addresses of every product, which the seller lists by
// product alone, and all sub-users. Orders that were refunded or have expired are left
// out.
func (p *Provider) List(ctx context.Context) (list []procurement.Delivery, err error) {
	if p.reseller != nil {
		if list, err = p.listOrders(ctx); err != nil {
			return nil, err
		}
	}
	if p.residential == nil {
		return list, nil
	}
	err = p.eachSubUser(ctx, "", maxPages, func(u subUser) error {
		if u.Check() != nil {
			return procurement.Refuse(procurement.Temporary, "a sub-user is not of a shape that is known")
		}
		list = append(list, procurement.Delivery{Ref: u.Hash, Label: u.User, State: procurement.Live, SKU: trafficSKU})
		return nil
	})
	return list, err
}

func (p *Provider) listOrders(ctx context.Context) (list []procurement.Delivery, err error) {
	products, err := p.products(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, x := range products {
		sku := strconv.FormatInt(x.ID, 10)
		err := p.eachOrder(ctx, url.Values{"product_id": {sku}}, func(d procurement.Delivery) {
			if d.State != procurement.Gone && !seen[d.Ref] {
				d.SKU, seen[d.Ref] = sku, true
				list = append(list, d)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}
