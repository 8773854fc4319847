// Package webshare is a fake of Webshare's API, written from https://apidocs.webshare.io:
// the proxy list, the plan, replacements and statistics of one account.
package webshare

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"agentproxy/test/fake/seller"
)

// Key is the API key of the account.
const Key = "webshare-key-0123456789"

// Proxy is a proxy of the list, as the API has it.
type Proxy struct {
	ID               string  `json:"id"`
	Username         string  `json:"username"`
	Password         string  `json:"password"`
	ProxyAddress     *string `json:"proxy_address"`
	Port             int     `json:"port"`
	Valid            bool    `json:"valid"`
	LastVerification string  `json:"last_verification"`
	CountryCode      string  `json:"country_code"`
	CityName         string  `json:"city_name"`
	CreatedAt        string  `json:"created_at"`
}

type replaced struct {
	ID                      int    `json:"id"`
	Reason                  string `json:"reason"`
	Proxy                   string `json:"proxy"`
	ProxyPort               int    `json:"proxy_port"`
	ProxyCountryCode        string `json:"proxy_country_code"`
	ReplacedWith            string `json:"replaced_with"`
	ReplacedWithPort        int    `json:"replaced_with_port"`
	ReplacedWithCountryCode string `json:"replaced_with_country_code"`
	CreatedAt               string `json:"created_at"`
}

// task is a replacement that was asked for.
type task struct {
	ID          int     `json:"id"`
	State       string  `json:"state"`
	DryRun      bool    `json:"dry_run"`
	Error       *string `json:"error"`
	ErrorCode   *string `json:"error_code"`
	CompletedAt *string `json:"completed_at"`
	addresses   []string
	country     string
}

// Server is the account.
type Server struct {
	*seller.Server
	Now func() time.Time

	mu        sync.Mutex
	proxies   []Proxy
	replaced  []replaced // the newest first
	tasks     []*task
	left      int // replacements of the plan
	bandwidth float64
	used      int64
	spare     []Proxy
	fail      string // error code of the next replacement
	held      bool   // no replacement goes on
	odd       bool   // the next replacement is answered by an empty object
	window    time.Time
	lists     int // calls of lists in this minute
	calls     int
}

// New starts the account of a plan with replacements and proxies.
func New(t testing.TB, replacements int, proxies ...Proxy) *Server {
	s := &Server{Now: time.Now, proxies: proxies, left: replacements, bandwidth: 50, used: 5_000_000_000}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/proxy/list/{$}", s.list)
	mux.HandleFunc("GET /v2/proxy/list/replaced/{$}", func(w http.ResponseWriter, r *http.Request) { paged(w, r, s.URL, s.replaced) })
	mux.HandleFunc("GET /v2/subscription/plan/{$}", s.plan)
	mux.HandleFunc("GET /v2/subscription/{$}", func(w http.ResponseWriter, _ *http.Request) {
		seller.Answer(w, 200, map[string]any{"id": 1, "start_date": "2026-11-01T00:00:00-07:00", "end_date": "2026-12-01T00:00:00-07:00"})
	})
	mux.HandleFunc("GET /v2/stats/aggregate/{$}", s.stats)
	mux.HandleFunc("POST /v3/proxy/replace/{$}", s.replace)
	mux.HandleFunc("GET /v3/proxy/replace/{id}/{$}", s.state)
	s.Server = seller.New(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Header.Get("Authorization") != "Token "+Key {
			refuse(w, 401, "authentication_failed", "Invalid token.")
			return
		}
		if s.limited(r) {
			refuse(w, 429, "throttled", "Request was throttled.")
			return
		}
		mux.ServeHTTP(w, r)
	}))
	return s
}

// ProxyAt returns a proxy of the account in a country.
func ProxyAt(n int, address string, port int, country string) Proxy {
	return Proxy{ID: "d-" + strconv.Itoa(n), Username: "username", Password: "passw0rd-of-proxies", ProxyAddress: &address, Port: port,
		Valid: true, LastVerification: "2026-11-22T10:00:00.000000-07:00", CountryCode: country, CityName: "New York",
		CreatedAt: "2026-11-01T10:00:00.000000-07:00"}
}

// limited counts a call: 240 a minute are allowed, 60 of lists. A refused one counts too.
func (s *Server) limited(r *http.Request) bool {
	if now := s.Now(); now.Sub(s.window) >= time.Minute {
		s.window, s.calls, s.lists = now, 0, 0
	}
	s.calls++
	if r.Method == http.MethodGet && len(r.URL.Path) >= 15 && r.URL.Path[:15] == "/v2/proxy/list/" {
		s.lists++
	}
	return s.calls > 240 || s.lists > 60
}

