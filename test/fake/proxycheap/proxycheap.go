// Package proxycheap is a fake of the seller Proxy-Cheap, written from its public
// documentation (https://docs.proxy-cheap.com). It counts its sales and charges for them.
package proxycheap

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

// The credentials of the account, and the secret of its webhook.
const (
	Key            = "api-key-of-the-test"
	Secret         = "api-secret-of-the-test"
	CallbackSecret = "webhook-secret-of-the-test"
)

// Service and Plan are sold in the United States and Germany.
const (
	Service = "static-residential-ipv4"
	Plan    = "standard"
)

// Unit is the price of an address a month.
var Unit = domain.MustMoney("3.39")

// The states of an address.
const (
	Pending    = "PENDING"
	Initiating = "INITIATING"
	Active     = "ACTIVE"
	Expired    = "EXPIRED"
	Canceled   = "CANCELED"
)

// Seller is the fake.
type Seller struct {
	*seller.Server

	mu       sync.Mutex
	shape    Shape
	orders   []*Order
	stock    map[string]int
	balance  domain.Money
	spent    domain.Money
	lastID   int64
	made     int
	refuse   map[int64]bool
	addrs    []netip.Addr
	http     uint16
	socks    uint16
	nextAddr netip.Addr
	hook     hook
}

// Shape selects between answers that the documentation allows.
type Shape struct {
	Polls     int  // reads of an order for each step to ACTIVE
	Bare      bool // lists of addresses are bare arrays, as the documentation shows them
	Cents     bool // the balance is in cents, as in one transcription; else in dollars
	Mute      bool // refusals have no reason
	Anonymous bool // addresses do not name their order
	Numbers   bool // addresses name their order by a number, as old ones do
}

// Order is an order as the seller recorded it.
type Order struct {
	ID      string
	Plan    string
	Country string
	ISP     string
	Months  int
	Renews  bool // by the seller
	Total   domain.Money
	Proxies []Proxy

	polls int
}

// Proxy is an address of an order.
type Proxy struct {
	ID        int64
	Status    string
	Addr      netip.Addr
	CreatedAt time.Time
	ExpiresAt time.Time
	Extended  int // how often
}

// New starts a seller with 1,000 addresses a country and 10,000 dollars.
func New(t testing.TB) *Seller {
	s := &Seller{stock: map[string]int{"US": 1000, "DE": 1000}, balance: 10_000 * domain.Dollar, lastID: 1410378,
		refuse: map[int64]bool{}, http: 10000, socks: 10002, nextAddr: netip.MustParseAddr("198.51.100.0"), shape: Shape{Polls: 1}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/order", s.public(s.getServices))
	mux.HandleFunc("POST /v2/order/{service}/price", s.public(s.postPrice))
	mux.HandleFunc("POST /v2/order/{service}", s.locked(s.postOptions))
	mux.HandleFunc("POST /v2/order/{service}/execute", s.locked(s.execute))
	mux.HandleFunc("GET /orders/{id}", s.locked(s.getOrder))
	mux.HandleFunc("GET /orders/{id}/proxies", s.locked(s.getProxies))
	mux.HandleFunc("GET /proxies", s.locked(s.listProxies))
	mux.HandleFunc("POST /proxies/{id}/extend-period", s.locked(s.extend))
	mux.HandleFunc("GET /account/balance", s.locked(s.getBalance))
	s.Server = seller.New(t, mux)
	return s
}

// public serves one request at a time.
func (s *Seller) public(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		h(w, r)
	}
}

// locked checks the credentials too.
func (s *Seller) locked(h http.HandlerFunc) http.HandlerFunc {
	return s.public(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != Key || r.Header.Get("X-Api-Secret") != Secret {
			seller.Answer(w, http.StatusUnauthorized, map[string]any{"message": "Unauthorized"})
			return
		}
		h(w, r)
	})
}

// Answers sets the shape of the answers.
func (s *Seller) Answers(shape Shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape = shape
}

// SetStock sets the number of addresses of a country.
func (s *Seller) SetStock(country string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock[country] = n
}

// SetBalance sets the money of the account.
func (s *Seller) SetBalance(m domain.Money) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balance = m
}

// Deliver sets the addresses and ports of the proxies that orders get in turn; a port of 0
// leaves its protocol out.
func (s *Seller) Deliver(addrs []netip.Addr, http, socks uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs, s.http, s.socks = addrs, http, socks
}

// RefuseRenewal sets whether renewals of an address are refused.
func (s *Seller) RefuseRenewal(id int64, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse[id] = on
}

// SetStatus sets the status of all addresses of an order, documented or not.
func (s *Seller) SetStatus(ref, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		if o.ID == ref {
			s.move(o, status)
		}
	}
}

// Vanish removes an order.
func (s *Seller) Vanish(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.orders = slices.DeleteFunc(s.orders, func(o *Order) bool { return o.ID == ref })
}

// Orders returns the orders, the oldest first.
func (s *Seller) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Order
	for _, o := range s.orders {
		seen := *o
		seen.Proxies = slices.Clone(o.Proxies)
		out = append(out, seen)
	}
	return out
}

// Spent returns the money that was charged.
func (s *Seller) Spent() domain.Money {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent
}

// move sets the status of all addresses of an order and records the events.
func (s *Seller) move(o *Order, status string) {
	for i := range o.Proxies {
		old := o.Proxies[i].Status
		if o.Proxies[i].Status = status; old != status {
			s.hook.changed(o.Proxies[i].ID, old, status)
		}
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

// byID returns the order of a request, or answers 404.
func (s *Seller) byID(w http.ResponseWriter, r *http.Request) *Order {
	for _, o := range s.orders {
		if o.ID == r.PathValue("id") {
			return o
		}
	}
	seller.Answer(w, http.StatusNotFound, map[string]any{"message": "Order not found"})
	return nil
}

func (s *Seller) getBalance(w http.ResponseWriter, _ *http.Request) {
	text := s.balance.String()
	if s.shape.Cents {
		text = strconv.FormatInt(int64(s.balance/(domain.Dollar/100)), 10)
	}
	seller.Answer(w, http.StatusOK, map[string]any{"balance": json.Number(text)})
}

// refuse422 answers 422. The messages are not documented.
func (s *Seller) refuse422(w http.ResponseWriter, words string) {
	if s.shape.Mute {
		words = "Bad request"
	}
	seller.Answer(w, http.StatusBadRequest, map[string]any{"message": words})
}

// uuid returns the n-th UUID.
func uuid(n int) string { return fmt.Sprintf("0198%04x-312c-7072-90e1-%s", n, strings.Repeat("a", 12)) }
