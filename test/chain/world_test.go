package chain

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/gateway"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/domain"
	"agentproxy/domain/egress"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// hopExit is where the proxies connect from.
const hopExit = "127.0.0.3"

const sessionID = "sess_aaaaaaaaaaaaaaaaaaaa"

var key = []byte("a key of the tests")

// world is a gateway with one session behind a proxy, and the books of it.
type world struct {
	t    *testing.T
	g    *gateway.Gateway
	addr string

	mu     sync.Mutex
	route  traffic.Route
	usage  traffic.Usage
	leases map[string]traffic.Lease
	seen   []traffic.Observation
}

// begin starts a gateway. The session's exit is an address that this host has not,
// like that of any provider.
func begin(t *testing.T, hop procurement.Endpoint) *world {
	t.Helper()
	w := &world{t: t, leases: map[string]traffic.Lease{}, route: traffic.Route{SessionID: sessionID, Type: session.Dynamic,
		Status: session.Active, Exits: []session.Exit{{IP: netip.MustParseAddr("198.51.100.7")}}, Upstreams: []procurement.Endpoint{hop}}}
	// The rules of the proxies are about names.
	cfg := gateway.Config{Addr: "127.0.0.1:0", Key: key, SingleLabels: true, Resolve: map[string]dial.Resolution{"": dial.Name}}
	cfg.Timing.IdleGive, cfg.Timing.Drain = 50*time.Millisecond, 50*time.Millisecond
	w.g = gateway.New(cfg, gateway.Deps{Routes: w, Leases: w, Observer: w, AddressPolicy: egress.Policy{Loopback: true}, Resolver: names{}})
	if err := w.g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.g.Stop(context.Background()) })
	w.addr = w.g.Addr().String()
	return w
}

// names resolves loopback names, and a name that only the proxies refuse.
type names struct{}

func (names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	switch {
	case host == "refused.test.":
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	case host == "localhost" || host == "localhost.":
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

// Route, RotateDue, Renew and Observe implement the interfaces of gateway.Deps.
func (w *world) Route(context.Context, string) (traffic.Route, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.route, nil
}

func (w *world) RotateDue(context.Context, string) (traffic.Route, error) {
	return traffic.Route{}, &domain.Error{Kind: domain.NotFound}
}

func (w *world) Renew(_ context.Context, _ string, asks []traffic.LeaseRequest) ([]traffic.Grant, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var grants []traffic.Grant
	for _, ask := range asks {
		l := w.leases[ask.Lease]
		u := w.usage
		u.Limit = 1 << 40
		d, l, g := traffic.Renew(u, l, ask, time.Now())
		w.usage.Up += d.Up
		w.usage.Down += d.Down
		w.usage.Connections += d.Connections
		if w.leases[ask.Lease] = l; ask.Close {
			delete(w.leases, ask.Lease)
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// Report stores nothing: no lease of this core is calm.
func (w *world) Report(context.Context, string, []traffic.ReportPart) error { return nil }

func (w *world) Observe(o traffic.Observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, o)
}

// set changes the route, as a rotation does.
func (w *world) set(edit func(*traffic.Route)) {
	w.mu.Lock()
	edit(&w.route)
	w.mu.Unlock()
	w.g.Changed(sessionID)
}

// settled waits until every lease was given back: then all is counted.
func (w *world) settled() traffic.Usage {
	w.t.Helper()
	w.until("the leases' return", func() bool { return len(w.leases) == 0 })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.usage
}

// last waits for the n-th observation.
func (w *world) last(n int) traffic.Observation {
	w.t.Helper()
	w.until("an observation", func() bool { return len(w.seen) >= n })
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[n-1]
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(2 * time.Millisecond) {
		w.mu.Lock()
		done := ok()
		w.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// line is a client's connection to the gateway that counts its bytes.
type line struct {
	net.Conn
	up, down int64
}

func (l *line) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	l.down += int64(n)
	return n, err
}

func (l *line) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.up += int64(n)
	return n, err
}

func (w *world) dial() *line {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(3 * time.Minute))
	return &line{Conn: c}
}

func user() string { return traffic.User{SessionID: sessionID}.String() }

func password() string { return traffic.Password(key, sessionID) }

// site starts a target that echoes the body, with the client's address in X-From.
func site(t *testing.T, start func(*httptest.Server)) *httptest.Server {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		rw.Header().Set("X-From", host)
		for name := range r.Header {
			if strings.HasPrefix(name, "Proxy-") || name == "Via" || name == "X-Forwarded-For" {
				t.Errorf("the target saw %s", name)
			}
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the target read %d bytes: %v", len(body), err)
		}
		_, _ = rw.Write(body)
	}))
	start(s)
	t.Cleanup(s.Close)
	return s
}
