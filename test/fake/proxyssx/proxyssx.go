// Package proxyssx is a fake of the reseller API of proxies.sx, written from the docs and
// the SDK of https://github.com/bolivian-peru/proxy-reseller-kit .
package proxyssx

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"agentproxy/test/fake/seller"
)

// APIKey is the only valid API key.
const APIKey = "psx_0123456789abcdef"

// megabyte is the seller's MB, of which its GB has 1024.
const megabyte = 1 << 20

// Key is a pool key as the API returns it.
type Key struct {
	ID            string  `json:"id"`
	Key           string  `json:"key"`
	Label         string  `json:"label"`
	Enabled       bool    `json:"enabled"`
	TrafficCapGB  *int64  `json:"trafficCapGB"`
	TrafficUsedMB float64 `json:"trafficUsedMB"`
	TrafficUsedGB float64 `json:"trafficUsedGB"`
	ExpiresAt     *string `json:"expiresAt"`
	IsExpired     bool    `json:"isExpired"`
	LastUsedAt    *string `json:"lastUsedAt"`
	CreatedAt     int64   `json:"createdAt"`
	UpdatedAt     int64   `json:"updatedAt"`
}

// Gateway accepts pool keys and counts their traffic. *upstreamproxy.Proxy implements it.
type Gateway interface {
	Account(user, password string, capBytes int64)
	Enable(user, password string, on bool)
	Bytes(user, password string) (up, down int64)
}

// Server is the fake.
type Server struct {
	*seller.Server

	mu       sync.Mutex
	keys     []*Key
	answers  map[string]answer // by Idempotency-Key
	stock    map[string]map[string]int
	strict   bool
	gateway  Gateway
	username string
	made     int
}

type answer struct{ request, body []byte }

// New starts the API, with exits in DE, GB and US.
func New(t testing.TB) *Server {
	s := &Server{answers: map[string]answer{}, stock: map[string]map[string]int{
		"DE": {"modem": 0, "peer": 31}, "GB": {"modem": 12, "peer": 7}, "US": {"modem": 40, "peer": 120}}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/reseller/pool-keys", s.create)
	mux.HandleFunc("GET /v1/reseller/pool-keys", s.list)
	mux.HandleFunc("GET /v1/reseller/pool-keys/{id}", s.of(func(w http.ResponseWriter, _ *http.Request, k *Key) { reply(w, 200, k) }))
	mux.HandleFunc("PATCH /v1/reseller/pool-keys/{id}", s.of(s.update))
	mux.HandleFunc("DELETE /v1/reseller/pool-keys/{id}", s.of(s.remove))
	mux.HandleFunc("GET /v1/gateway/pool/availability", s.availability)
	s.Server = seller.New(t, mux)
	return s
}

// Base returns the URL of the API.
func (s *Server) Base() string { return s.URL + "/v1" }

// Attach registers every pool key, as a password, at a gateway under a user name. Its
// traffic there counts as used.
func (s *Server) Attach(g Gateway, username string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gateway, s.username = g, username
}

// Keys returns the pool keys, the oldest first.
func (s *Server) Keys() []Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Key
	for _, k := range s.keys {
		s.meter(k)
		out = append(out, *k)
	}
	return out
}

// SetUsed sets the counter of a key, which disables itself at its cap.
func (s *Server) SetUsed(id string, bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(id); k != nil {
		k.use(bytes)
	}
}

// Vanish removes a key.
func (s *Server) Vanish(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k := s.find(id); k != nil {
		s.forget(k)
	}
}

// Stock sets the number of exits of a country.
func (s *Server) Stock(country string, modem, peer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stock[country] = map[string]int{"modem": modem, "peer": peer}
}

// Strict makes a repeated Idempotency-Key with another body a conflict; else the first
// answer is repeated. The seller documents neither.
func (s *Server) Strict(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.strict = on
}

func (k *Key) use(bytes int64) {
	k.TrafficUsedMB = float64(bytes) / megabyte
	k.TrafficUsedGB = k.TrafficUsedMB / 1024
	if k.TrafficCapGB != nil && k.TrafficUsedGB >= float64(*k.TrafficCapGB) {
		k.Enabled = false
	}
}

// meter reads the counter of a key at the gateway.
func (s *Server) meter(k *Key) {
	if s.gateway != nil {
		up, down := s.gateway.Bytes(s.username, k.Key)
		k.use(up + down)
	}
}

// register registers a key at the gateway.
func (s *Server) register(k *Key) {
	if s.gateway != nil {
		s.gateway.Account(s.username, k.Key, *k.TrafficCapGB<<30)
		s.gateway.Enable(s.username, k.Key, k.Enabled)
	}
}

