package fake

import (
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// Products returns a small catalogue with one product of each kind: dynamic and static,
// delivered at once ("dyn_sync", "sta_sync") or later ("dyn_async", "sta_async"). A GB
// costs 0.50, an IP 1.00 for 30 days and 2.50 for 90.
func Products() []catalog.Product {
	dynamic := catalog.Product{No: "dyn_sync", Name: "Dynamic", Type: session.Dynamic, Price: domain.Dollar / 2,
		Countries: []string{"DE", "FR", "US"}, MinQuantity: 1, MaxQuantity: 1,
		MinBytes: billing.GB / 10, MaxBytes: 1000 * billing.GB, Available: true}
	static := catalog.Product{No: "sta_sync", Name: "Static", Type: session.Static,
		Durations: []catalog.Duration{{Days: 30, Price: domain.Dollar}, {Days: 90, Price: domain.Dollar * 5 / 2}},
		Countries: []string{"DE", "FR", "US"}, Cities: []string{"BER", "NYC", "PAR"},
		MinQuantity: 1, MaxQuantity: 100, Available: true}
	later := func(p catalog.Product, no string) catalog.Product {
		p.No, p.Async = no, true
		return p
	}
	return []catalog.Product{dynamic, later(dynamic, "dyn_async"), static, later(static, "sta_async")}
}
