// Package iproyal is a fake of the seller IPRoyal, written from its public documentation:
// the reseller API for addresses (https://docs.iproyal.com/proxies/isp/api) and the
// residential API for sub-users
// (https://docs.iproyal.com/proxies/residential/api/sub-users). It counts its sales and
// charges for them.
package iproyal

import (
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

// The credentials of the account.
const (
	Key            = "reseller-token-of-the-test"
	ResidentialKey = "residential-token-of-the-test"
)

// SKU is the product that has plans of 30, 60 and 90 days; QuestionSKU is one with a
// required question, number 12.
const (
	SKU         = "9"
	QuestionSKU = "2"
)

// The numbers of locations.
const (
	UnitedStates  = 1
	Germany       = 2
	UnitedKingdom = 3
	NewYork       = 11
	LosAngeles    = 12
	London        = 13
)

// Seller is the fake. Both APIs are below its URL.
type Seller struct {
	*seller.Server

	mu       sync.Mutex
	shape    Shape
	orders   map[int64]*order
	next     int64
	users    map[string]*SubUser
	made     int
	stock    map[int64]int
	balance  domain.Money
	spent    domain.Money
	traffic  int64 // of the account, in bytes
	addrs    []netip.Addr
	http     uint16
	socks    uint16
	nextAddr netip.Addr
}

// Shape selects between answers that the documentation allows.
type Shape struct {
	Polls       int  // reads of an order until it is confirmed
	Wrapped     bool // single orders and sub-users are inside "data"
	NullCounts  bool // available_proxies_count is null
	TextBalance bool // the balance is a text
	OldestFirst bool // the list of orders begins with the oldest
	Mute        bool // refusals have no reason
}

// Order is an order as the seller recorded it.
type Order struct {
	ID         int64
	Status     string
	Quantity   int
	LocationID int64
	PlanID     int64
	AutoExtend bool
	Extended   int // how often
	ExpiresAt  time.Time
	IPs        []netip.Addr
}

// SubUser is a sub-user as the seller recorded it. Both amounts are bytes.
type SubUser struct {
	Hash, User, Password string
	Available, Used      int64
}

type order struct {
	Order
	days, polls int
}

// New starts a seller with 1,000 addresses in each place, and an account with 10,000
// dollars and 10,000 GB.
func New(t testing.TB) *Seller {
	s := &Seller{orders: map[int64]*order{}, next: 420, users: map[string]*SubUser{}, stock: map[int64]int{},
		balance: 10_000 * domain.Dollar, traffic: 10_000 * gigabyte, http: 12323, socks: 12324,
		nextAddr: netip.MustParseAddr("203.0.113.0"), shape: Shape{Polls: 2}}
	for _, id := range []int64{UnitedStates, Germany, UnitedKingdom, NewYork, LosAngeles, London} {
		s.stock[id] = 1000
	}
	mux := http.NewServeMux()
	static := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /v1/reseller"+path, s.locked("X-Access-Token", Key, h))
	}
	static("GET /balance", s.getBalance)
	static("GET /products", s.getProducts)
	static("GET /orders/calculate-pricing", s.getPrice)
	static("GET /orders", s.listOrders)
	static("POST /orders", s.postOrder)
	static("GET /orders/{id}", s.getOrder)
	static("POST /orders/{id}/extend", s.extendOrder)
	resi := func(pattern string, h http.HandlerFunc) {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /v1"+path, s.locked("Authorization", "Bearer "+ResidentialKey, h))
	}
	resi("GET /residential-subusers", s.listUsers)
	resi("POST /residential-subusers", s.postUser)
	resi("GET /residential-subusers/{hash}", s.getUser)
	resi("DELETE /residential-subusers/{hash}", s.deleteUser)
	resi("POST /residential-subusers/{hash}/take-traffic", s.takeTraffic)
	s.Server = seller.New(t, mux)
	return s
}

// locked checks the credential and serves one request at a time.
func (s *Seller) locked(header, want string, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != want {
			seller.Answer(w, http.StatusUnauthorized, map[string]any{"message": "Unauthenticated."})
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		h(w, r)
	}
}

// Answers sets the shape of the answers.
func (s *Seller) Answers(shape Shape) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shape = shape
}

// SetStock sets the number of addresses of a location.
func (s *Seller) SetStock(location int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock[location] = n
}

// SetBalance sets the money of the account.
func (s *Seller) SetBalance(m domain.Money) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.balance = m
}

// SetTraffic sets the bytes that the account can give to sub-users.
func (s *Seller) SetTraffic(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.traffic = bytes
}

// Deliver sets the addresses and ports of the proxies that orders get in turn; a port of 0
// leaves its protocol out.
func (s *Seller) Deliver(addrs []netip.Addr, http, socks uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addrs, s.http, s.socks = addrs, http, socks
}

// Use counts traffic of a sub-user.
func (s *Seller) Use(hash string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.users[hash]
	u.Available, u.Used = u.Available-bytes, u.Used+bytes
}

// Vanish removes an order or a sub-user.
func (s *Seller) Vanish(ref string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := strconv.ParseInt(ref, 10, 64)
	delete(s.orders, id)
	delete(s.users, ref)
}

// SetStatus sets the status of an order, documented or not, for all later reads.
func (s *Seller) SetStatus(ref, status string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := strconv.ParseInt(ref, 10, 64)
	s.orders[id].Status, s.orders[id].polls = status, -1
}

// Orders returns the orders, the oldest first.
func (s *Seller) Orders() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Order
	for _, o := range s.sorted() {
		out = append(out, o.Order)
	}
	return out
}

// SubUsers returns the sub-users by name.
func (s *Seller) SubUsers() []SubUser {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []SubUser
	for _, u := range s.users {
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b SubUser) int { return strings.Compare(a.User, b.User) })
	return out
}

// Spent returns the money that was charged.
func (s *Seller) Spent() domain.Money {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.spent
}

// Traffic returns the bytes that the account can still give to sub-users.
func (s *Seller) Traffic() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.traffic
}

func (s *Seller) sorted() []*order {
	var list []*order
	for _, o := range s.orders {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b *order) int { return int(a.ID - b.ID) })
	return list
}

// one answers with a single object, wrapped or not.
func (s *Seller) one(w http.ResponseWriter, v any) {
	if s.shape.Wrapped {
		v = map[string]any{"data": v}
	}
	seller.Answer(w, http.StatusOK, v)
}

// refuse answers 422 as a Laravel application does. The messages are not documented.
func (s *Seller) refuse(w http.ResponseWriter, field, words string) {
	body := map[string]any{"message": words, "errors": map[string]any{field: []string{words}}}
	if s.shape.Mute {
		body = map[string]any{"message": "The given data was invalid."}
	}
	seller.Answer(w, http.StatusUnprocessableEntity, body)
}

// pageOf returns a page of a list with its metadata.
func pageOf[T any](r *http.Request, list []T, byDefault int) map[string]any {
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	per, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	if page < 1 {
		page = 1
	}
	if per < 1 || per > 100 {
		per = byDefault
	}
	last := max((len(list)+per-1)/per, 1)
	from := min((page-1)*per, len(list))
	to := min(from+per, len(list))
	return map[string]any{"data": append([]T{}, list[from:to]...),
		"meta": map[string]any{"current_page": page, "last_page": last, "per_page": per, "total": len(list)}}
}
