package gateway_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"agentproxy/domain/session"
)

// wiretap is a listener that keeps what its connections read.
type wiretap struct {
	net.Listener
	mu   sync.Mutex
	read bytes.Buffer
}

func (l *wiretap) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &tapped{c, l}, err
}

func (l *wiretap) saw(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.read.Bytes(), []byte(text))
}

type tapped struct {
	net.Conn
	l *wiretap
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.l.mu.Lock()
	c.l.read.Write(p[:n])
	c.l.mu.Unlock()
	return n, err
}

// newSecureSeller is newSeller behind TLS, with the certificate that trusts it and what was read in clear.
func newSecureSeller(t *testing.T) (*seller, *x509.CertPool, *wiretap) {
	known := httptest.NewTLSServer(nil) // whose certificate is for 127.0.0.1
	known.Close()
	roots := x509.NewCertPool()
	roots.AddCert(known.Certificate())
	tap := &wiretap{Listener: listen(t)}
	cfg := &tls.Config{Certificates: known.TLS.Certificates}
	return sellerAt(t, tls.NewListener(tap, cfg), "account", "secret-of-the-account"), roots, tap
}

// With TLS to a seller's proxy the account is not readable on the way, and tunnels and requests work and
// cost what they do without.
func TestTrafficGoesThroughASellersTLS(t *testing.T) {
	t.Parallel()
	s, roots, tap := newSecureSeller(t)
	w := begin(t, newCore(t), func(c *setup) { c.ProxyRoots = roots })
	id := w.add(1, 0)
	e := s.endpoint(session.HTTP)
	e.TLS = true
	w.via(id, e)
	target := newCounting(t)
	c := w.connect(id, target.addr())
	const up, down = 3_000_000, 5_000_000
	go func() {
		_, _ = c.Write(order(up, down))
		_, _ = io.CopyN(c, zeros{}, up)
		_ = c.CloseWrite()
	}()
	if n, err := io.Copy(io.Discard, c); n != down || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Up != up+16 || u.Down != down || target.in.Load() != up+16 {
		t.Errorf("charged %d up and %d down; the target got %d", u.Up, u.Down, target.in.Load())
	}
	site := newSite(t, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "hello") })
	for range 3 {
		res, err := w.client(id).Get("http://" + site.Listener.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(body) != "hello" {
			t.Errorf("%d %q", res.StatusCode, body)
		}
		_ = res.Body.Close()
	}
	if _, users := s.targets(); len(users) < 2 || users[0] != "account" {
		t.Errorf("the seller was asked by %v", users)
	}
	account := base64.StdEncoding.EncodeToString([]byte("account:secret-of-the-account"))
	if tap.saw("CONNECT") || tap.saw(account) {
		t.Error("the way to the seller is not encrypted")
	}
}

// A proxy that cannot show whose it is gets no credential, and neither does one without TLS.
func TestAProxyThatIsNotTrustedGetsNothing(t *testing.T) {
	t.Parallel()
	secure, roots, _ := newSecureSeller(t)
	plain := &wiretap{Listener: listen(t)}
	go serve(plain, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
	})
	for i, e := range []struct {
		what  string
		roots *x509.CertPool
		host  string
		at    net.Listener
	}{
		{"an unknown authority", x509.NewCertPool(), "127.0.0.1", secure.l},
		{"another name", roots, "localhost", secure.l},
		{"no TLS", roots, "127.0.0.1", plain},
	} {
		w := begin(t, newCore(t), func(c *setup) { c.ProxyRoots, c.Resolver = e.roots, resolver{"localhost": {"127.0.0.1"}} })
		id := w.add(i, 0)
		p := secure.endpoint(session.HTTP)
		p.Host, p.Port, p.TLS = e.host, uint16(e.at.Addr().(*net.TCPAddr).Port), true
		w.via(id, p)
		c := w.dial()
		_, _ = io.WriteString(c, "CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: x\r\n"+basic(user(id, 0), password(id))+"\r\n")
		expectRefusal(t, c, http.StatusBadGateway, "UPSTREAM_UNREACHABLE")
		if u := w.settled(id); u.Used() != 0 {
			t.Errorf("%s: charged %d bytes", e.what, u.Used())
		}
	}
	if targets, _ := secure.targets(); len(targets) > 0 || plain.saw("CONNECT") {
		t.Errorf("asked for %v", targets)
	}
}
