// Package upstreamproxy is a fake of the gateways of proxy sellers: a proxy on loopback
// that reads the exit from the credential, as each seller documents it, and relays to
// loopback alone. The exit is the address that it dials from, so that a target observes
// what a seller's target would.
package upstreamproxy

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"
)

// Fault is a failure of one connection or request.
type Fault string

// The failures as a client observes them; SOCKS5 has the nearest of its replies.
const (
	None            Fault = ""
	Unauthorized    Fault = "unauthorized"     // 407
	Exhausted       Fault = "exhausted"        // 407, with the seller's message for exhausted traffic
	Unfunded        Fault = "unfunded"         // 407, with the seller's message for an account without money
	PaymentRequired Fault = "payment_required" // 402
	Forbidden       Fault = "forbidden"        // 403
	TooMany         Fault = "too_many"         // 429 with Retry-After
	Failed          Fault = "failed"           // 502
	Unavailable     Fault = "unavailable"      // 503
	NoStock         Fault = "no_stock"         // 502 or 503, with the seller's message
	Garbage         Fault = "garbage"          // neither HTTP nor SOCKS5
	Drop            Fault = "drop"             // the connection ends
	Slow            Fault = "slow"             // the answer comes late
)

// Seen is a request that was admitted.
type Seen struct {
	Wanted
	Protocol string // http, connect or socks5
	Target   string // host and port of the request
	Exit     netip.Addr
}

// Proxy is a gateway. All methods may be called at any time.
type Proxy struct {
	// Echo is the URL of a target that answers with the address it was reached from.
	Echo string

	t       testing.TB
	profile string
	ln      net.Listener
	wg      sync.WaitGroup

	mu       sync.Mutex
	accounts map[credential]*account
	sticky   map[stickyKey]*sticky
	routes   map[string]string
	stockout map[string]bool
	seen     []Seen
	faults   []Fault
	always   Fault
	late     time.Duration
	now      func() time.Time
	conns    map[net.Conn]bool
	rotated  int
	closed   bool
}

type credential struct{ user, password string }

type account struct {
	up, down, cap int64
	off           bool
}

type stickyKey struct {
	credential
	session string
}

// sticky is a session that keeps its exit for a time.
type sticky struct {
	first, last time.Time
	generation  int
}

// New starts the gateway of a seller, by the name of its profile, with one account.
func New(t testing.TB, profile, user, password string) *Proxy {
	t.Helper()
	if parsers[profile] == nil {
		t.Fatalf("no gateway is called %q", profile)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{t: t, profile: profile, ln: ln, accounts: map[credential]*account{}, sticky: map[stickyKey]*sticky{},
		routes: map[string]string{}, stockout: map[string]bool{}, late: 200 * time.Millisecond, now: time.Now, conns: map[net.Conn]bool{}}
	p.Account(user, password, 0)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = io.WriteString(w, host)
	}))
	p.Echo = echo.URL
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		_ = ln.Close()
		p.Cut()
		p.wg.Wait()
		echo.Close()
	})
	return p
}

// Addr returns the address that it listens on, for HTTP and SOCKS5.
func (p *Proxy) Addr() netip.AddrPort { return p.ln.Addr().(*net.TCPAddr).AddrPort() }

// Account adds an account or a sub-user, or sets the cap of a known one; 0 is no cap.
func (p *Proxy) Account(user, password string, capBytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := credential{user, password}
	if p.accounts[k] == nil {
		p.accounts[k] = &account{}
	}
	p.accounts[k].cap = capBytes
}

// Enable sets whether an account is enabled.
func (p *Proxy) Enable(user, password string, on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.accounts[credential{user, password}]; a != nil {
		a.off = !on
	}
}

// Bytes returns the bytes that an account relayed towards the target and back, without
// answers of the gateway itself.
func (p *Proxy) Bytes(user, password string) (up, down int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.accounts[credential{user, password}]; a != nil {
		return a.up, a.down
	}
	return 0, 0
}

// Sessions returns the admitted requests, the oldest first.
func (p *Proxy) Sessions() []Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

// Fail sets the failures of the next requests, one each.
func (p *Proxy) Fail(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, faults...)
}

// Always sets the failure of every request for which Fail has none.
func (p *Proxy) Always(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.always = f
}

// Late sets the delay of Slow, which is 200 ms at first.
func (p *Proxy) Late(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late = d
}

// Stock sets whether there are exits in a country, by its code of ISO 3166-1.
func (p *Proxy) Stock(country string, there bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stockout[country] = !there
}

// Route maps a target, "host:port" or "host", to an address of loopback.
func (p *Proxy) Route(target, address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.routes[target] = address
}

// Clock sets the clock for the times of sessions.
func (p *Proxy) Clock(now func() time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// Cut closes every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.conns))
	p.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}

// admit checks a credential. It returns a fault if that is refused.
func (p *Proxy) admit(user, password string) (*account, Wanted, Fault, error) {
	w, err := Parse(p.profile, user, password)
	if err != nil {
		return nil, w, Unauthorized, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.accounts[credential{w.Account, w.Password}]
	switch {
	case a == nil || a.off:
		return nil, w, Unauthorized, errors.New("no such account")
	case a.cap > 0 && a.up+a.down >= a.cap:
		return nil, w, Exhausted, errors.New("the cap is used up")
	case p.stockout[w.Country]:
		return nil, w, NoStock, fmt.Errorf("no exit in %s", w.Country)
	}
	return a, w, None, nil
}

// enter checks a credential and assigns an exit.
func (p *Proxy) enter(protocol, user, password, target string) (*account, netip.Addr, Fault, error) {
	a, w, fault, err := p.admit(user, password)
	if err != nil {
		return nil, netip.Addr{}, fault, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	exit := p.exit(credential{w.Account, w.Password}, w)
	p.seen = append(p.seen, Seen{Wanted: w, Protocol: protocol, Target: target, Exit: exit})
	return a, exit, None, nil
}

// exit returns an address of 127.128.0.0/9 that depends on the account, the session and
// how often the session has lost its exit.
func (p *Proxy) exit(k credential, w Wanted) netip.Addr {
	h := fnv.New32a()
	if w.Session == "" {
		p.rotated++
		fmt.Fprintf(h, "%s/%s/each/%d", k.user, k.password, p.rotated)
	} else {
		now, key := p.now(), stickyKey{k, w.Session}
		s := p.sticky[key]
		if s == nil {
			s = &sticky{first: now}
			p.sticky[key] = s
		}
		from := s.first
		if w.Idle {
			from = s.last
		}
		if w.Keep > 0 && !from.IsZero() && now.Sub(from) >= w.Keep {
			s.first, s.generation = now, s.generation+1
		}
		s.last = now
		fmt.Fprintf(h, "%s/%s/%s/%d", k.user, k.password, w.Session, s.generation)
	}
	n := h.Sum32()
	return netip.AddrFrom4([4]byte{127, byte(n>>16) | 128, byte(n >> 8), byte(n%254) + 1})
}

func (p *Proxy) fault() (Fault, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		f := p.faults[0]
		p.faults = p.faults[1:]
		return f, p.late
	}
	return p.always, p.late
}
