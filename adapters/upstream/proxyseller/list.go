package proxyseller

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"slices"

	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
)

// address is an entry of proxy/list. Every renewal changes its id and order_id; the
// base number and the address stay.
type address struct {
	ID         string `json:"id"`
	Number     string `json:"order_number"`
	BaseNumber string `json:"base_order_number"`
	Host       string `json:"ip"`
	Addr       string `json:"ip_only"`
	HTTP       uint16 `json:"port_http"`
	SOCKS      uint16 `json:"port_socks"`
	Login      string `json:"login"`
	Password   string `json:"password"`
	Country    string `json:"country_alpha3"`
	Status     string `json:"status_type"`
	CanProlong *bool  `json:"can_prolong"`
	End        string `json:"date_end"`
	AutoRenew  string `json:"auto_renew"`
	Uptime     bool   `json:"is_uptime"` // sold as always reachable
}

// order returns the number that an order keeps through its renewals. That an order
// without a base number keeps its own is unverified.
func (a address) order() string { return cmp.Or(a.BaseNumber, a.Number) }

// credential is an entry of auth/list.
type credential struct {
	ID       string `json:"id"`
	Active   bool   `json:"active"`
	Login    string `json:"login"`
	Password string `json:"password"`
	Number   string `json:"orderNumber"`
}

// list returns all of proxy/list. It does not ask for pages: without the parameter page
// the whole list comes, and a page that is shorter than expected would hide orders.
func (p *addressProvider) list(ctx context.Context, query string) ([]address, error) {
	var data struct{ Items *[]address }
	if err := p.get(ctx, "/proxy/list/"+p.section+query, &data); err != nil {
		return nil, err
	}
	if data.Items == nil {
		return nil, unexpected(procurement.Temporary)
	}
	return *data.Items, nil
}

// items returns the addresses of an order, sorted. It returns none for an unknown one.
// The seller lists addresses that end soon only on request.
func (p *addressProvider) items(ctx context.Context, order string) ([]address, error) {
	if order == "" {
		return nil, nil
	}
	for _, ends := range []string{"", "&ends=Y"} {
		items, err := p.list(ctx, "?orderId="+url.QueryEscape(order)+ends)
		if err != nil {
			return nil, err
		}
		// How the seller applies the filter is not documented.
		items = slices.DeleteFunc(items, func(i address) bool { return i.order() != order })
		if len(items) > 0 {
			slices.SortStableFunc(items, func(a, b address) int { return cmp.Compare(a.Addr, b.Addr) })
			return items, nil
		}
	}
	return nil, nil
}

// credentials returns the credentials of all orders, the oldest first.
func (p *addressProvider) credentials(ctx context.Context) ([]credential, error) {
	var data *[]credential
	if err := p.get(ctx, "/auth/list", &data); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, unexpected(procurement.Temporary)
	}
	slices.SortStableFunc(*data, func(a, b credential) int { return cmp.Compare(a.ID, b.ID) })
	return *data, nil
}

// ip converts an address, with the credential of its order: auth/list alone has one
// that was created with the order. It returns false if a field is missing or unknown.
func (a address) ip(credentials []credential) (procurement.IP, bool) {
	addr, err := netip.ParseAddr(a.Addr)
	end, late := parseDay(a.End)
	ip := procurement.IP{ID: a.ID, Addr: addr, Host: a.Host, HTTPPort: a.HTTP, SOCKSPort: a.SOCKS, User: a.Login,
		Password: a.Password, Country: country.Alpha2(a.Country), ExpiresAt: end}
	for _, c := range credentials {
		if c.Active && c.Login != "" && c.Password != "" && (c.Number == a.order() || c.Number == a.Number) {
			ip.User, ip.Password = c.Login, c.Password
			break
		}
	}
	known := a.Status == "ACTIVE" || a.Status == "ENDED" // ended ones still work until their end
	return ip, known && err == nil && late == nil && a.ID != "" && a.Host != "" && a.HTTP|a.SOCKS != 0 && ip.User != "" &&
		ip.Password != ""
}
