// Package seller has what the fakes of proxy sellers share: a server whose answers can be
// made to fail, and a record of its sales.
package seller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is a failure of one request.
type Fault string

// A failure before the work does nothing at the seller; the others do the work first.
const (
	None        Fault = ""
	Refuse      Fault = "refuse"       // before the work: 400
	Expired     Fault = "expired"      // before the work: 401
	Forbidden   Fault = "forbidden"    // before the work: 403
	RateLimited Fault = "rate_limited" // before the work: 429 with Retry-After
	DropRequest Fault = "drop_request" // before the work: the connection ends
	Redirect    Fault = "redirect"     // before the work: 307 to loopback
	OutOfStock  Fault = "out_of_stock" // the handler answers as the seller does
	NoFunds     Fault = "no_funds"     // the handler answers as the seller does
	Delay       Fault = "delay"        // the answer comes late
	DropAnswer  Fault = "drop_answer"  // done, and the connection ends
	Failed      Fault = "failed"       // done, and 502
	Garbage     Fault = "garbage"      // done, and 200 without JSON
	Cut         Fault = "cut"          // done, and the answer breaks off
	Huge        Fault = "huge"         // done, and 50 MB
)

// Mixed are the faults for random tests: each refuses, or leaves the outcome unknown to
// the caller.
var Mixed = []Fault{Refuse, RateLimited, DropRequest, Redirect, Delay, DropAnswer, Failed, Garbage, Cut}

// Server is the HTTP side of a fake.
type Server struct {
	*httptest.Server
	t testing.TB
	// Late is the delay of Delay; 0: 50 ms.
	Late time.Duration

	mu     sync.Mutex
	next   map[string][]Fault // by part of "METHOD /path"
	random *rand.Rand
	chance float64
	mixed  []Fault
	calls  []string
	orders map[string]int // by the key of the intent
	sold   int
	stray  int // requests that followed a redirect
}

// New starts a server in front of a handler. The test fails if an intent is sold twice, or
// a redirect is followed.
func New(t testing.TB, h http.Handler) *Server {
	s := &Server{t: t, next: map[string][]Fault{}, orders: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, h) }))
	t.Cleanup(func() {
		s.Close()
		if s.stray > 0 {
			t.Errorf("%d requests followed a redirect", s.stray)
		}
	})
	return s
}

// Next sets the failures of the next requests whose "METHOD /path" contains a text, one
// each.
func (s *Server) Next(part string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next[part] = append(s.next[part], faults...)
}

// Sometimes makes requests fail at random: chance 0.3 is 30 percent.
func (s *Server) Sometimes(seed uint64, chance float64, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random, s.chance, s.mixed = rand.New(rand.NewPCG(seed, seed)), chance, faults
}

// Calls returns the number of requests whose "METHOD /path" contains a text.
func (s *Server) Calls(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.calls {
		if strings.Contains(c, part) {
			n++
		}
	}
	return n
}

// Sold records a sale. The handler calls it at that moment. The X-Request-Id of the
// request names the intent; the test fails if an intent is sold twice.
func (s *Server) Sold(r *http.Request) {
	key := r.Header.Get("X-Request-Id")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sold++
	if key == "" {
		s.t.Errorf("%s %s: an order without the key of its intent", r.Method, r.URL.Path)
		return
	}
	if s.orders[key]++; s.orders[key] > 1 {
		s.t.Errorf("%s %s: the intent %s was sold %d times", r.Method, r.URL.Path, key, s.orders[key])
	}
}

// Sales returns the number of sales.
func (s *Server) Sales() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sold
}

// Intents returns the keys of the intents that were sold.
func (s *Server) Intents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.orders))
}

func (s *Server) draw(call string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call)
	for part, queue := range s.next {
		if len(queue) > 0 && strings.Contains(call, part) {
			s.next[part] = queue[1:]
			return queue[0]
		}
	}
	if s.random != nil && len(s.mixed) > 0 && s.random.Float64() < s.chance {
		return s.mixed[s.random.IntN(len(s.mixed))]
	}
	return None
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, h http.Handler) {
	if strings.HasPrefix(r.URL.Path, "/stray/") {
		s.mu.Lock()
		s.stray++
		s.mu.Unlock()
		return
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	fault := s.draw(r.Method + " " + r.URL.Path)
	switch fault {
	case Refuse:
		reply(w, 400, `{"message":"refused on purpose"}`)
		return
	case Expired:
		reply(w, 401, `{"message":"unauthorized"}`)
		return
	case Forbidden:
		reply(w, 403, `{"message":"forbidden"}`)
		return
	case RateLimited:
		w.Header().Set("Retry-After", "1")
		reply(w, 429, `{"error":"Too many requests"}`)
		return
	case Redirect:
		http.Redirect(w, r, s.URL+"/stray"+r.URL.Path, http.StatusTemporaryRedirect)
		return
	case DropRequest:
		panic(http.ErrAbortHandler)
	}
	made := httptest.NewRecorder()
	h.ServeHTTP(made, r.WithContext(WithFault(r.Context(), fault)))
	switch fault {
	case DropAnswer:
		panic(http.ErrAbortHandler)
	case Failed:
		reply(w, 502, "<html>bad gateway</html>")
		return
	case Garbage:
		reply(w, 200, `{"data": [{"id": `)
		return
	case Huge:
		w.WriteHeader(200)
		for range 50 {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 1<<20))
		}
		return
	case Cut:
		w.Header().Set("Content-Length", fmt.Sprint(made.Body.Len()+1))
		w.WriteHeader(made.Code)
		_, _ = w.Write(made.Body.Bytes()[:made.Body.Len()/2])
		return
	case Delay:
		late := s.Late
		if late == 0 {
			late = 50 * time.Millisecond
		}
		select {
		case <-time.After(late):
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	for k, v := range made.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(made.Code)
	_, _ = w.Write(made.Body.Bytes())
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// Answer answers a request with JSON.
func Answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
