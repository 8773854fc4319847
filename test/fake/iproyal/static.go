package iproyal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

type plan struct {
	id    int64
	days  int
	price domain.Money
}

var plans = []plan{{22, 30, domain.MustMoney("2.40")}, {23, 60, domain.MustMoney("4.56")}, {24, 90, domain.MustMoney("6.48")}}

type place struct {
	id       int64
	name     string
	children []place
}

var places = []place{
	{UnitedStates, "United States", []place{{NewYork, "New York (New York)", nil}, {LosAngeles, "Los Angeles (California)", nil}}},
	{Germany, "Germany", nil},
	{UnitedKingdom, "United Kingdom", []place{{London, "London (England)", nil}}},
}

func (s *Seller) getBalance(w http.ResponseWriter, _ *http.Request) {
	if s.shape.TextBalance {
		seller.Answer(w, http.StatusOK, s.balance.String())
		return
	}
	seller.Answer(w, http.StatusOK, json.Number(s.balance.String()))
}

func (s *Seller) getProducts(w http.ResponseWriter, _ *http.Request) {
	var list []any
	for id, name := range map[string]string{SKU: "ISP Dedicated", QuestionSKU: "Static Residential"} {
		n, _ := strconv.ParseInt(id, 10, 64)
		var sold []any
		for _, p := range plans {
			sold = append(sold, map[string]any{"id": p.id, "name": fmt.Sprintf("%d Days", p.days),
				"price": json.Number(p.price.String()), "min_quantity": 1, "max_quantity": 100})
		}
		questions := []any{map[string]any{"id": 7, "text": "Extra requirements (if you have any):", "is_required": nil, "type": "select"}}
		if id == QuestionSKU {
			questions = append(questions, map[string]any{"id": 12, "text": "What is it for?", "is_required": true, "type": "select"})
		}
		list = append(list, map[string]any{"id": n, "name": name, "plans": sold, "locations": s.places(places),
			"questions": questions, "quantity_discounts": []any{}})
	}
	seller.Answer(w, http.StatusOK, map[string]any{"data": list})
}

func (s *Seller) places(list []place) []any {
	out := []any{}
	for _, p := range list {
		var count any = s.stock[p.id]
		if s.shape.NullCounts {
			count = nil
		}
		out = append(out, map[string]any{"id": p.id, "name": p.name, "out_of_stock": s.stock[p.id] == 0,
			"available_proxies_count": count, "child_locations": s.places(p.children)})
	}
	return out
}

// named returns the name of a location, with the country's for a city.
func named(id int64) (string, bool) {
	for _, c := range places {
		if c.id == id {
			return c.name, true
		}
		if slices.ContainsFunc(c.children, func(x place) bool { return x.id == id }) {
			return c.name, true
		}
	}
	return "", false
}

func planByID(id int64) (plan, bool) {
	i := slices.IndexFunc(plans, func(p plan) bool { return p.id == id })
	if i < 0 {
		return plan{}, false
	}
	return plans[i], true
}

func (s *Seller) getPrice(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	planID, _ := strconv.ParseInt(q.Get("product_plan_id"), 10, 64)
	locationID, _ := strconv.ParseInt(q.Get("product_location_id"), 10, 64)
	quantity, _ := strconv.Atoi(q.Get("quantity"))
	p, ok := planByID(planID)
	if _, known := named(locationID); !ok || !known || quantity < 1 || q.Get("product_id") == "" {
		s.refuse(w, "product_plan_id", "The selected product plan id is invalid.")
		return
	}
	total := json.Number((p.price * domain.Money(quantity)).String())
	s.one(w, map[string]any{"price": total, "price_with_vat": total, "vat": nil, "pre_discount_price": total,
		"price_per_item": json.Number(p.price.String()), "plan_discount_percent": 0})
}

// answers are the answers to the questions of a product. Clients that work send none, or
// an empty list; that an empty object is refused is invented.
type answers map[string]any

func (a *answers) UnmarshalJSON(b []byte) error {
	switch text := string(bytes.TrimSpace(b)); text {
	case "[]", "null":
		return nil
	case "{}":
		return errors.New("an object without answers")
	}
	var given map[string]any
	err := json.Unmarshal(b, &given)
	*a = given
	return err
}

