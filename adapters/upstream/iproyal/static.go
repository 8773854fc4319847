package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

// The bounds of a list of orders.
const (
	iproyalPage  = 100
	iproyalPages = 50 // more are not walked through
)

// iproyalOrder is an order of GET /orders/{id}. What belongs to its addresses is
// read only when they are there: until then its shape varies.
type iproyalOrder struct {
	ID       figure          `json:"id"`
	Status   string          `json:"status"`
	Expires  string          `json:"expire_date"`
	Location json.RawMessage `json:"location"`
	Quantity int             `json:"quantity"`
	Proxies  json.RawMessage `json:"proxy_data"`
}

func (o *iproyalOrder) check() error {
	if _, ok := o.ID.whole(); !ok {
		return errShape
	}
	return nil
}

// delivery reads an order. Unverified: the zone of its end.
func (o iproyalOrder) delivery() (procurement.Delivery, error) {
	d := procurement.Delivery{Ref: string(o.ID), Quantity: o.Quantity, State: procurement.Pending}
	var name string
	if json.Unmarshal(o.Location, &name) == nil {
		d.Location.Country = countryOf(name)
	}
	if o.Expires != "" {
		at, err := iproyalTime(o.Expires)
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
		return d, procurement.Refuse(procurement.Temporary, "the status of the order is not one that is known: "+plain(o.Status))
	}
	return d, nil
}

// addresses reads what was delivered. A confirmed order whose addresses are not
// all there yet is Pending still.
func (o iproyalOrder) addresses(d procurement.Delivery) (procurement.Delivery, error) {
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
		d.IPs = append(d.IPs, procurement.IP{ID: ip.String(), Addr: ip, Host: ip.String(), HTTPPort: ports["http|https"],
			SOCKSPort: ports["socks5"], User: x.User, Password: x.Password, Country: d.Location.Country, ExpiresAt: d.ExpiresAt})
	}
	if d.ExpiresAt.IsZero() {
		return d, procurement.Refuse(procurement.Temporary, "a delivered order tells no end")
	}
	d.State = procurement.Live
	return d, nil
}

