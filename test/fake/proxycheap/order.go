package proxycheap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

// orderBody is the body of a price and of an order.
type orderBody struct {
	Plan     string `json:"planId"`
	Quantity int    `json:"quantity"`
	Country  string `json:"country"`
	ISP      string `json:"ispId"`
	Period   struct {
		Unit  string `json:"unit"`
		Value int    `json:"value"`
	} `json:"period"`
	AutoExtend *struct {
		On bool `json:"isEnabled"`
	} `json:"autoExtend"`
}

func (s *Seller) getServices(w http.ResponseWriter, _ *http.Request) {
	plans := []any{map[string]any{"id": "basic", "label": "Basic"}, map[string]any{"id": Plan, "label": "Dedicated"}}
	seller.Answer(w, http.StatusOK, map[string]any{"services": []any{
		map[string]any{"id": Service, "label": "Static Residential (ISP)", "plans": plans},
		map[string]any{"id": "rotating-mobile", "label": "Rotating Mobile"},
		map[string]any{"id": "static-datacenter-ipv6", "label": "Static Datacenter (IPv6)"},
	}})
}

func (s *Seller) postOptions(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("service") != Service {
		seller.Answer(w, http.StatusNotFound, map[string]any{"message": "Service not found"})
		return
	}
	seller.Answer(w, http.StatusOK, map[string]any{"serviceId": Service, "countries": []string{"US", "DE"},
		"isps":    map[string]any{"US": []any{map[string]any{"id": "e649eed7-ee2b-11ec-85c2-06902e647790", "label": "AT&T"}}},
		"periods": map[string]any{"months": []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, "days": []int{7}}})
}

// check returns the reason to refuse an order; it is empty for one that can be sold.
func (s *Seller) check(r *http.Request) (in orderBody, cost domain.Money, words string) {
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		return in, 0, "Malformed JSON"
	}
	cost = Unit * domain.Money(in.Quantity) * domain.Money(in.Period.Value)
	switch {
	case r.PathValue("service") != Service:
		words = "Unknown service"
	case in.Plan != "basic" && in.Plan != Plan:
		words = "Unknown plan"
	case in.Quantity < 1 || in.Period.Unit != "months" || in.Period.Value < 1 || in.Period.Value > 12:
		words = "Invalid quantity or period"
	case in.Country != "US" && in.Country != "DE":
		words = "Invalid country"
	}
	return in, cost, words
}

func (s *Seller) postPrice(w http.ResponseWriter, r *http.Request) {
	in, cost, words := s.check(r)
	if words != "" {
		s.refuse422(w, words)
		return
	}
	n := func(m domain.Money) json.Number { return json.Number(m.String()) }
	unit := Unit * domain.Money(in.Period.Value)
	seller.Answer(w, http.StatusOK, map[string]any{"finalPrice": n(cost), "priceNoDiscounts": n(cost), "discount": 0, "unitPrice": n(unit),
		"unitPriceAfterDiscount": n(unit), "additionalAmount": 0, "paymentFee": 0, "subtotal": n(cost),
		"finalPriceInCurrency": n(cost), "currency": "USD", "appliedDiscounts": []any{}})
}

func (s *Seller) execute(w http.ResponseWriter, r *http.Request) {
	in, cost, words := s.check(r)
	switch {
	case words != "":
		s.refuse422(w, words)
	case seller.FaultOf(r.Context()) == seller.OutOfStock || s.stock[in.Country] < in.Quantity:
		s.refuse422(w, "Not enough proxies in stock")
	case seller.FaultOf(r.Context()) == seller.NoFunds || s.balance < cost:
		s.refuse422(w, "Insufficient balance")
	default:
		s.Sold(r)
		s.balance, s.spent = s.balance-cost, s.spent+cost
		s.stock[in.Country] -= in.Quantity
		now := time.Now().UTC().Truncate(time.Second)
		s.made++
		o := &Order{ID: uuid(s.made), Plan: in.Plan, Country: in.Country, ISP: in.ISP, Months: in.Period.Value,
			Renews: in.AutoExtend == nil || in.AutoExtend.On, Total: cost, polls: s.shape.Polls}
		for range in.Quantity {
			s.lastID++
			o.Proxies = append(o.Proxies, Proxy{ID: s.lastID, Status: Pending, Addr: s.address(), CreatedAt: now,
				ExpiresAt: now.AddDate(0, in.Period.Value, 0)})
		}
		s.orders = append(s.orders, o)
		seller.Answer(w, http.StatusOK, map[string]any{"id": o.ID, "periodInMonths": strconv.Itoa(o.Months), "bandwidth": "0",
			"totalPrice": cost.String()})
	}
}

