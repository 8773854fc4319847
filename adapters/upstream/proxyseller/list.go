package upstream

import (
	"cmp"
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/biter777/countries"

	"agentproxy/domain/procurement"
)

// proxySellerItem is one address of proxy/list. Every renewal gives it another id
// and order_id; the base number and the address stay.
type proxySellerItem struct {
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
}

// line is the number that an order keeps through its renewals. That an order
// without a base number keeps its own is unverified.
func (i proxySellerItem) line() string { return cmp.Or(i.BaseNumber, i.Number) }

// proxySellerAuth is one entry of auth/list. Its id begins with the seconds of its
// making, as ids of MongoDB do.
type proxySellerAuth struct {
	ID       string `json:"id"`
	Active   bool   `json:"active"`
	Login    string `json:"login"`
	Password string `json:"password"`
	Number   string `json:"orderNumber"`
}

// at is when the credential was made; false: the id does not tell.
func (a proxySellerAuth) at() (time.Time, bool) {
	if len(a.ID) != 24 {
		return time.Time{}, false
	}
	s, err := strconv.ParseInt(a.ID[:8], 16, 64)
	return time.Unix(s, 0).UTC(), err == nil
}

// proxySellerOnItsWay is how long an order may be without addresses. The seller
// says that they come within a minute; a stock-out can take longer.
const proxySellerOnItsWay = time.Hour

// waiting reports whether the credential belongs to an order that was just made.
func (p *proxySellerStatic) waiting(a proxySellerAuth) bool {
	at, ok := a.at()
	return ok && a.Active && p.now().Sub(at) < proxySellerOnItsWay
}

// list is proxy/list. It is not asked for pages: how long a page may be is not
// documented, and a short one would hide orders.
func (p *proxySellerStatic) list(ctx context.Context, query string) ([]proxySellerItem, error) {
	var data struct{ Items *[]proxySellerItem }
	if err := p.get(ctx, "/proxy/list/"+p.section+query, &data); err != nil {
		return nil, err
	}
	if data.Items == nil {
		return nil, proxySellerOdd(procurement.Temporary)
	}
	return *data.Items, nil
}

// items lists the addresses of one line, in their order; none is no error. Those
// that are about to end are listed only when they are asked for.
func (p *proxySellerStatic) items(ctx context.Context, line string) ([]proxySellerItem, error) {
	if line == "" {
		return nil, nil
	}
	for _, ends := range []string{"", "&ends=Y"} {
		items, err := p.list(ctx, "?orderId="+url.QueryEscape(line)+ends)
		if err != nil {
			return nil, err
		}
		// Whatever the seller makes of the filter, another order is not this one.
		items = slices.DeleteFunc(items, func(i proxySellerItem) bool { return i.line() != line })
		if len(items) > 0 {
			slices.SortStableFunc(items, func(a, b proxySellerItem) int { return cmp.Compare(a.Addr, b.Addr) })
			return items, nil
		}
	}
	return nil, nil
}

// auths lists the credentials of all orders, the oldest first.
func (p *proxySellerStatic) auths(ctx context.Context) ([]proxySellerAuth, error) {
	var data *[]proxySellerAuth
	if err := p.get(ctx, "/auth/list", &data); err != nil {
		return nil, err
	}
	if data == nil {
		return nil, proxySellerOdd(procurement.Temporary)
	}
	slices.SortStableFunc(*data, func(a, b proxySellerAuth) int { return cmp.Compare(a.ID, b.ID) })
	return *data, nil
}

// ip is an address as the core knows it, with the credential of its order: one
// that was made with the order is told by auth/list alone.
func (i proxySellerItem) ip(auths []proxySellerAuth) (procurement.IP, bool) {
	addr, err := netip.ParseAddr(i.Addr)
	end, late := proxySellerDay(i.End)
	ip := procurement.IP{ID: i.ID, Addr: addr, Host: i.Host, HTTPPort: i.HTTP, SOCKSPort: i.SOCKS, User: i.Login, Password: i.Password,
		Country: proxySellerAlpha2(i.Country), ExpiresAt: end}
	for _, a := range auths {
		if a.Active && a.Login != "" && a.Password != "" && (a.Number == i.line() || a.Number == i.Number) {
			ip.User, ip.Password = a.Login, a.Password
			break
		}
	}
	known := i.Status == "ACTIVE" || i.Status == "ENDED" // ended ones still work until their end
	return ip, known && err == nil && late == nil && i.ID != "" && i.Host != "" && i.HTTP|i.SOCKS != 0 && ip.User != "" && ip.Password != ""
}

// proxySellerAlpha2 is a country's short code, empty for one that is not known.
func proxySellerAlpha2(alpha3 string) string {
	code := countries.ByName(strings.ToUpper(alpha3)).Alpha2()
	if _, ok := slices.BinarySearch(Countries, code); !ok || len(alpha3) != 3 {
		return ""
	}
	return code
}

// proxySellerAlpha3 is a country's long code, empty for one that is not assigned.
func proxySellerAlpha3(code string) string {
	if _, ok := slices.BinarySearch(Countries, code); !ok {
		return ""
	}
	return countries.ByName(code).Alpha3()
}
