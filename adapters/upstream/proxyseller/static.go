package proxyseller

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// addressProvider sells addresses for one or three calendar months
// (https://docs.proxy-seller.com/api-v2). The ref of an order is its base number,
// because ids of orders and addresses change with every renewal.
//
// Orders carry no order key. A lost one is found among the orders that were not listed
// before: in proxy/list after its delivery, which has its addresses, and in order/list
// until then. The parameter latest=Y is not used: it would hide an order behind a later
// one.
type addressProvider struct{ *account }

var (
	_ ports.Replacer = (*addressProvider)(nil)
	_ ports.Lister   = (*addressProvider)(nil)
)

// Capabilities describes orders that are paid at once, delivered later and cannot be
// cancelled.
func (p *addressProvider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true, Renews: true}
}

// Balance returns the balance of the account.
func (p *addressProvider) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	var data struct{ Summ *amount }
	if err := p.get(ctx, "/balance/get", &data); err != nil {
		return procurement.ProviderBalance{}, err
	}
	if data.Summ == nil {
		return procurement.ProviderBalance{}, unexpected(procurement.Temporary)
	}
	return procurement.ProviderBalance{Amount: domain.Money(*data.Summ), Known: true}, nil
}

// Offers returns the countries of the section. Only a quote has their stock and price.
func (p *addressProvider) Offers(ctx context.Context) ([]procurement.Offer, error) {
	type reference struct {
		Country *[]soldCountry
	}
	var data struct {
		reference
		Items *reference // version 2 and newer answers of version 1
	}
	if err := p.get(ctx, "/reference/list/"+p.section, &data); err != nil {
		return nil, err
	}
	list := data.Country
	if data.Items != nil {
		list = data.Items.Country
	}
	if list == nil {
		return nil, unexpected(procurement.Temporary)
	}
	var offers []procurement.Offer
	for _, c := range *list {
		if code := c.alpha2(); code != "" {
			offers = append(offers, procurement.Offer{SKU: p.section, Type: session.Static,
				Name: strings.TrimPrefix(c.Name, "Proxy of "), Location: session.Location{Country: code}, Days: []int{30, 90},
				Stock: procurement.StockUnknown})
		}
	}
	return offers, nil
}

// soldCountry is a country of the reference list. Its id is the alpha-3 code in version
// 2, and a number beside the code in version 1.
type soldCountry struct {
	ID           json.RawMessage
	Name, Alpha3 string
}

// alpha2 returns the code of the country. It is empty for an unknown one.
func (c soldCountry) alpha2() string {
	code := c.Alpha3
	if code == "" {
		_ = json.Unmarshal(c.ID, &code) // a number is not a code
	}
	return country.Alpha2(strings.ToUpper(code))
}

// orderBody is the body of order/calc and order/make.
type orderBody struct {
	Section      string `json:"sectionCode"`
	Country      string `json:"countryId"` // an id or an alpha-3 code
	Period       string `json:"periodId"`  // a code
	Quantity     int    `json:"quantity"`
	Auth         string `json:"authorization"` // empty: by user name and password
	Coupon       string `json:"coupon"`
	Purpose      string `json:"customTargetName"`
	Payment      string `json:"paymentCode"`
	GenerateAuth string `json:"generateAuth,omitempty"`
}

// bill is the answer to a calculation, an order or a renewal.
type bill struct {
	Warning  string
	Total    *amount
	Currency string   // of a calculation
	Quantity int      // of a calculation
	OrderID  string   `json:"orderId"`
	Numbers  []string `json:"listBaseOrderNumbers"`
}

// body converts an intent. It fails with Invalid for a place that the seller has no id
// for; a place is never widened.
func (p *addressProvider) body(in procurement.Intent) (orderBody, error) {
	period, err := periodOf(in)
	if err != nil {
		return orderBody{}, err
	}
	place, country := in.Location.Country, country.Alpha3(in.Location.Country)
	if in.Location.City != "" {
		place, country = place+"/"+in.Location.City, ""
	}
	if id := p.places[place]; id != "" {
		country = id
	}
	switch {
	case in.Type != session.Static:
		return orderBody{}, procurement.Refuse(procurement.Unsupported, "this provider sells addresses")
	case in.SKU != "" && in.SKU != p.section:
		return orderBody{}, procurement.Refuse(procurement.Invalid, "this provider sells "+p.section)
	case in.Quantity < 1:
		return orderBody{}, procurement.Refuse(procurement.Invalid, "no quantity")
	case country == "":
		return orderBody{}, procurement.Refuse(procurement.Invalid, "no such place at the seller")
	}
	return orderBody{Section: p.section, Country: country, Period: period, Quantity: in.Quantity,
		Purpose: p.purpose, Payment: "balance"}, nil
}

// periodOf returns the seller's code of a term, which is in calendar months. It fails
// with Invalid for any term but 30 and 90 days.
func periodOf(in procurement.Intent) (string, error) {
	switch in.Days {
	case 30:
		return "1m", nil
	case 90:
		return "3m", nil
	}
	return "", procurement.Refuse(procurement.Invalid, "the seller has terms of 30 and 90 days")
}

// cost returns the total of a calculation for n addresses.
func (p *addressProvider) cost(b bill, n int) (domain.Money, error) {
	if b.Warning != "" { // without an error, which is not documented: do not pay
		return 0, procurement.Refuse(procurement.Invalid, rest.OneLine(p.redact(b.Warning)))
	}
	if b.Total == nil || *b.Total < 0 || b.Currency != domain.Currency || b.Quantity != n {
		return 0, unexpected(procurement.Temporary)
	}
	return domain.Money(*b.Total), nil
}

