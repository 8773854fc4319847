package upstream

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

var (
	proxyCheapID   = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	proxyCheapUUID = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
)

// proxyCheapExecuted is the answer to an order, whose numbers are texts.
type proxyCheapExecuted struct {
	ID    string `json:"id"`
	Total figure `json:"totalPrice"`
}

func (e *proxyCheapExecuted) UnmarshalJSON(b []byte) error {
	type plain proxyCheapExecuted
	var in inData[plain]
	if err := in.UnmarshalJSON(b); err != nil {
		return err
	}
	*e = proxyCheapExecuted(in.V)
	if !proxyCheapUUID.MatchString(e.ID) {
		return errShape
	}
	return nil
}

// Order buys by one execute. Renewal by the seller is off. It takes a while until
// the addresses can be used.
func (p *proxyCheap) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	service, body, err := p.order(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	var out proxyCheapExecuted
	err = p.api.callWith(ctx, once, http.MethodPost, "/v2/order/"+service+"/execute", intentHeader(in.Key), body, &out)
	if err != nil {
		return procurement.Delivery{}, p.why(ctx, err, service, body)
	}
	d := procurement.Delivery{Ref: out.ID, State: procurement.Pending, SKU: in.SKU, Location: in.Location, Quantity: in.Quantity}
	if cost, ok := out.Total.cost(); ok && cost > 0 {
		d.Cost = cost
	}
	return d, nil
}

// why looks for an empty account behind a refusal whose words tell nothing, where
// the unit of the balance is known.
func (p *proxyCheap) why(ctx context.Context, refused error, service string, body map[string]any) error {
	if procurement.ClassOf(refused) != procurement.Invalid {
		return refused
	}
	funds, err := p.Balance(ctx)
	if err != nil || !funds.Known {
		return refused
	}
	if cost, err := p.price(ctx, service, body); err == nil && funds.Amount < cost {
		return procurement.Refuse(procurement.InsufficientFunds, procurement.ReasonOf(refused))
	}
	return refused
}

// Find lists the orders of all addresses of the account, the newest first. An
// address that names no order is an error: with it nothing could be proven
// absent.
func (p *proxyCheap) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Static {
		return nil, procurement.Refuse(procurement.Unsupported, "only addresses are sold")
	}
	var list proxyCheapList
	if err := p.api.call(ctx, safely, http.MethodGet, "/proxies", nil, &list); err != nil {
		return nil, err
	}
	groups := map[string][]proxyCheapProxy{}
	for _, x := range list {
		if !proxyCheapUUID.MatchString(x.Metadata.Order) {
			return nil, procurement.Refuse(procurement.Temporary, "an address is listed without its order")
		}
		groups[x.Metadata.Order] = append(groups[x.Metadata.Order], x)
	}
	var found []procurement.Delivery
	for ref, proxies := range groups {
		d, err := proxyCheapDelivery(ref, proxies)
		if err != nil { // it exists, and may be the one
			d = procurement.Delivery{Ref: ref, State: procurement.Pending, CreatedAt: d.CreatedAt, Location: d.Location}
		}
		// More addresses may be on their way: too few prove nothing.
		if d.Quantity = len(proxies); d.Quantity < in.Quantity {
			d.Quantity = 0
		}
		found = append(found, d)
	}
	slices.SortFunc(found, func(a, b procurement.Delivery) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(a.Ref, b.Ref))
	})
	return found, nil
}

// Read lists the addresses of an order. It does not tell how many were ordered: a
// seller that lists them one after the other would look done too early.
func (p *proxyCheap) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	proxies, err := p.proxies(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return proxyCheapDelivery(ref, proxies)
}

// proxies are the addresses of an order; NotFound when there is no such order. An
// order without addresses is looked up by itself.
func (p *proxyCheap) proxies(ctx context.Context, ref string) ([]proxyCheapProxy, error) {
	if !proxyCheapUUID.MatchString(ref) {
		return nil, procurement.Refuse(procurement.NotFound, "an order is known by a UUID")
	}
	var list proxyCheapList
	if err := p.api.call(ctx, safely, http.MethodGet, "/orders/"+ref+"/proxies", nil, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		var order proxyCheapExecuted
		if err := p.api.call(ctx, safely, http.MethodGet, "/orders/"+ref, nil, &order); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Cancel is not offered: an order runs to its end.
func (p *proxyCheap) Cancel(context.Context, string) error {
	return procurement.Refuse(procurement.Unsupported, "an order runs to its end")
}
