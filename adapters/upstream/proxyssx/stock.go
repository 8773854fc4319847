package proxyssx

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// availability is the answer with the number of exits by country code.
type availability struct {
	Countries map[string]*struct{ Modem, Peer *int } `json:"countries"`
}

// stock returns the number of exits of the configured network by country.
func (p *Provider) stock(ctx context.Context) (map[string]int, error) {
	var answer availability
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/gateway/pool/availability", nil, &answer); err != nil {
		return nil, err
	}
	if answer.Countries == nil {
		return nil, errShape
	}
	count := map[string]int{}
	for code, n := range answer.Countries {
		if n == nil || n.Modem == nil && n.Peer == nil {
			return nil, errShape
		}
		if n.Modem != nil && p.account.Options["network"] != "peer" {
			count[code] += *n.Modem
		}
		if n.Peer != nil && p.account.Options["network"] != "mbl" && p.tier != "safe" {
			count[code] += *n.Peer
		}
	}
	return count, nil
}

// Offers returns the countries with their numbers of exits.
func (p *Provider) Offers(ctx context.Context) ([]procurement.Offer, error) {
	count, err := p.stock(ctx)
	if err != nil {
		return nil, err
	}
	network := p.account.Options["network"]
	var offers []procurement.Offer
	for _, code := range slices.Sorted(maps.Keys(count)) {
		offers = append(offers, procurement.Offer{SKU: network, Type: session.Dynamic, Name: "Pool " + network,
			Location: session.Location{Country: code}, Stock: inStock(count[code]), Count: count[code]})
	}
	return offers, nil
}

// Quote returns a cost of 0, because traffic is bought in advance, and the stock of the
// country, or of all countries.
func (p *Provider) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
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