// Quote returns the result of order/calc, with an unknown stock. It fails with
// InsufficientFunds if the balance is too low.
func (p *addressProvider) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	body, err := p.body(in)
	if err != nil {
		return procurement.Quote{}, err
	}
	var b bill
	if err := p.query(ctx, "/order/calc", body, &b); err != nil {
		return procurement.Quote{}, err
	}
	cost, err := p.cost(b, in.Quantity)
	if err != nil {
		return procurement.Quote{}, err
	}
	return procurement.Quote{Cost: cost, Stock: procurement.StockUnknown}, nil
}

// Order calls order/make once. It pays from the balance and requests a credential for
// this order. The addresses come later.
func (p *addressProvider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	body, err := p.body(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	body.GenerateAuth = "Y"
	var b bill
	if err := p.spend(ctx, in.Key, "/order/make", body, &b); err != nil {
		return procurement.Delivery{}, err
	}
	// Several numbers would be several orders, which one ref cannot name.
	if b.OrderID == "" || len(b.Numbers) != 1 || b.Numbers[0] == "" || b.Total == nil || *b.Total < 0 {
		return procurement.Delivery{}, unexpected(procurement.Ambiguous)
	}
	return procurement.Delivery{Ref: b.Numbers[0], State: procurement.Pending, SKU: p.section, Location: in.Location,
		Quantity: in.Quantity, Cost: domain.Money(*b.Total)}, nil
}

// Find returns the orders of the account as Pending: an order that is adopted is read
// before it is used.
func (p *addressProvider) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Static {
		return nil, nil
	}
	items, err := p.list(ctx, "")
	if err != nil {
		return nil, err
	}
	return p.orders(ctx, items)
}

// List returns the orders of the section that have addresses, those that end soon
// included, and the recent ones whose addresses are on their way. The seller's list of
// orders names no section: what is on its way in another one is listed too.
func (p *addressProvider) List(ctx context.Context) ([]procurement.Delivery, error) {
	items, err := p.list(ctx, "")
	if err != nil {
		return nil, err
	}
	ending, err := p.list(ctx, "?ends=Y")
	if err != nil {
		return nil, err
	}
	found, err := p.orders(ctx, append(items, ending...))
	for i := range found {
		if found[i].SKU != "" { // it has addresses
			found[i].State = procurement.Live
		}
	}
	return found, err
}

// orders returns the orders of addresses, and the recent ones that have none.
func (p *addressProvider) orders(ctx context.Context, items []address) ([]procurement.Delivery, error) {
	orders, err := p.recent(ctx)
	if err != nil {
		return nil, err
	}
	var found []procurement.Delivery
	at := map[string]int{}
	add := func(d procurement.Delivery) {
		at[d.Ref] = len(found)
		found = append(found, d)
	}
	for _, i := range items {
		number, code := i.order(), country.Alpha2(i.Country)
		if number == "" {
			return nil, unexpected(procurement.Temporary) // an order that could not be found again
		}
		if n, ok := at[number]; ok {
			found[n].Quantity++
			if found[n].Location.Country != code {
				found[n].Location.Country = ""
			}
			continue
		}
		add(procurement.Delivery{Ref: number, State: procurement.Pending, SKU: p.section, Quantity: 1,
			Location: session.Location{Country: code}})
	}
	for _, o := range orders {
		known := slices.ContainsFunc(items, func(i address) bool { return i.Number == o.Number })
		if _, ok := at[o.order()]; !ok && !known && o.Status != notPaid && o.Status != returned {
			add(procurement.Delivery{Ref: o.order(), State: procurement.Pending, CreatedAt: o.at(), Cost: o.cost()})
		}
	}
	return found, nil
}

// Read returns an order. One without addresses is Pending while it is paid and recent, and
// Gone if its money was returned; after that Read fails with NotFound.
func (p *addressProvider) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	items, err := p.items(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if len(items) == 0 {
		return p.undelivered(ctx, ref)
	}
	credentials, err := p.credentials(ctx)
	if err != nil {
		return procurement.Delivery{}, err
	}
	d := procurement.Delivery{Ref: ref, State: procurement.Live, SKU: p.section, Quantity: len(items)}
	for _, i := range items {
		ip, ok := i.ip(credentials)
		if !ok {
			return procurement.Delivery{}, unexpected(procurement.Temporary)
		}
		if d.IPs = append(d.IPs, ip); d.ExpiresAt.IsZero() || ip.ExpiresAt.Before(d.ExpiresAt) {
			d.ExpiresAt = ip.ExpiresAt
		}
	}
	d.Location.Country = d.IPs[0].Country
	return d, p.disableAutoRenewal(ctx, items)
}

// Cancel fails with Unsupported, because the seller takes nothing back. It fails with
// Temporary until the addresses are delivered and their automatic renewal is off, so
// that a cancelled order does not renew itself again and again.
func (p *addressProvider) Cancel(ctx context.Context, ref string) error {
	d, err := p.Read(ctx, ref)
	switch {
	case procurement.ClassOf(err) == procurement.NotFound:
		return nil
	case err != nil:
		return err
	case d.State == procurement.Pending:
		return procurement.Refuse(procurement.Temporary, "its addresses are on their way, and renew themselves until that "+
			"is switched off")
	}
	return procurement.Refuse(procurement.Unsupported, "an order runs to its end")
}
