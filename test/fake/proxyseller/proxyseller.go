// Package proxyseller is a fake of Proxy-Seller's client API v2, written from
// https://docs.proxy-seller.com/api-v2 and the README of the official client
// https://github.com/proxy-seller/userApiGolang . What these do not document is marked
// "invented".
package proxyseller

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/test/fake/seller"
)

// Key is the credential of the account, which is part of every path. It has characters
// that are escaped in a URL.
const Key = "fj4948/ffhg 58gh+843gh"

// Root is the path of the API before the key.
const Root = "/personal/api/v2"

// Server is the seller: one account with a balance and a residential tariff.
type Server struct {
	*seller.Server
	mu sync.Mutex

	balance, spent domain.Money
	stock          map[string]int // by alpha-3; other countries are not sold
	delay          int            // polls until an order is delivered
	renewing       int            // polls until a renewal is completed
	host           string         // of delivered proxies; empty: the address itself
	http, socks    uint16
	planned        []scripted
	orders         []*order // oldest first
	made, renewed  int
	ids, addrs     int
	started        time.Time
	pageLimit      int  // the most orders of a page; 0: 100
	hideRenewals   bool // the answer to a renewal names no order
	reference1     bool // countries as in version 1
	replacing      int  // polls until a replacement is handled
	replacements   int  // of the month that are left
	neverReplaces  bool

	tariff   int64 // unused bytes
	packages []*trafficPackage
	created  int
}

// scripted is an answer that a test sets for a later call.
type scripted struct{ part, body string }

// New starts a seller with 1,000 USD, 1 TB of residential traffic, and 1,000 addresses in
// each of the United States, Germany and Japan. An address costs 2 USD a month, 5 for
// three. Orders are delivered after one poll.
func New(t testing.TB) *Server {
	s := &Server{balance: 1000 * domain.Dollar, delay: 1, http: 50100, socks: 50101, tariff: 1e12, started: time.Now(), replacements: 100,
		stock: map[string]int{"USA": 1000, "DEU": 1000, "JPN": 1000}}
	s.Server = seller.New(t, http.HandlerFunc(s.serve))
	return s
}

// Base returns the URL of the API for the configuration of a client.
func (s *Server) Base() string { return s.URL + Root }

// SetBalance sets the balance of the account.
func (s *Server) SetBalance(m domain.Money) { s.locked(func() { s.balance = m }) }

// SetStock sets the number of addresses of a country, by its alpha-3 code.
func (s *Server) SetStock(alpha3 string, n int) { s.locked(func() { s.stock[alpha3] = n }) }

// SetPageLimit sets the most orders of a page of order/list.
func (s *Server) SetPageLimit(n int) { s.locked(func() { s.pageLimit = n }) }

// HideRenewals answers renewals with an empty orderId, which is a success.
func (s *Server) HideRenewals() { s.locked(func() { s.hideRenewals = true }) }

// NumberCountries writes countries as version 1 does: with a number as id, their alpha-3
// code beside it, and "Proxy of" before the name.
func (s *Server) NumberCountries() { s.locked(func() { s.reference1 = true }) }

// SetTariff sets the unused bytes of the residential tariff; there is no tariff if it is
// below 0.
func (s *Server) SetTariff(bytes int64) { s.locked(func() { s.tariff = bytes }) }

// SetDelay sets the number of polls until an order is delivered.
func (s *Server) SetDelay(polls int) { s.locked(func() { s.delay = polls }) }

// SetRenewing sets the number of polls until a renewal is completed.
func (s *Server) SetRenewing(polls int) { s.locked(func() { s.renewing = polls }) }

// SetProxy sets where the proxies of later orders listen, for tests that connect through
// them.
func (s *Server) SetProxy(host string, http, socks uint16) {
	s.locked(func() { s.host, s.http, s.socks = host, http, socks })
}

// Answer answers the next request whose path contains a text with a body and status 200,
// and does nothing else.
func (s *Server) Answer(part, body string) {
	s.locked(func() { s.planned = append(s.planned, scripted{part, body}) })
}

// Refuse answers the next request whose path contains a text with one error.
func (s *Server) Refuse(part string, code int, message string) {
	s.Answer(part, failure(fault{message, code}))
}

// Spent returns the money that was charged.
func (s *Server) Spent() (m domain.Money) { s.locked(func() { m = s.spent }); return m }

// Balance returns the balance of the account.
func (s *Server) Balance() (m domain.Money) { s.locked(func() { m = s.balance }); return m }

// Orders returns the number of orders of addresses.
func (s *Server) Orders() (n int) { s.locked(func() { n = s.made }); return n }

// CompleteRenewals completes every renewal that is paid, as the seller does after a while
// whether its list is read or not.
func (s *Server) CompleteRenewals() {
	s.locked(func() {
		for _, o := range s.orders {
			if o.renewal != nil {
				o.renewal.polls = 0
				s.settle(o)
			}
		}
	})
}

