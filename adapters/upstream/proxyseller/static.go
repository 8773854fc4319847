package upstream

import (
	"context"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// proxySellerStatic sells addresses for one or three calendar months
// (https://docs.proxy-seller.com/api-v2). The ref of an order is its base number:
// ids of orders and addresses change with every renewal.
//
// Orders carry no key of ours. A lost one is found among the lines that were not
// listed before: in proxy/list once it is delivered, before that in auth/list,
// because every order is made with a credential of its own. The list is asked for
// as a whole: latest=Y would hide an order behind one that was made after it.
type proxySellerStatic struct{ *proxySeller }

var _ ports.Static = (*proxySellerStatic)(nil)

// Capabilities: an order is paid and delivered later, and runs to its end.
func (p *proxySellerStatic) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Async: true, Renews: true}
}

// Balance is the account's.
func (p *proxySellerStatic) Balance(ctx context.Context) (procurement.ProviderBalance, error) {
	var data struct{ Summ *proxySellerMoney }
	if err := p.get(ctx, "/balance/get", &data); err != nil {
		return procurement.ProviderBalance{}, err
	}
	if data.Summ == nil {
		return procurement.ProviderBalance{}, proxySellerOdd(procurement.Temporary)
	}
	return procurement.ProviderBalance{Amount: domain.Money(*data.Summ), Known: true}, nil
}

// Offers lists the countries of the section. How much of them is in stock, and at
// what price, is told by a quote only.
func (p *proxySellerStatic) Offers(ctx context.Context) ([]procurement.Offer, error) {
	var data struct {
		Country *[]struct{ Name, Alpha3 string }
	}
	if err := p.get(ctx, "/reference/list/"+p.section, &data); err != nil {
		return nil, err
	}
	if data.Country == nil {
		return nil, proxySellerOdd(procurement.Temporary)
	}
	var offers []procurement.Offer
	for _, c := range *data.Country {
		if code := proxySellerAlpha2(c.Alpha3); code != "" {
			offers = append(offers, procurement.Offer{SKU: p.section, Type: session.Static, Name: c.Name,
				Location: session.Location{Country: code}, Days: []int{30, 90}, Stock: procurement.StockUnknown})
		}
	}
	return offers, nil
}

// proxySellerOrder is the body of order/calc and order/make. A country is an id or
// its alpha-3 code, a period its code.
type proxySellerOrder struct {
	Section      string `json:"sectionCode"`
	Country      string `json:"countryId"`
	Period       string `json:"periodId"`
	Quantity     int    `json:"quantity"`
	Auth         string `json:"authorization"` // empty: by user name and password
	Coupon       string `json:"coupon"`
	Purpose      string `json:"customTargetName"`
	Payment      string `json:"paymentCode"`
	GenerateAuth string `json:"generateAuth,omitempty"`
}

// proxySellerBill is what a calculation, an order or a renewal comes to.
type proxySellerBill struct {
	Warning  string
	Total    *proxySellerMoney
	Currency string   // of a calculation
	Quantity int      // of a calculation
	OrderID  string   `json:"orderId"`
	Numbers  []string `json:"listBaseOrderNumbers"`
}

// body is an intent in the seller's words. A place that cannot be named is
// refused, never widened.
func (p *proxySellerStatic) body(in procurement.Intent) (proxySellerOrder, error) {
	period, err := proxySellerPeriod(in)
	if err != nil {
		return proxySellerOrder{}, err
	}
	place, country := in.Location.Country, proxySellerAlpha3(in.Location.Country)
	if in.Location.City != "" {
		place, country = place+"/"+in.Location.City, ""
	}
	if id := p.places[place]; id != "" {
		country = id
	}
	switch {
	case in.Type != session.Static:
		return proxySellerOrder{}, procurement.Refuse(procurement.Unsupported, "this provider sells addresses")
	case in.SKU != "" && in.SKU != p.section:
		return proxySellerOrder{}, procurement.Refuse(procurement.Invalid, "this provider sells "+p.section)
	case in.Quantity < 1:
		return proxySellerOrder{}, procurement.Refuse(procurement.Invalid, "no quantity")
	case country == "":
		return proxySellerOrder{}, procurement.Refuse(procurement.Invalid, "no such place at the seller")
	}
	return proxySellerOrder{Section: p.section, Country: country, Period: period, Quantity: in.Quantity,
		Purpose: p.purpose, Payment: "balance"}, nil
}

// proxySellerPeriod is a term in the seller's words. That they are calendar months
// is read from the codes.
func proxySellerPeriod(in procurement.Intent) (string, error) {
	switch in.Days {
	case 30:
		return "1m", nil
	case 90:
		return "3m", nil
	}
	return "", procurement.Refuse(procurement.Invalid, "the seller has terms of 30 and 90 days")
}