func (s *Server) find(id string) *Key {
	i := slices.IndexFunc(s.keys, func(k *Key) bool { return k.ID == id })
	if i < 0 {
		return nil
	}
	s.meter(s.keys[i])
	return s.keys[i]
}

func (s *Server) forget(k *Key) {
	s.keys = slices.DeleteFunc(s.keys, func(o *Key) bool { return o == k })
	if s.gateway != nil {
		s.gateway.Enable(s.username, k.Key, false)
	}
}

var idempotencyKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,128}$`)

func (s *Server) create(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !admitted(w, r) {
		return
	}
	body, _ := io.ReadAll(r.Body)
	once := r.Header.Get("Idempotency-Key")
	if once != "" && !idempotencyKey.MatchString(once) {
		refuse(w, 400, "Idempotency-Key must be 8 to 128 of A-Z, a-z, 0-9, _ and -")
		return
	}
	if before, ok := s.answers[once]; ok && once != "" {
		if s.strict && string(before.request) != string(body) {
			refuse(w, 409, "this Idempotency-Key came with another body")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(201)
		_, _ = w.Write(before.body)
		return
	}
	var in struct {
		Label        string
		TrafficCapGB *float64
		QualityTier  string
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Label == "" || len(in.Label) > 256 {
		refuse(w, 400, "label must be 1 to 256 characters")
		return
	}
	if in.QualityTier != "" && in.QualityTier != "safe" && in.QualityTier != "standard" {
		refuse(w, 400, "qualityTier must be safe or standard")
		return
	}
	limit, ok := checkCap(w, in.TrafficCapGB)
	if !ok {
		return
	}
	if seller.FaultOf(r.Context()) == seller.NoFunds {
		refuse(w, 402, "Insufficient traffic balance") // unverified: not documented
		return
	}
	s.Sold(r)
	s.made++
	now := time.Now().UnixMilli()
	k := &Key{ID: fmt.Sprintf("65a1%020x", s.made), Key: fmt.Sprintf("pak_c0ffee%018x", s.made), Label: in.Label, Enabled: true,
		TrafficCapGB: &limit, CreatedAt: now, UpdatedAt: now}
	s.keys = append(s.keys, k)
	s.register(k)
	text, _ := json.Marshal(k)
	if once != "" {
		s.answers[once] = answer{body, text}
	}
	reply(w, 201, json.RawMessage(text))
}

// checkCap accepts a cap that is an integer from 1 to 1000 GB.
func checkCap(w http.ResponseWriter, gb *float64) (int64, bool) {
	switch {
	case gb == nil:
		refuse(w, 400, "An unlimited pool-access-key requires a partner account. Set a GB cap for this key.")
	case *gb < 1 || *gb > 1000 || *gb != math.Trunc(*gb):
		refuse(w, 400, "trafficCapGB must be an integer from 1 to 1000")
	default:
		return int64(*gb), true
	}
	return 0, false
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	if !admitted(w, r) {
		return
	}
	all := s.Keys()
	if all == nil {
		all = []Key{}
	}
	reply(w, 200, all)
}

// of calls a handler with the key of the request, or answers 404.
func (s *Server) of(f func(http.ResponseWriter, *http.Request, *Key)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !admitted(w, r) {
			return
		}
		if k := s.find(r.PathValue("id")); k != nil {
			f(w, r, k)
			return
		}
		refuse(w, 404, "Pool access key not found")
	}
}

func (s *Server) update(w http.ResponseWriter, r *http.Request, k *Key) {
	var in struct {
		Label        *string
		Enabled      *bool
		TrafficCapGB *float64
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, 400, "the body is no JSON")
		return
	}
	if in.TrafficCapGB != nil {
		limit, ok := checkCap(w, in.TrafficCapGB)
		if !ok {
			return
		}
		k.TrafficCapGB = &limit
	}
	if in.Enabled != nil {
		k.Enabled = *in.Enabled
	}
	if in.Label != nil {
		k.Label = *in.Label
	}
	k.UpdatedAt = time.Now().UnixMilli()
	s.register(k)
	reply(w, 200, k)
}

func (s *Server) remove(w http.ResponseWriter, _ *http.Request, k *Key) {
	s.forget(k)
	reply(w, 200, map[string]string{"message": "Pool access key deleted"})
}

// availability needs no API key.
func (s *Server) availability(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reply(w, 200, map[string]any{"countries": s.stock})
}

func admitted(w http.ResponseWriter, r *http.Request) bool {
	if r.Header.Get("X-API-Key") == APIKey {
		return true
	}
	refuse(w, 401, "Unauthorized")
	return false
}

func refuse(w http.ResponseWriter, status int, message string) {
	reply(w, status, map[string]any{"statusCode": status, "message": message})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-ID", "req-stand-in")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}