// Renewals returns the number of renewals.
func (s *Server) Renewals() (n int) { s.locked(func() { n = s.renewed }); return n }

// Packages returns the number of residential packages.
func (s *Server) Packages() (n int) { s.locked(func() { n = s.created }); return n }

// SelfRenewing returns the number of addresses with automatic renewal.
func (s *Server) SelfRenewing() (n int) {
	s.locked(func() {
		for _, o := range s.orders {
			for _, p := range o.proxies {
				if p.auto {
					n++
				}
			}
		}
	})
	return n
}

// Refs returns the base numbers of orders and the keys of packages.
func (s *Server) Refs() (refs []string) {
	s.locked(func() {
		for _, o := range s.orders {
			refs = append(refs, o.number)
		}
		for _, p := range s.packages {
			refs = append(refs, p.key)
		}
	})
	return refs
}

// Vanish removes an order or a package with everything that belongs to it.
func (s *Server) Vanish(ref string) {
	s.locked(func() {
		for i, o := range s.orders {
			if o.number == ref {
				s.orders = append(s.orders[:i:i], s.orders[i+1:]...)
				return
			}
		}
		for i, p := range s.packages {
			if p.key == ref {
				s.packages = append(s.packages[:i:i], s.packages[i+1:]...)
				return
			}
		}
	})
}

// SetStatus sets the status of an order in order/list: PAYED, NOT_PAYED or RETURN.
func (s *Server) SetStatus(ref, status string) {
	s.locked(func() {
		for _, o := range s.orders {
			if o.number == ref {
				o.status = status
			}
		}
	})
}

// NearEnd lets an order end soon: its addresses work, and are listed only with ends=Y.
func (s *Server) NearEnd(ref string) {
	s.locked(func() {
		for _, o := range s.orders {
			o.ended = o.ended || o.number == ref
		}
	})
}

// Age makes everything that was sold older, by the seller's clock.
func (s *Server) Age(d time.Duration) {
	s.locked(func() {
		for _, o := range s.orders {
			o.at = o.at.Add(-d)
			for _, p := range o.proxies {
				p.again = p.again.Add(-d)
			}
		}
	})
}

func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// next returns a new number for ids.
func (s *Server) next() int { s.ids++; return s.ids }

// objectID returns an id as of MongoDB: the second of its creation, then a number.
func objectID(at time.Time, n int) string { return fmt.Sprintf("%08x%016x", at.Unix(), n) }

// address returns an address of the range for benchmarks that was not sold before.
func (s *Server) address() netip.Addr {
	s.addrs++
	return netip.AddrFrom4([4]byte{198, 18 + byte(s.addrs>>16), byte(s.addrs >> 8), byte(s.addrs)})
}

// serve dispatches a call by the path after the key.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), Root+"/")
	key, call, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.planned {
		if strings.Contains("/"+call, p.part) {
			s.planned = append(s.planned[:i:i], s.planned[i+1:]...)
			write(w, p.body)
			return
		}
	}
	if plain, err := url.PathUnescape(key); err != nil || plain != Key {
		write(w, failure(Denied...))
		return
	}
	calls, section := s.calls(r), ""
	h := calls[r.Method+" "+call]
	if i := strings.LastIndex(call, "/"); h == nil && i > 0 {
		h, section = calls[r.Method+" "+call[:i+1]], call[i+1:]
	}
	if h == nil {
		http.NotFound(w, r)
		return
	}
	write(w, h(section))
}

// calls returns the handlers of the API by path. A path that ends in a slash is followed
// by the section.
func (s *Server) calls(r *http.Request) map[string]func(section string) string {
	return map[string]func(section string) string{
		"GET balance/get":                func(string) string { return success(map[string]any{"summ": number(s.balance)}) },
		"GET reference/list/":            s.reference,
		"POST order/calc":                func(string) string { return s.calculate(r) },
		"POST order/make":                func(string) string { return s.order(r) },
		"GET order/list":                 func(string) string { return s.orderList(r) },
		"GET proxy/list/":                func(section string) string { return s.list(r, section) },
		"POST prolong/calc/":             func(section string) string { return s.prolong(r, section, false) },
		"POST prolong/make/":             func(section string) string { return s.prolong(r, section, true) },
		"POST proxy/replace":             func(string) string { return s.replace(r) },
		"POST autoprolong/disable/":      func(section string) string { return s.autoProlong(r, section, false) },
		"GET auth/list":                  func(string) string { return s.auths() },
		"GET resident/package":           func(string) string { return s.mainPackage() },
		"GET residentsubuser/packages":   func(string) string { return s.listPackages() },
		"POST residentsubuser/create":    func(string) string { return s.createPackage(r) },
		"POST residentsubuser/update":    func(string) string { return s.updatePackage(r) },
		"DELETE residentsubuser/delete":  func(string) string { return s.deletePackage(r) },
		"GET residentsubuser/lists":      func(string) string { return s.lists(r) },
		"PUT residentsubuser/list/tools": func(string) string { return s.tools(r) },
	}
}
