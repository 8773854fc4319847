package embedded

import (
	"maps"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// The bounds of the traffic of a dynamic product.
const (
	minBytes = billing.GB / 10
	maxBytes = 1000 * billing.GB
)

// fairUse is how many bytes a fixed address may carry for each 30 days. Without a limit one session could
// fill the line of the host.
const fairUse = 100 * billing.GB

// products returns what the provider sells: everywhere, or in the places that the exits declare. A
// product for which the pool has no address is not Available; an empty pool sells none.
func products(p pool, everywhere bool) []catalog.Product {
	if len(p.dynamic)+len(p.static) == 0 {
		return nil
	}
	return list(p, everywhere)
}

// list returns every product, in the places of a pool. A declared address is scarce, and is one customer's for
// a month: trial credit buys none, or free accounts would hold them all.
func list(p pool, everywhere bool) []catalog.Product {
	dynamic := func(no, name, about, price string, async bool) catalog.Product {
		return catalog.Product{No: no, Name: name, Description: about, Type: session.Dynamic,
			Price: domain.MustMoney(price), MinQuantity: 1, MaxQuantity: 1,
			MinBytes: minBytes, MaxBytes: maxBytes, Async: async, Available: len(p.dynamic) > 0}
	}
	static := func(no, name, about, month, quarter string, async bool) catalog.Product {
		return catalog.Product{No: no, Name: name, Description: about, Type: session.Static,
			Durations: []catalog.Duration{{Days: 30, Price: domain.MustMoney(month)},
				{Days: 90, Price: domain.MustMoney(quarter)}},
			MinQuantity: 1, MaxQuantity: session.MaxQuantity, FairUse: fairUse, Async: async, Available: len(p.static) > 0}
	}
	all := []catalog.Product{
		dynamic("dyn_global_1", "Dynamic Global", "Rotating exits, the lowest price a GB.", "0.25", true),
		dynamic("dyn_fast_1", "Dynamic Fast", "Rotating exits, ready with the answer.", "0.40", false),
		static("sta_isp_1", "Static ISP", "Fixed addresses of your own, ready with the answer.", "1.00", "2.70", false),
		static("sta_city_1", "Static City", "Fixed addresses of your own, placed by country and city.", "1.50", "4.00", true),
	}
	for i := range all {
		all[i].OwnMoneyOnly = !everywhere && all[i].Type == session.Static
		switch {
		case everywhere:
			all[i].Sources, all[i].Countries = []procurement.Source{{Provider: Name}}, country.Codes
		case all[i].Type == session.Dynamic:
			place(&all[i], p.dynamic)
		default:
			place(&all[i], p.static)
		}
	}
	return all
}

// place sells a product where exits are. It has a source for each country, so that a city is sold in
// its own country alone; without a declared place it has one source without a country.
func place(p *catalog.Product, exits []Exit) {
	cities := map[string][]string{}
	for _, exit := range exits {
		if c := exit.Place; c.Country != "" {
			cities[c.Country] = append(cities[c.Country], c.City)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(cities)) {
		in := distinct(cities[code])
		p.Countries, p.Cities = append(p.Countries, code), append(p.Cities, in...)
		p.Sources = append(p.Sources, procurement.Source{Provider: Name, Countries: []string{code}, Cities: in})
	}
	if p.Cities = distinct(p.Cities); len(p.Countries) == 0 {
		p.Sources = []procurement.Source{{Provider: Name, Countries: []string{}, Cities: []string{}}}
	}
}

// distinct returns the texts sorted, each once, without the empty one. It is never nil.
func distinct(texts []string) []string {
	texts = slices.Compact(slices.Sorted(slices.Values(texts)))
	return append([]string{}, slices.DeleteFunc(texts, func(text string) bool { return text == "" })...)
}

// Codes returns the codes of the products.
func Codes() []string {
	var codes []string
	for _, p := range list(pool{}, true) {
		codes = append(codes, p.No)
	}
	return codes
}