// orderAddresses buys by one POST /orders, paid from the balance. What the
// catalogue says before saves a refusal, and money where the place is empty.
func (p *iproyal) orderAddresses(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	g, err := p.goods(ctx, in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if g.place.stock(in.Quantity) == procurement.StockNo {
		return procurement.Delivery{}, procurement.Refuse(procurement.OutOfStock, "out of stock by the catalogue")
	}
	body := map[string]any{"product_id": g.product.ID, "product_plan_id": g.plan.ID, "product_location_id": g.place.ID,
		"quantity": in.Quantity, "auto_extend": false, "product_question_answers": p.answers}
	var out inData[iproyalOrder]
	err = p.static.callWith(ctx, once, http.MethodPost, "/orders", intentHeader(in.Key), body, &out)
	if err != nil {
		return procurement.Delivery{}, p.why(ctx, err, in, true)
	}
	d, err := out.V.delivery()
	if err != nil { // it was bought: Read says what is wrong with it
		d = procurement.Delivery{Ref: string(out.V.ID), State: procurement.Pending}
	}
	d.SKU, d.Location = in.SKU, in.Location
	return d, nil
}

// intentHeader names the intent of a call that may spend money. The seller is not
// known to read it.
func intentHeader(key string) http.Header { return http.Header{"X-Request-Id": {key}} }

// why looks for the reason of a refusal whose words tell none: the place may be
// empty, or the account.
func (p *iproyal) why(ctx context.Context, refused error, in procurement.Intent, stock bool) error {
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

// findAddresses lists the orders of a product in a place. How the seller sorts
// them is not told, so all are read and sorted by their numbers.
func (p *iproyal) findAddresses(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	place := p.placeID(in.Location)
	if place == "" {
		list, err := p.products(ctx)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(list, func(x iproyalProduct) bool { return strconv.FormatInt(x.ID, 10) == in.SKU })
		if i < 0 {
			return nil, procurement.Refuse(procurement.Invalid, "no product has the number "+plain(in.SKU))
		}
		l, err := p.place(list[i], in.Location)
		if err != nil {
			return nil, err
		}
		place = strconv.FormatInt(l.ID, 10)
	}
	seen := map[string]bool{}
	var found []procurement.Delivery
	for page := 1; ; page++ {
		if page > iproyalPages {
			return nil, procurement.Refuse(procurement.Temporary, "there are more orders than are read")
		}
		query := url.Values{"product_id": {in.SKU}, "location_id": {place}, "page": {strconv.Itoa(page)},
			"per_page": {strconv.Itoa(iproyalPage)}}
		var out paged[iproyalOrder]
		if err := p.static.call(ctx, safely, http.MethodGet, "/orders?"+query.Encode(), nil, &out); err != nil {
			return nil, err
		}
		for _, o := range out.Data {
			if o.check() != nil {
				return nil, procurement.Refuse(procurement.Temporary, "an order is listed without its number")
			}
			d, err := o.delivery()
			if err != nil { // it exists, and may be the one
				d = procurement.Delivery{Ref: string(o.ID), State: procurement.Pending, Quantity: o.Quantity}
			}
			if d.SKU, d.Location = in.SKU, in.Location; !seen[d.Ref] {
				found, seen[d.Ref] = append(found, d), true
			}
		}
		if len(out.Data) == 0 || out.Last > 0 && page >= out.Last || out.Last == 0 && len(out.Data) < iproyalPage {
			break
		}
	}
	slices.SortFunc(found, func(a, b procurement.Delivery) int {
		x, _ := figure(a.Ref).whole()
		y, _ := figure(b.Ref).whole()
		return cmp.Compare(y, x)
	})
	return found, nil
}

func (p *iproyal) readOrder(ctx context.Context, ref string) (procurement.Delivery, error) {
	if _, ok := figure(ref).whole(); !ok {
		return procurement.Delivery{}, procurement.Refuse(procurement.NotFound, "an order is known by a number")
	}
	var out inData[iproyalOrder]
	if err := p.static.call(ctx, safely, http.MethodGet, "/orders/"+ref, nil, &out); err != nil {
		return procurement.Delivery{}, err
	}
	if string(out.V.ID) != ref {
		return procurement.Delivery{}, procurement.Refuse(procurement.Temporary, "another order came than was asked for")
	}
	return out.V.delivery()
}

// quoteAddresses asks GET /orders/calculate-pricing, and the catalogue for the
// stock.
func (p *iproyal) quoteAddresses(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	g, err := p.goods(ctx, in)
	if err != nil {
		return procurement.Quote{}, err
	}
	n := func(i int64) []string { return []string{strconv.FormatInt(i, 10)} }
	query := url.Values{"product_id": n(g.product.ID), "product_plan_id": n(g.plan.ID), "product_location_id": n(g.place.ID),
		"quantity": n(int64(in.Quantity))}
	var out inData[struct {
		Price   figure `json:"price"`
		WithVAT figure `json:"price_with_vat"`
	}]
	if err := p.static.call(ctx, safely, http.MethodGet, "/orders/calculate-pricing?"+query.Encode(), nil, &out); err != nil {
		return procurement.Quote{}, err
	}
	cost, ok := out.V.WithVAT.cost()
	if !ok {
		cost, ok = out.V.Price.cost()
	}
	if !ok || cost <= 0 {
		return procurement.Quote{}, procurement.Refuse(procurement.Temporary, "the price is not of a shape that is known")
	}
	return procurement.Quote{Cost: cost, Stock: g.place.stock(in.Quantity)}, nil
}

// funds reads GET /balance: a bare number, or a text of one.
func (p *iproyal) funds(ctx context.Context) (procurement.ProviderBalance, error) {
	var out inData[figure]
	if err := p.static.call(ctx, safely, http.MethodGet, "/balance", nil, &out); err != nil {
		return procurement.ProviderBalance{}, err
	}
	n, ok := out.V.decimal(6, down)
	if !ok {
		return procurement.ProviderBalance{}, procurement.Refuse(procurement.Temporary, "the balance is not of a shape that is known")
	}
	return procurement.ProviderBalance{Amount: domain.Money(n), Known: true}, nil
}
