package embedded

import (
	"agentproxy/adapters/upstream/country"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// The bounds of the traffic of a dynamic product.
const (
	minBytes = billing.GB / 10
	maxBytes = 1000 * billing.GB
)

// products returns what the provider sells. A product for which the pool has no
// address is not Available.
func products(p pool) []catalog.Product {
	dynamic := func(no, name, about, price string, async bool) catalog.Product {
		return catalog.Product{No: no, Name: name, Description: about, Type: session.Dynamic,
			Price: domain.MustMoney(price), MinQuantity: 1, MaxQuantity: 1,
			MinBytes: minBytes, MaxBytes: maxBytes, Async: async, Available: len(p.dynamic) > 0}
	}
	static := func(no, name, about, month, quarter string, async bool) catalog.Product {
		return catalog.Product{No: no, Name: name, Description: about, Type: session.Static,
			Durations:   []catalog.Duration{{Days: 30, Price: domain.MustMoney(month)}, {Days: 90, Price: domain.MustMoney(quarter)}},
			MinQuantity: 1, MaxQuantity: session.MaxQuantity, Async: async, Available: len(p.static) > 0}
	}
	list := []catalog.Product{
		dynamic("dyn_global_1", "Dynamic Global", "Rotating exits in every country, the lowest price a GB.", "0.25", true),
		dynamic("dyn_fast_1", "Dynamic Fast", "Rotating exits in every country, ready with the answer.", "0.40", false),
		static("sta_isp_1", "Static ISP", "Fixed addresses of your own, ready with the answer.", "1.00", "2.70", false),
		static("sta_city_1", "Static City", "Fixed addresses of your own, placed by country and city.", "1.50", "4.00", true),
	}
	for i := range list {
		list[i].Sources, list[i].Countries = []procurement.Source{{Provider: Name}}, country.Codes
	}
	return list
}

// Codes returns the codes of the products.
func Codes() []string {
	var codes []string
	for _, p := range products(pool{}) {
		codes = append(codes, p.No)
	}
	return codes
}