func (s *Seller) postOrder(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Product    int64   `json:"product_id"`
		Plan       int64   `json:"product_plan_id"`
		Location   int64   `json:"product_location_id"`
		Quantity   int     `json:"quantity"`
		AutoExtend *bool   `json:"auto_extend"`
		Answers    answers `json:"product_question_answers"`
		Card       any     `json:"card_id"`
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		seller.Answer(w, http.StatusBadRequest, map[string]any{"message": "Malformed JSON."})
		return
	}
	p, ok := planByID(in.Plan)
	_, known := named(in.Location)
	product := strconv.FormatInt(in.Product, 10)
	cost := p.price * domain.Money(in.Quantity)
	switch {
	case product != SKU && product != QuestionSKU:
		s.refuse(w, "product_id", "The selected product id is invalid.")
	case !ok:
		s.refuse(w, "product_plan_id", "The selected product plan id is invalid.")
	case !known:
		s.refuse(w, "product_location_id", "The selected product location id is invalid.")
	case in.Quantity < 1 || in.Quantity > 100:
		s.refuse(w, "quantity", "The quantity must be between 1 and 100.")
	case product == QuestionSKU && in.Answers["12"] == nil:
		s.refuse(w, "product_question_answers", "The question is required.")
	case seller.FaultOf(r.Context()) == seller.OutOfStock || s.stock[in.Location] < in.Quantity:
		s.refuse(w, "quantity", "The selected location is out of stock.")
	case seller.FaultOf(r.Context()) == seller.NoFunds || s.balance < cost:
		s.refuse(w, "balance", "Insufficient balance.")
	default:
		s.Sold(r)
		s.balance, s.spent = s.balance-cost, s.spent+cost
		s.stock[in.Location] -= in.Quantity
		s.next++
		o := &order{days: p.days, polls: s.shape.Polls, Order: Order{ID: s.next, Status: "in-progress", Quantity: in.Quantity,
			LocationID: in.Location, PlanID: in.Plan, AutoExtend: in.AutoExtend == nil || *in.AutoExtend,
			ExpiresAt: time.Now().UTC().Truncate(time.Second).AddDate(0, 0, p.days)}}
		for range in.Quantity {
			o.IPs = append(o.IPs, s.address())
		}
		s.orders[o.ID] = o
		s.one(w, s.show(o))
	}
}

func (s *Seller) address() netip.Addr {
	if len(s.addrs) > 0 {
		a := s.addrs[0]
		s.addrs = append(s.addrs[1:], a)
		return a
	}
	s.nextAddr = s.nextAddr.Next()
	return s.nextAddr
}

// show returns an order as the API does. It has no proxies until it is confirmed.
func (s *Seller) show(o *order) map[string]any {
	p, _ := planByID(o.PlanID)
	name, _ := named(o.LocationID)
	proxies := []any{}
	if o.Status == "confirmed" {
		for i, ip := range o.IPs {
			proxies = append(proxies, map[string]any{"ip": ip.String(), "username": fmt.Sprintf("u%d", o.ID),
				"password": fmt.Sprintf("secret%dx%d", o.ID, i)})
		}
	}
	ports := map[string]any{}
	if s.http != 0 {
		ports["http|https"] = s.http
	}
	if s.socks != 0 {
		ports["socks5"] = s.socks
	}
	return map[string]any{"id": o.ID, "note": nil, "product_name": "ISP Dedicated", "plan_name": fmt.Sprintf("%d Days", p.days),
		"expire_date": o.ExpiresAt.Format("2006-01-02 15:04:05"), "status": o.Status, "location": name, "locations": name,
		"quantity": o.Quantity, "questions_answers": []any{}, "proxy_data": map[string]any{"ports": ports, "proxies": proxies},
		"auto_extend_settings": nil, "extended_history": make([]any, o.Extended), "is_test": false}
}

func (s *Seller) listOrders(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("page") == "" {
		s.refuse(w, "page", "The page field is required.")
		return
	}
	if q.Get("product_id") == "" {
		s.refuse(w, "product_id", "The product id field is required.")
		return
	}
	list := []map[string]any{}
	for _, o := range s.sorted() {
		if at := q.Get("location_id"); at == "" || at == strconv.FormatInt(o.LocationID, 10) {
			list = append(list, s.show(o))
		}
	}
	if !s.shape.OldestFirst {
		slices.Reverse(list)
	}
	seller.Answer(w, http.StatusOK, pageOf(r, list, 10))
}

// byID returns the order of a request, or answers 404.
func (s *Seller) byID(w http.ResponseWriter, r *http.Request) *order {
	id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	o := s.orders[id]
	if o == nil {
		seller.Answer(w, http.StatusNotFound, map[string]any{"message": "Order not found."})
	}
	return o
}

func (s *Seller) getOrder(w http.ResponseWriter, r *http.Request) {
	o := s.byID(w, r)
	if o == nil {
		return
	}
	if o.Status == "in-progress" && o.polls >= 0 {
		if o.polls--; o.polls < 0 {
			o.Status = "confirmed"
		}
	}
	s.one(w, s.show(o))
}

func (s *Seller) extendOrder(w http.ResponseWriter, r *http.Request) {
	o := s.byID(w, r)
	if o == nil {
		return
	}
	var in struct {
		Plan int64 `json:"product_plan_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in)
	p, ok := planByID(in.Plan)
	cost := p.price * domain.Money(o.Quantity)
	switch {
	case !ok:
		s.refuse(w, "product_plan_id", "The selected product plan id is invalid.")
	case o.Status != "confirmed":
		s.refuse(w, "order", "The order cannot be extended.")
	case seller.FaultOf(r.Context()) == seller.NoFunds || s.balance < cost:
		s.refuse(w, "balance", "Insufficient balance.")
	default:
		s.Sold(r)
		s.balance, s.spent = s.balance-cost, s.spent+cost
		o.Extended++
		o.ExpiresAt = o.ExpiresAt.AddDate(0, 0, p.days)
		s.one(w, s.show(o))
	}
}
