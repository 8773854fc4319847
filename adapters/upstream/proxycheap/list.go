package proxycheap

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"agentproxy/adapters/upstream/rest"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// List returns the orders of all addresses of the account that have not ended. An address
// that names no order is listed by itself. That the list has no pages is what the
// documentation shows.
func (p *Provider) List(ctx context.Context) ([]procurement.Delivery, error) {
	var all addressList
	if err := p.api.Call(ctx, rest.Safely, http.MethodGet, "/proxies", nil, &all); err != nil {
		return nil, err
	}
	orders := map[string][]address{}
	var list []procurement.Delivery
	for _, x := range all {
		if x.Status == "EXPIRED" || x.Status == "CANCELED" {
			continue
		}
		if ref := string(x.Metadata.Order); ref != "" {
			orders[ref] = append(orders[ref], x)
			continue
		}
		d := procurement.Delivery{Ref: "address-" + cmp.Or(string(x.ID), x.Connection.Public), State: procurement.Live,
			Quantity: 1, Location: session.Location{Country: x.Country}}
		if addr, err := netip.ParseAddr(x.Connection.Public); err == nil {
			d.IPs = []procurement.IP{{Addr: addr}}
		}
		d.CreatedAt, _ = parseTime(x.Created)
		d.ExpiresAt, _ = parseTime(x.Expires)
		list = append(list, d)
	}
	for _, ref := range slices.Sorted(maps.Keys(orders)) {
		d, err := deliveryOf(ref, orders[ref])
		if err != nil { // it exists
			d = procurement.Delivery{Ref: ref, State: procurement.Pending, CreatedAt: d.CreatedAt, Location: d.Location}
		}
		d.Quantity = len(orders[ref])
		list = append(list, d)
	}
	slices.SortStableFunc(list, func(a, b procurement.Delivery) int { return strings.Compare(a.Ref, b.Ref) })
	return list, nil
}
