package proxycheap

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

var (
	idForm    = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	orderForm = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
)

// placedOrder is the answer to an order. Its numbers are texts.
type placedOrder struct {
	ID    string      `json:"id"`
	Total rest.Number `json:"totalPrice"`
}

// UnmarshalJSON returns rest.ErrShape for an order without an id.
func (p *placedOrder) UnmarshalJSON(b []byte) error {
	type fields placedOrder
	var in rest.Unwrapped[fields]
	if err := in.UnmarshalJSON(b); err != nil {
		return err
	}
	*p = placedOrder(in.Value)
	if !orderForm.MatchString(p.ID) {
		return rest.ErrShape
	}
	return nil
}

// Order buys by one call, without automatic renewal. The addresses are delivered later.
func (p *Provider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	service, body, err := p.order(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	var out placedOrder
	err = p.api.CallWith(ctx, rest.Once, http.MethodPost, "/v2/order/"+service+"/execute", rest.RequestID(in.Key),
		body, &out)
	if err != nil {
		return procurement.Delivery{}, p.refusal(ctx, err, service, body)
	}
	d := procurement.Delivery{Ref: out.ID, State: procurement.Pending, SKU: in.SKU, Location: in.Location,
		Quantity: in.Quantity}
	if cost, ok := out.Total.Cost(); ok && cost > 0 {
		d.Cost = cost
	}
	return d, nil
}

// refusal returns the class of a refusal that has no known words, by looking whether the
// balance is too low, if its unit is known.
func (p *Provider) refusal(ctx context.Context, refused error, service string, body map[string]any) error {
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

// Find returns the orders of all addresses of the account, the newest first. Addresses
// that name no order are left out: an order among them is shown by the missing money,
// and found by its id. If the balance is unknown too, Find fails with Temporary
// while such addresses may be the order, because then it is not provably absent.
func (p *Provider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Static {
		return nil, procurement.Refuse(procurement.Unsupported, "only addresses are sold")
	}
	var list addressList
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/proxies", nil, &list); err != nil {
		return nil, err
	}
	groups := map[string][]address{}
	candidates := 0
	for _, x := range list {
		ref := string(x.Metadata.Order)
		if ref != "" {
			groups[ref] = append(groups[ref], x)
		} else if x.mayBe(in, p.now()) {
			candidates++
		}
	}
	if candidates > 0 {
		if funds, err := p.Balance(ctx); err != nil || !funds.Known {
			return nil, procurement.Refuse(procurement.Temporary, "addresses that may be the order are listed without their "+
				"order, and the balance is not known")
		}
	}
	var found []procurement.Delivery
	for ref, proxies := range groups {
		d, err := deliveryOf(ref, proxies)
		if err != nil { // it exists, and may be the one that is searched
			d = procurement.Delivery{Ref: ref, State: procurement.Pending, CreatedAt: d.CreatedAt, Location: d.Location}
		}
		// More addresses may follow, so a smaller quantity is not compared.
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

// mayBe reports whether an address that names no order may be of an intent: it is in its
// country, and was created in the time in which an unknown order is asked for.
func (a address) mayBe(in procurement.Intent, now time.Time) bool {
	created, err := parseTime(a.Created)
	recent := err != nil || created.IsZero() || now.Sub(created) < procurement.FreezeAfter
	return recent && (in.Location.Country == "" || a.Country == "" || a.Country == in.Location.Country)
}

// Read returns the addresses of an order. The API does not return how many were
// ordered, so an order whose addresses are listed one by one may be Live too early.
func (p *Provider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	proxies, err := p.proxies(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return deliveryOf(ref, proxies)
}

// proxies returns the addresses of an order. It fails with NotFound if there is no such
// order; for an order without addresses it reads the order itself.
func (p *Provider) proxies(ctx context.Context, ref string) ([]address, error) {
	if !orderForm.MatchString(ref) {
		return nil, procurement.Refuse(procurement.NotFound, "an order is known by a UUID")
	}
	var list addressList
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/orders/"+ref+"/proxies", nil, &list); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		var order placedOrder
		if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/orders/"+ref, nil, &order); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Cancel always fails with Unsupported: an order runs to its end.
func (p *Provider) Cancel(context.Context, string) error {
	return procurement.Refuse(procurement.Unsupported, "an order runs to its end")
}
