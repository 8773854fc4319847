package iproyal

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// The bounds of a list of orders; a longer list is an error.
const (
	pageSize = 100
	maxPages = 50
)

// order is the answer of GET /orders/{id}. The fields of its addresses are decoded
// once they are delivered, because their shape varies until then.
type order struct {
	ID       rest.Number     `json:"id"`
	Status   string          `json:"status"`
	Expires  string          `json:"expire_date"`
	Location json.RawMessage `json:"location"`
	Quantity int             `json:"quantity"`
	Proxies  json.RawMessage `json:"proxy_data"`
	// Extensions are the renewals of the order; nil if the answer has none.
	Extensions *[]json.RawMessage `json:"extended_history"`
}

// Check returns an error for an order without a number.
func (o *order) Check() error {
	if _, ok := o.ID.Positive(); !ok {
		return rest.ErrShape
	}
	return nil
}

// delivery converts an order. The zone of its end is unverified.
func (o order) delivery() (procurement.Delivery, error) {
	d := procurement.Delivery{Ref: string(o.ID), Quantity: o.Quantity, State: procurement.Pending}
	var name string
	if json.Unmarshal(o.Location, &name) == nil {
		d.Location.Country = countryOf(name)
	}
	if o.Expires != "" {
		at, err := parseTime(o.Expires)
		if err != nil {
			return d, procurement.Refuse(procurement.Temporary, "the end of the order is not of a form that is known")
		}
		d.ExpiresAt = at
	}
	switch o.Status {
	case "unpaid", "in-progress":
	case "refunded", "expired":
		d.State = procurement.Gone
	case "confirmed":
		return o.addresses(d)
	default:
		return d, procurement.Refuse(procurement.Temporary, "the status of the order is not one that is known: "+
			rest.OneLine(o.Status))
	}
	return d, nil
}

// addresses converts the addresses of a confirmed order, which stays Pending until all
// of them are listed.
func (o order) addresses(d procurement.Delivery) (procurement.Delivery, error) {
	unknown := procurement.Refuse(procurement.Temporary, "the addresses of the order are not of a shape that is known")
	var data struct {
		Ports   json.RawMessage `json:"ports"`
		Proxies []struct {
			IP       string `json:"ip"`
			User     string `json:"username"`
			Password string `json:"password"`
		} `json:"proxies"`
	}
	if len(o.Proxies) == 0 || string(o.Proxies) == "null" || string(o.Proxies) == "[]" {
		return d, nil
	}
	if json.Unmarshal(o.Proxies, &data) != nil {
		return d, unknown
	}
	if len(data.Proxies) == 0 || len(data.Proxies) < o.Quantity {
		return d, nil
	}
	var ports map[string]uint16
	if json.Unmarshal(data.Ports, &ports) != nil || ports["http|https"] == 0 && ports["socks5"] == 0 {
		return d, unknown
	}
	for _, x := range data.Proxies {
		ip, err := netip.ParseAddr(x.IP)
		if err != nil || x.User == "" || x.Password == "" {
			return d, unknown
		}
		// The HTTP port is known to reset connections that the SOCKS5 port serves.
		d.IPs = append(d.IPs, procurement.IP{PrefersSOCKS: ports["socks5"] != 0, ID: ip.String(), Addr: ip, Host: ip.String(),
			HTTPPort: ports["http|https"], SOCKSPort: ports["socks5"], User: x.User, Password: x.Password,
			Country: d.Location.Country, ExpiresAt: d.ExpiresAt})
	}
	if d.ExpiresAt.IsZero() {
		return d, procurement.Refuse(procurement.Temporary, "a delivered order has no end")
	}
	d.State = procurement.Live
	return d, nil
}