// cost is what a calculation for n addresses comes to.
func (p *proxySellerStatic) cost(b proxySellerBill, n int) (domain.Money, error) {
	if b.Warning != "" { // without an error beside it: not documented, and not to be paid
		return 0, procurement.Refuse(procurement.Invalid, plain(p.reads.hide.Replace(b.Warning)))
	}
	if b.Total == nil || *b.Total < 0 || b.Currency != domain.Currency || b.Quantity != n {
		return 0, proxySellerOdd(procurement.Temporary)
	}
	return domain.Money(*b.Total), nil
}

// Quote is order/calc. Too little money is InsufficientFunds; the stock is not
// told.
func (p *proxySellerStatic) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	body, err := p.body(in)
	if err != nil {
		return procurement.Quote{}, err
	}
	var bill proxySellerBill
	if err := p.ask(ctx, "/order/calc", body, &bill); err != nil {
		return procurement.Quote{}, err
	}
	cost, err := p.cost(bill, in.Quantity)
	if err != nil {
		return procurement.Quote{}, err
	}
	return procurement.Quote{Cost: cost, Stock: procurement.StockUnknown}, nil
}

// Order is order/make, once: paid from the balance, with a credential of its own.
// The addresses come later.
func (p *proxySellerStatic) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	body, err := p.body(in)
	if err != nil {
		return procurement.Delivery{}, err
	}
	body.GenerateAuth = "Y"
	var bill proxySellerBill
	if err := p.spend(ctx, in.Key, "/order/make", body, &bill); err != nil {
		return procurement.Delivery{}, err
	}
	// More than one number would be more than one line, which no ref can name.
	if bill.OrderID == "" || len(bill.Numbers) != 1 || bill.Numbers[0] == "" || bill.Total == nil || *bill.Total < 0 {
		return procurement.Delivery{}, proxySellerOdd(procurement.Ambiguous)
	}
	return procurement.Delivery{Ref: bill.Numbers[0], State: procurement.Pending, SKU: p.section, Location: in.Location,
		Quantity: in.Quantity, Cost: domain.Money(*bill.Total)}, nil
}

// Find lists the lines of the account. They are pending as far as the list tells:
// what is adopted is read before it is used.
func (p *proxySellerStatic) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	if in.Type != session.Static {
		return nil, nil
	}
	items, err := p.list(ctx, "")
	if err != nil {
		return nil, err
	}
	auths, err := p.auths(ctx)
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
		line, country := i.line(), proxySellerAlpha2(i.Country)
		if line == "" {
			return nil, proxySellerOdd(procurement.Temporary) // an order that nobody could find again
		}
		if n, ok := at[line]; ok {
			found[n].Quantity++
			if found[n].Location.Country != country {
				found[n].Location.Country = ""
			}
			continue
		}
		add(procurement.Delivery{Ref: line, State: procurement.Pending, SKU: p.section, Quantity: 1, Location: session.Location{Country: country}})
	}
	for _, a := range auths {
		known := slices.ContainsFunc(items, func(i proxySellerItem) bool { return i.Number == a.Number })
		if _, ok := at[a.Number]; !ok && !known && a.Number != "" && p.waiting(a) {
			add(procurement.Delivery{Ref: a.Number, State: procurement.Pending})
		}
	}
	return found, nil
}

// Read tells how an order stands. One without addresses is pending while its
// credential is new, and gone after that.
func (p *proxySellerStatic) Read(ctx context.Context, ref string) (procurement.Delivery, error) {
	items, err := p.items(ctx, ref)
	if err != nil {
		return procurement.Delivery{}, err
	}
	auths, err := p.auths(ctx)
	if err != nil {
		return procurement.Delivery{}, err
	}
	if len(items) == 0 {
		if slices.ContainsFunc(auths, func(a proxySellerAuth) bool { return ref != "" && a.Number == ref && p.waiting(a) }) {
			return procurement.Delivery{Ref: ref, State: procurement.Pending}, nil
		}
		return procurement.Delivery{}, procurement.Refuse(procurement.NotFound, "no such order")
	}
	d := procurement.Delivery{Ref: ref, State: procurement.Live, SKU: p.section, Quantity: len(items)}
	for _, i := range items {
		ip, ok := i.ip(auths)
		if !ok {
			return procurement.Delivery{}, proxySellerOdd(procurement.Temporary)
		}
		if d.IPs = append(d.IPs, ip); d.ExpiresAt.IsZero() || ip.ExpiresAt.Before(d.ExpiresAt) {
			d.ExpiresAt = ip.ExpiresAt
		}
	}
	d.Location.Country = d.IPs[0].Country
	return d, p.endless(ctx, items)
}

// Cancel is Unsupported: the seller takes nothing back. What is given up must not
// renew itself for ever: Cancel is Temporary until the addresses are there and
// that is switched off.
func (p *proxySellerStatic) Cancel(ctx context.Context, ref string) error {
	d, err := p.Read(ctx, ref)
	switch {
	case procurement.ClassOf(err) == procurement.NotFound:
		return nil
	case err != nil:
		return err
	case d.State == procurement.Pending:
		return procurement.Refuse(procurement.Temporary, "its addresses are on their way, and renew themselves until that is switched off")
	}
	return procurement.Refuse(procurement.Unsupported, "an order runs to its end")
}
