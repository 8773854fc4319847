package upstream

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// poolStock is how many exits there are by country code. It names no place more
// exactly.
type poolStock struct {
	Countries map[string]*struct{ Modem, Peer *int } `json:"countries"`
}

// stock reads how many exits of the operator's network each country has.
func (p *poolKeys) stock(ctx context.Context) (map[string]int, error) {
	var answer poolStock
	if err := p.call(ctx, safely, http.MethodGet, "/gateway/pool/availability", nil, &answer); err != nil {
		return nil, err
	}
	if answer.Countries == nil {
		return nil, errPoolKeyShape
	}
	count := map[string]int{}
	for code, n := range answer.Countries {
		if n == nil || n.Modem == nil && n.Peer == nil {
			return nil, errPoolKeyShape
		}
		if n.Modem != nil && p.account.options["network"] != "peer" {
			count[code] += *n.Modem
		}
		if n.Peer != nil && p.account.options["network"] != "mbl" && p.tier != "safe" {
			count[code] += *n.Peer
		}
	}
	return count, nil
}

// Offers lists the countries that have exits at the moment.
func (p *poolKeys) Offers(ctx context.Context) ([]procurement.Offer, error) {
	count, err := p.stock(ctx)
	if err != nil {
		return nil, err
	}
	network := p.account.options["network"]
	var offers []procurement.Offer
	for _, code := range slices.Sorted(maps.Keys(count)) {
		offers = append(offers, procurement.Offer{SKU: network, Type: session.Dynamic, Name: "Pool " + network,
			Location: session.Location{Country: code}, Stock: inStock(count[code]), Count: count[code]})
	}
	return offers, nil
}

// Quote is free: traffic is bought in advance, elsewhere. It tells the stock of
// the country, or of all.
func (p *poolKeys) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if _, err := p.check(in); err != nil {
		return procurement.Quote{}, err
	}
	count, err := p.stock(ctx)
	if err != nil {
		return procurement.Quote{}, err
	}
	n := count[in.Location.Country]
	if in.Location.Country == "" {
		for _, c := range count {
			n += c
		}
	}
	return procurement.Quote{Stock: inStock(n)}, nil
}

func inStock(n int) procurement.Stock {
	if n > 0 {
		return procurement.StockYes
	}
	return procurement.StockNo
}
