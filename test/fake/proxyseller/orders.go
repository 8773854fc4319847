package proxyseller

import (
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

// order is an order of addresses. A renewal gives it new ids; its number stays that of the
// first order.
type order struct {
	id, number, part string
	section, country string
	auth             string // the id of the credential; empty if proxy/list has it
	login, password  string
	at               time.Time
	polls            int // until it is delivered
	proxies          []*proxy
	renewal          *renewal
	ended            bool // ends soon: listed only with ends=Y
	total            domain.Money
	status           string  // in order/list
	renewals         []order // paid ones
}

// proxy is an address.
type proxy struct {
	id         string
	addr       netip.Addr
	host       string
	http       uint16
	socks      uint16
	start, end time.Time
	auto       bool
	uptime     bool

	again       time.Time // when a replacement may be asked for
	replacement *replacement
}

// sections are the sections of addresses that are sold.
var sections = []string{"isp", "ipv4"}

// countries are the names and ids of the reference list.
var countries = map[string]string{"USA": "United States", "DEU": "Germany", "JPN": "Japan", "FRA": "France"}

// CountryID returns the id of a country by its alpha-3 code.
func CountryID(alpha3 string) string { return fmt.Sprintf("68b1f0c4e13a4c0f1a%06x", alpha3) }

func (s *Server) reference(section string) string {
	if !slices.Contains(sections, section) {
		return unknownError()
	}
	list := []any{}
	for code, name := range countries {
		if s.stock[code] > 0 {
			c := map[string]any{"id": code, "name": name}
			if s.reference1 {
				c = map[string]any{"id": len(list) + 1, "name": "Proxy of " + name, "alpha3": code}
			}
			list = append(list, c)
		}
	}
	return success(map[string]any{"items": map[string]any{"country": list,
		"period": []any{map[string]any{"id": "1m", "name": "1 month"}, map[string]any{"id": "3m", "name": "3 months"}}}})
}

// orderBody is the request of order/calc and order/make.
type orderBody struct {
	SectionCode      string `json:"sectionCode"`
	CountryID        string `json:"countryId"`
	PeriodID         string `json:"periodId"`
	Quantity         int    `json:"quantity"`
	Authorization    string `json:"authorization"`
	Coupon           string `json:"coupon"`
	CustomTargetName string `json:"customTargetName"`
	PaymentCode      string `json:"paymentCode"`
	GenerateAuth     string `json:"generateAuth"`
}

// parseOrder reads an order. It returns the alpha-3 code of its country, or the body of a
// refusal.
func (s *Server) parseOrder(r *http.Request) (b orderBody, country, refused string) {
	if !read(r, &b) {
		return b, "", unknownError()
	}
	for code := range s.stock {
		if strings.EqualFold(b.CountryID, code) || b.CountryID == CountryID(code) {
			country = code
		}
	}
	switch {
	case !slices.Contains(sections, b.SectionCode):
		return b, "", failure(fault{"Incorrect section", 0}) // invented
	case strings.TrimSpace(b.CustomTargetName) == "":
		return b, "", failure(fault{"Incorrect goal", 14})
	case country == "":
		return b, "", failure(fault{"Country not exists", 0})
	case months(b.PeriodID) == 0:
		return b, "", failure(fault{"Set existed [periodId] from reference", 0})
	case b.PaymentCode != "balance":
		return b, "", failure(fault{"paymentId not exists", 0})
	case b.Quantity < 1:
		return b, "", unknownError()
	case s.stock[country] < b.Quantity || seller.FaultOf(r.Context()) == seller.OutOfStock:
		return b, "", failure(fault{"Not enough proxies in stock", 0}) // invented
	}
	return b, country, ""
}

func months(period string) int {
	return map[string]int{"1m": 1, "3m": 3}[strings.ToLower(period)]
}

// price returns the cost of n addresses for a period.
func price(period string, n int) domain.Money {
	each := 2 * domain.Dollar
	if months(period) == 3 {
		each = 5 * domain.Dollar
	}
	return each * domain.Money(n)
}

// bill returns the answer of a calculation. It returns false with a warning in it if the
// balance is too low.
func (s *Server) bill(r *http.Request, total domain.Money, n int) (data map[string]any, enough bool) {
	has := s.balance
	if seller.FaultOf(r.Context()) == seller.NoFunds {
		has = 0
	}
	data = map[string]any{"warning": "", "balance": number(has), "total": number(total), "quantity": n,
		"currency": "USD", "discount": 0, "price": number(total / domain.Money(n))}
	if has < total {
		data["warning"] = fmt.Sprintf("Insufficient funds. Total $%s. Not enough $%s", has, total-has)
	}
	return data, has >= total
}

func (s *Server) calculate(r *http.Request) string {
	b, _, refused := s.parseOrder(r)
	if refused != "" {
		return refused
	}
	data, enough := s.bill(r, price(b.PeriodID, b.Quantity), b.Quantity)
	if !enough {
		return warning(data)
	}
	return success(data)
}

func (s *Server) order(r *http.Request) string {
	b, country, refused := s.parseOrder(r)
	if refused != "" {
		return refused
	}
	total := price(b.PeriodID, b.Quantity)
	_, enough := s.bill(r, total, b.Quantity)
	if !enough {
		return failure(fault{"Insufficient funds on balance", 16})
	}
	s.Sold(r)
	now := time.Now().UTC()
	n := s.next()
	o := &order{id: objectID(now, n), number: fmt.Sprintf("%d_%08d", 1000000+n, n), total: total,
		status: "PAYED", section: b.SectionCode, country: country,
		login: fmt.Sprintf("user%d", n), password: fmt.Sprintf("pass%d", n), at: now, polls: s.delay}
	o.part = o.number
	if b.GenerateAuth == "Y" {
		o.auth = objectID(now, s.next())
	}
	for range b.Quantity {
		p := &proxy{id: objectID(now, s.next()), addr: s.address(), host: s.host, http: s.http, socks: s.socks,
			start: now, end: now.AddDate(0, months(b.PeriodID), 0), auto: true}
		if p.host == "" {
			p.host = p.addr.String()
		}
		o.proxies = append(o.proxies, p)
	}
	s.orders = append(s.orders, o)
	s.stock[country] -= b.Quantity
	s.charge(total)
	s.made++
	return success(map[string]any{"orderId": o.id, "total": number(total), "balance": number(s.balance),
		"listBaseOrderNumbers": []string{o.number}})
}

func (s *Server) charge(m domain.Money) { s.balance -= m; s.spent += m }

// list serves proxy/list. Every call counts as a poll for deliveries and renewals.
func (s *Server) list(r *http.Request, section string) string {
	if !slices.Contains(sections, section) {
		return unknownError()
	}
	q := r.URL.Query()
	items := []any{}
	for i, o := range s.orders {
		if o.section != section || q.Get("orderId") != "" && q.Get("orderId") != o.id && q.Get("orderId") != o.number ||
			q.Get("country") != "" && q.Get("country") != o.country ||
			q.Get("latest") == "Y" && q.Get("orderId") == "" && i != len(s.orders)-1 {
			continue
		}
		if o.ended != (q.Get("ends") == "Y") {
			continue
		}
		if o.polls > 0 {
			o.polls--
			continue
		}
		s.settle(o)
		s.pollReplacements(o)
		for _, p := range o.proxies {
			if p.end.After(time.Now()) {
				items = append(items, s.item(o, p))
			}
		}
	}
	return success(map[string]any{"items": items})
}

func (s *Server) item(o *order, p *proxy) map[string]any {
	login, password := o.login, o.password
	if o.auth != "" {
		login, password = "", "" // only auth/list has them
	}
	auto, status := "N", "ACTIVE"
	if o.ended {
		status = "ENDED"
	}
	if p.auto {
		auto = "Y"
	}
	return map[string]any{"id": p.id, "order_id": o.id, "order_number": o.part, "base_order_number": o.number,
		"basket_id": o.id, "ip": p.host, "ip_only": p.addr.String(), "protocol": "HTTP", "port_socks": p.socks,
		"port_http": p.http, "login": login, "password": password, "auth_ip": "", "rotation": "", "link_reboot": "#",
		"country": countries[o.country], "country_alpha3": o.country, "status": "Active", "status_type": status,
		"can_prolong": true, "date_start": day(p.start), "date_end": day(p.end), "comment": "", "auto_renew": auto,
		"auto_renew_period": "", "is_uptime": p.uptime}
}

func (s *Server) auths() string {
	list := []any{}
	for _, o := range s.orders {
		if o.auth != "" {
			list = append(list, map[string]any{"id": o.auth, "active": true, "login": o.login, "password": o.password,
				"orderNumber": o.number})
		}
	}
	return success(list)
}
