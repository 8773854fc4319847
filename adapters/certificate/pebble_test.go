package certificate_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"

	"agentproxy/adapters/certificate"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/ports"
	"agentproxy/test/pg"
)

// authority is Let's Encrypt's server for tests of clients, whose names are all of this host.
type authority struct {
	server          *httptest.Server
	web, tls        net.Listener // where it asks for challenges, in plain text and with TLS
	handler         atomic.Pointer[http.Handler]
	down            atomic.Bool
	orders          atomic.Int64
	finalize        atomic.Pointer[chan struct{}] // holds off the end of an order until it is closed
	finalizing      chan struct{}                 // an order has come to its end
	mu              sync.Mutex
	root            *x509.CertPool
	names           string // address of the resolver
	httpOff, tlsOff bool
}

// listen returns a listener on loopback that is closed when the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func newAuthority(t *testing.T, lifetime time.Duration) *authority {
	t.Helper()
	a := &authority{web: listen(t), tls: listen(t), finalizing: make(chan struct{}, 8)}
	names := listen(t)
	a.names = names.Addr().String()
	resolver := &dns.Server{Listener: names, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			m.Answer = append(m.Answer, &dns.A{Hdr: dns.RR_Header{Name: q.Question[0].Name, Rrtype: dns.TypeA,
				Class: dns.ClassINET}, A: net.IPv4(127, 0, 0, 1)})
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = resolver.ActivateAndServe() }()
	t.Cleanup(func() { _ = resolver.Shutdown() })
	a.replace(lifetime)
	a.server = httptest.NewTLSServer(http.HandlerFunc(a.serve))
	t.Cleanup(a.server.Close)
	return a
}

// replace makes it another authority, which has no accounts and signs by another root.
func (a *authority) replace(lifetime time.Duration) {
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	signer := ca.New(quiet, store, "", "ecdsa", 0, 1,
		map[string]ca.Profile{"default": {ValidityPeriod: uint64(lifetime.Seconds())}})
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	validator := va.New(quiet, port(a.web), port(a.tls), false, a.names, store)
	front := wfe.New(quiet, store, validator, signer, []string{"pebble.letsencrypt.org"}, false, false, 1, 1)
	h := front.Handler()
	a.handler.Store(&h)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(signer.GetRootCert(0).PEM())
	a.mu.Lock()
	a.root = roots
	a.mu.Unlock()
}

func (a *authority) roots() *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.root
}

func (a *authority) serve(w http.ResponseWriter, r *http.Request) {
	if a.down.Load() {
		http.Error(w, "maintenance", http.StatusServiceUnavailable)
		return
	}
	switch {
	case r.URL.Path == "/order-plz" && r.Method == http.MethodPost:
		a.orders.Add(1)
	case strings.HasPrefix(r.URL.Path, "/finalize-order/"):
		if held := a.finalize.Load(); held != nil {
			a.finalizing <- struct{}{}
			<-*held
		}
	}
	(*a.handler.Load()).ServeHTTP(w, r)
}

func (a *authority) config(hosts ...string) certificate.Config {
	trusted := x509.NewCertPool()
	trusted.AddCert(a.server.Certificate())
	return certificate.Config{Hosts: hosts, Email: "ops@example.com", DirectoryURL: a.server.URL + "/dir", Roots: trusted}
}

// answers has a keeper answer the challenges of the authority, in plain text and with TLS.
func (a *authority) answers(t *testing.T, k *certificate.Keeper) {
	t.Helper()
	plain := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if a.httpOff || !k.Challenge(w, r) {
			http.Error(w, "TLS_REQUIRED", http.StatusUpgradeRequired)
		}
	})}
	go func() { _ = plain.Serve(a.web) }()
	secured := tls.NewListener(a.tls, k.TLS())
	go func() {
		for {
			c, err := secured.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if !a.tlsOff {
					_ = c.(*tls.Conn).Handshake()
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = plain.Close() })
}

// clock is a time that tests set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time           { return time.Now().Add(time.Duration(c.ahead.Load())).UTC() }
func (c *clock) advance(by time.Duration) { c.ahead.Add(int64(by)) }
func (c *clock) set(t *testing.T, at time.Time) {
	t.Helper()
	c.ahead.Store(int64(time.Until(at)))
}

const rootText = "an example of a root secret, 0123456789"

func secrets(t *testing.T) ports.Secrets {
	t.Helper()
	s, err := system.NewSecrets(system.Root(rootText))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// databases are the configurations of an empty database of each kind.
var databases = map[string]func(t *testing.T) storage.Config{
	"SQLite":     func(t *testing.T) storage.Config { return storage.Config{Path: t.TempDir() + "/certificates.db"} },
	"PostgreSQL": func(t *testing.T) storage.Config { return storage.Config{URL: storage.URL(pg.Database(t))} },
}

func open(t *testing.T, at storage.Config) *storage.Store {
	t.Helper()
	st, err := storage.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if err := st.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// replica returns a keeper on a store, which is looked after by the test alone.
func replica(t *testing.T, cfg certificate.Config, st ports.Store, c *clock, out io.Writer) *certificate.Keeper {
	t.Helper()
	k, err := certificate.New(cfg, certificate.Deps{Store: st, Secrets: secrets(t), Now: c.now,
		Log: slog.New(slog.NewTextHandler(out, nil))})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// shows returns the certificate that a keeper presents for a host; nil if there is none.
func shows(t *testing.T, k *certificate.Keeper, host string) *x509.Certificate {
	t.Helper()
	c, err := k.TLS().GetCertificate(&tls.ClientHelloInfo{ServerName: host})
	if err != nil {
		return nil
	}
	return c.Leaf
}