func (s *Seller) getOrder(w http.ResponseWriter, r *http.Request) {
	if o := s.byID(w, r); o != nil {
		seller.Answer(w, http.StatusOK, map[string]any{"id": o.ID, "periodInMoths": strconv.Itoa(o.Months), "bandwidth": "0",
			"totalPrice": o.Total.String()})
	}
}

// getProxies serves the addresses of an order. Its reads move them from status to status.
func (s *Seller) getProxies(w http.ResponseWriter, r *http.Request) {
	o := s.byID(w, r)
	if o == nil {
		return
	}
	next := map[string]string{Pending: Initiating, Initiating: Active}[o.Proxies[0].Status]
	if next != "" {
		if o.polls--; o.polls < 0 {
			o.polls = s.shape.Polls
			s.move(o, next)
		}
	}
	s.list(w, []*Order{o})
}

func (s *Seller) listProxies(w http.ResponseWriter, _ *http.Request) { s.list(w, s.orders) }

func (s *Seller) list(w http.ResponseWriter, orders []*Order) {
	list := []any{}
	for _, o := range orders {
		for _, p := range o.Proxies {
			list = append(list, s.show(o, p))
		}
	}
	if s.shape.Bare {
		seller.Answer(w, http.StatusOK, list)
		return
	}
	seller.Answer(w, http.StatusOK, map[string]any{"proxies": list})
}

// show returns an address as the API does. It has a host and ports once it is active.
func (s *Seller) show(o *Order, p Proxy) map[string]any {
	connection := map[string]any{"publicIp": nil, "connectIp": nil, "ipVersion": "IPv4", "httpPort": nil, "httpsPort": nil, "socks5Port": nil}
	auth := map[string]any{"whitelistedIps": []any{}, "username": nil, "password": nil}
	if p.Status == Active {
		connection["publicIp"], connection["connectIp"] = p.Addr.String(), p.Addr.String()
		if s.http != 0 {
			connection["httpPort"] = s.http
		}
		if s.socks != 0 {
			connection["socks5Port"] = s.socks
		}
		auth["username"], auth["password"] = fmt.Sprintf("pcu%d", p.ID), fmt.Sprintf("pcsecret%d", p.ID)
	}
	metadata := map[string]any{"ispName": "AT&T", "orderId": o.ID}
	switch {
	case s.shape.Anonymous:
		delete(metadata, "orderId")
	case s.shape.Numbers:
		metadata["orderId"] = 662154
	}
	return map[string]any{"id": p.ID, "status": p.Status, "networkType": "RESIDENTIAL_STATIC", "countryCode": o.Country,
		"proxyType": "HTTP", "authentication": auth, "connection": connection, "metadata": metadata,
		"bandwidth": map[string]any{"total": nil, "used": nil}, "createdAt": p.CreatedAt.Format(time.RFC3339),
		"expiresAt": p.ExpiresAt.Format(time.RFC3339), "autoExtendEnabled": o.Renews}
}

func (s *Seller) extend(w http.ResponseWriter, r *http.Request) {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	var in struct {
		Months int `json:"periodInMonths"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	for _, o := range s.orders {
		i := slices.IndexFunc(o.Proxies, func(p Proxy) bool { return p.ID == id })
		if i < 0 {
			continue
		}
		p := &o.Proxies[i]
		cost := Unit * domain.Money(in.Months)
		switch {
		case in.Months < 1 || in.Months > 12 || p.Status != Active || s.refuse[id]:
			s.refuse422(w, "The proxy cannot be extended")
		case seller.FaultOf(r.Context()) == seller.NoFunds || s.balance < cost:
			s.refuse422(w, "Insufficient balance")
		default:
			s.Sold(r)
			s.balance, s.spent = s.balance-cost, s.spent+cost
			p.Extended++
			p.ExpiresAt = p.ExpiresAt.AddDate(0, in.Months, 0)
			seller.Answer(w, http.StatusOK, map[string]any{})
		}
		return
	}
	seller.Answer(w, http.StatusNotFound, map[string]any{"message": "Proxy not found"})
}