// orderAddresses buys by one POST /orders, paid from the balance. It reads the
// catalogue first and does not order from a place that is out of stock there.
func (p *Provider) orderAddresses(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	g, err := p.selectProduct(ctx, in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if g.place.stock(in.Quantity) == procurement.StockNo {
		return procurement.Delivery{}, procurement.Refuse(procurement.OutOfStock, "out of stock by the catalogue")
	}
	body := map[string]any{"product_id": g.product.ID, "product_plan_id": g.plan.ID, "product_location_id": g.place.ID,
		"quantity": in.Quantity, "auto_extend": false}
	if len(p.answers) > 0 { // clients that work leave out an empty object
		body["product_question_answers"] = p.answers
	}
	var out rest.Unwrapped[order]
	err = p.reseller.CallWith(ctx, rest.Once, http.MethodPost, "/orders", rest.RequestID(in.Key), body, &out)
	if err != nil {
		return procurement.Delivery{}, p.refusal(ctx, err, in, true)
	}
	d, err := out.Value.delivery()
	if err != nil { // it was bought; Read returns what is wrong with it
		d = procurement.Delivery{Ref: string(out.Value.ID), State: procurement.Pending}
	}
	d.SKU, d.Location = in.SKU, in.Location
	return d, nil
}

// refusal returns the class of a refusal that has no known words, by looking whether
// the place is out of stock, if stock is set, or the balance too low.
func (p *Provider) refusal(ctx context.Context, refused error, in procurement.Intent, stock bool) error {
	if procurement.ClassOf(refused) != procurement.Invalid {
		return refused
	}
	q, err := p.quoteAddresses(ctx, in)
	if err != nil {
		return refused
	}
	if stock && q.Stock == procurement.StockNo {
		return procurement.Refuse(procurement.OutOfStock, procurement.ReasonOf(refused))
	}
	if funds, err := p.funds(ctx); err == nil && q.Cost > 0 && funds.Amount < q.Cost {
		return procurement.Refuse(procurement.InsufficientFunds, procurement.ReasonOf(refused))
	}
	return refused
}

// findAddresses lists the orders of a product in a place. Their sorting is not
// documented, so all pages are read and sorted by order number.
func (p *Provider) findAddresses(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	location := p.placeID(in.Location)
	if location == "" {
		list, err := p.products(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(x product) bool { return strconv.FormatInt(x.ID, 10) == in.SKU })
		if i < 0 {
			return nil, procurement.Refuse(procurement.Invalid, "no product has the number "+rest.OneLine(in.SKU))
		}
		l, err := p.findPlace(list[i], in.Location)
		if err != nil {
			return nil, err
		}
		location = strconv.FormatInt(l.ID, 10)
	}
	seen := map[string]bool{}
	var found []procurement.Delivery
	err := p.eachOrder(ctx, url.Values{"product_id": {in.SKU}, "location_id": {location}}, func(d procurement.Delivery) {
		if d.SKU, d.Location = in.SKU, in.Location; !seen[d.Ref] {
			found, seen[d.Ref] = append(found, d), true
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(found, func(a, b procurement.Delivery) int {
		x, _ := rest.Number(a.Ref).Positive()
		y, _ := rest.Number(b.Ref).Positive()
		return cmp.Compare(y, x)
	})
	return found, nil
}

// eachOrder calls do for the orders that a query selects, on all pages.
func (p *Provider) eachOrder(ctx context.Context, query url.Values, do func(procurement.Delivery)) error {
	for n := 1; n <= maxPages; n++ {
		query.Set("page", strconv.Itoa(n))
		query.Set("per_page", strconv.Itoa(pageSize))
		var out page[order]
		if err := p.reseller.Call(ctx, rest.Safely, http.MethodGet, "/orders?"+query.Encode(), nil, &out); err != nil {
			return err
		}
		for _, o := range out.Items {
			if o.Check() != nil {
				return procurement.Refuse(procurement.Temporary, "an order is listed without its number")
			}
			d, err := o.delivery()
			if err != nil { // it exists, and may be the one that is searched
				d = procurement.Delivery{Ref: string(o.ID), State: procurement.Pending, Quantity: o.Quantity}
			}
			do(d)
		}
		if out.last(n) {
			return nil
		}
	}
	return procurement.Refuse(procurement.Temporary, "there are more orders than are read")
}

func (p *Provider) readOrder(ctx context.Context, ref string) (procurement.Delivery, error) {
	o, err := p.getOrder(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	return o.delivery()
}

func (p *Provider) getOrder(ctx context.Context, ref string) (order, error) {
	if _, ok := rest.Number(ref).Positive(); !ok {
		return order{}, procurement.Refuse(procurement.NotFound, "an order is known by a number")
	}
	var out rest.Unwrapped[order]
	if err := p.reseller.Call(ctx, rest.Safely, http.MethodGet, "/orders/"+ref, nil, &out); err != nil {
		return order{}, err
	}
	if string(out.Value.ID) != ref {
		return order{}, procurement.Refuse(procurement.Temporary, "another order came than was asked for")
	}
	return out.Value, nil
}

// quoteAddresses returns the price of GET /orders/calculate-pricing and the stock of
// the catalogue.
func (p *Provider) quoteAddresses(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	g, err := p.selectProduct(ctx, in)
	if err != nil {
		return procurement.Quote{}, err
	}
	n := func(i int64) []string { return []string{strconv.FormatInt(i, 10)} }
	query := url.Values{"product_id": n(g.product.ID), "product_plan_id": n(g.plan.ID),
		"product_location_id": n(g.place.ID), "quantity": n(int64(in.Quantity))}
	var out rest.Unwrapped[struct {
		Price   rest.Number `json:"price"`
		WithVAT rest.Number `json:"price_with_vat"`
	}]
	if err := p.reseller.Call(ctx, rest.Safely, http.MethodGet, "/orders/calculate-pricing?"+query.Encode(), nil,
		&out); err != nil {
		return procurement.Quote{}, err
	}
	cost, ok := out.Value.WithVAT.Cost()
	if !ok {
		cost, ok = out.Value.Price.Cost()
	}
	if !ok || cost <= 0 {
		return procurement.Quote{}, procurement.Refuse(procurement.Temporary, "the price is not of a shape that is known")
	}
	return procurement.Quote{Cost: cost, Stock: g.place.stock(in.Quantity)}, nil
}

// funds returns the amount of GET /balance, which is a number or a text.
func (p *Provider) funds(ctx context.Context) (procurement.ProviderBalance, error) {
	var out rest.Unwrapped[rest.Number]
	if err := p.reseller.Call(ctx, rest.Safely, http.MethodGet, "/balance", nil, &out); err != nil {
		return procurement.ProviderBalance{}, err
	}
	n, ok := out.Value.Decimal(6, rest.Down)
	if !ok {
		return procurement.ProviderBalance{}, procurement.Refuse(procurement.Temporary, "the balance is not of a shape "+
			"that is known")
	}
	return procurement.ProviderBalance{Amount: domain.Money(n), Known: true}, nil
}