// Used sets the bytes that the plan has used.
func (s *Server) Used(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used = bytes
}

// Flood counts calls of lists by another program in this minute.
func (s *Server) Flood(calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.window, s.calls, s.lists = s.Now(), calls, calls
}

// Spare adds proxies that replacements get.
func (s *Server) Spare(list ...Proxy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = append(s.spare, list...)
}

// FailNext makes the next replacement fail after it was accepted.
func (s *Server) FailNext(code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = code
}

// Invalidate replaces a proxy as the seller does by itself.
func (s *Server) Invalidate(address, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchange(address, "", reason)
}

// exchange puts a spare proxy, of a country if one is named, in place of another.
func (s *Server) exchange(address, country, reason string) bool {
	for i, old := range s.proxies {
		if old.ProxyAddress == nil || *old.ProxyAddress != address {
			continue
		}
		for j, next := range s.spare {
			if country != "" && next.CountryCode != country {
				continue
			}
			s.proxies[i] = next
			s.spare = append(s.spare[:j:j], s.spare[j+1:]...)
			s.replaced = append([]replaced{{ID: len(s.replaced) + 1, Reason: reason, Proxy: address, ProxyPort: old.Port,
				ProxyCountryCode: old.CountryCode, ReplacedWith: *next.ProxyAddress, ReplacedWithPort: next.Port,
				ReplacedWithCountryCode: next.CountryCode, CreatedAt: s.Now().Format(time.RFC3339Nano)}}, s.replaced...)
			return true
		}
	}
	return false
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	mode := r.URL.Query().Get("mode")
	if mode != "direct" && mode != "backbone" {
		refuseField(w, "mode", "This field is required.")
		return
	}
	for _, t := range s.tasks { // they go on whether or not they are asked for
		s.step(t)
	}
	paged(w, r, s.URL, s.proxies)
}

func (s *Server) plan(w http.ResponseWriter, r *http.Request) {
	paged(w, r, s.URL, []map[string]any{
		{"id": 1, "status": "cancelled", "bandwidth_limit": 1.0, "proxy_count": 10, "proxy_replacements_available": 0},
		{"id": 2, "status": "active", "bandwidth_limit": s.bandwidth, "proxy_type": "shared", "proxy_subtype": "default",
			"proxy_count": len(s.proxies), "proxy_countries": map[string]int{"ZZ": len(s.proxies)}, "automatic_refresh_next_at": nil,
			"proxy_replacements_total": 10, "proxy_replacements_used": 10 - s.left, "proxy_replacements_available": s.left},
	})
}

func (s *Server) stats(w http.ResponseWriter, r *http.Request) {
	if since := r.URL.Query().Get("timestamp__gte"); since != "2026-11-01T07:00:00Z" {
		refuseField(w, "timestamp__gte", "not the start of the subscription: "+since)
		return
	}
	seller.Answer(w, 200, map[string]any{"bandwidth_projected": 100000, "bandwidth_total": s.used, "requests_total": 5, "error_reasons": []any{}})
}

// paged answers with a page of a list.
func paged[T any](w http.ResponseWriter, r *http.Request, base string, list []T) {
	number := func(name string, otherwise int) int {
		if n, err := strconv.Atoi(r.URL.Query().Get(name)); err == nil && n > 0 {
			return n
		}
		return otherwise
	}
	page, size := number("page", 1), number("page_size", 25)
	from := min((page-1)*size, len(list))
	to := min(from+size, len(list))
	link := func(n int, there bool) *string {
		if !there {
			return nil
		}
		q := r.URL.Query()
		q.Set("page", strconv.Itoa(n))
		text := base + r.URL.Path + "?" + q.Encode()
		return &text
	}
	seller.Answer(w, 200, map[string]any{"count": len(list), "next": link(page+1, to < len(list)), "previous": link(page-1, page > 1),
		"results": append([]T{}, list[from:to]...)})
}

func refuse(w http.ResponseWriter, status int, code, detail string) {
	seller.Answer(w, status, map[string]string{"detail": detail, "code": code})
}

func refuseField(w http.ResponseWriter, field, text string) {
	seller.Answer(w, 400, map[string]any{field: []map[string]string{{"message": text, "code": "invalid"}}})
}
