package main

import (
	"bufio"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/gateway/socks5"
)

// gateway is a proxy with a password: it answers what was asked for, and refuses refused.example.
func gateway(t *testing.T) *url.URL {
	t.Helper()
	s := httptest.NewServer(gate)
	t.Cleanup(s.Close)
	return addressed(t, s)
}

// addressed returns the address of a gateway with the password.
func addressed(t *testing.T, s *httptest.Server) *url.URL {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("user", "p@ss")
	return u
}

var gate = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
	switch {
	case user != "user" || password != "p@ss":
		w.Header().Set("Proxy-Authenticate", "Basic")
		w.WriteHeader(http.StatusProxyAuthRequired)
	case strings.HasPrefix(r.Host, "refused.example") && r.Method == http.MethodConnect:
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprint(c, "HTTP/1.1 403 TARGET_DENIED: the operator denies it\r\nProxy-Status: agentproxy; error=denied\r\n"+
			"Content-Length: 24\r\n\r\n{\"code\":\"TARGET_DENIED\"}")
	case strings.HasPrefix(r.Host, "refused.example"):
		w.Header().Set("Proxy-Status", "agentproxy; error=denied")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"code":"TARGET_DENIED"}`)
	case r.Method == http.MethodConnect:
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\n\r\ntunnel to %s\n", r.Host)
		_, _ = io.Copy(c, c)
	default:
		fmt.Fprintf(w, "%s %s, forwarded for %q, via %q", r.Method, r.URL, r.Header.Get("X-Forwarded-For"), r.Header.Get("Via"))
	}
})

// forwarding starts a local proxy and returns its address.
func forwarding(t *testing.T, f *forwarder) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// exchange writes a text and returns what comes until it has what is wanted or the other side ends.
func exchange(t *testing.T, address, text, want string) string {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	if text[0] == socks5.Version { // the HTTP server takes it for a client that is gone
		_ = c.(*net.TCPConn).CloseWrite()
	}
	_ = c.SetReadDeadline(time.Now().Add(3 * time.Minute))
	var answer []byte
	for part := make([]byte, 4096); want == "" || !strings.Contains(string(answer), want); {
		n, err := c.Read(part)
		answer = append(answer, part[:n]...)
		if err != nil {
			break
		}
	}
	return string(answer)
}

const greeting = "\x05\x01\x00"

func TestForwarderAddsTheCredential(t *testing.T) {
	t.Parallel()
	at := forwarding(t, newForwarder(gateway(t)))
	name := func(host string) string {
		return greeting + "\x05\x01\x00\x03" + string(rune(len(host))) + host + "\x01\xbb"
	}
	for _, c := range []struct{ send, want, not string }{
		{"CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\n\r\nhello", "tunnel to shop.example:443\nhello", "Proxy-Auth"},
		{"GET http://shop.example/a?b HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n", `GET http://shop.example/a?b, forwarded for "", via ""`, "407"},
		{"CONNECT refused.example:443 HTTP/1.1\r\nHost: refused.example\r\nConnection: close\r\n\r\n", `{"code":"TARGET_DENIED"}`, "HTTP/1.1 200"},
		{"CONNECT refused.example:443 HTTP/1.1\r\nHost: refused.example\r\n\r\n", "HTTP/1.1 403 TARGET_DENIED: the operator denies it\r\n", "Forbidden"},
		{"GET http://refused.example/ HTTP/1.1\r\nHost: refused.example\r\nConnection: close\r\n\r\n", "HTTP/1.1 403", "407"},
		{"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400", "tunnel"},
		{"GET https://shop.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", "HTTP/1.1 400", "tunnel"},
		{name("shop.example") + "hello", "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00tunnel to shop.example:443\nhello", "HTTP/"},
		{greeting + "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50x", "tunnel to 192.0.2.7:80\nx", "HTTP/"},
		{greeting + "\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50x", "tunnel to [2001:db8::1]:80\nx", "HTTP/"},
		{name("refused.example"), "\x05\x00\x05\x02", "tunnel"},
		{name("a b\r\nX: y"), "\x05\x00\x05\x01", "tunnel"},
		{greeting + "\x05\x03\x00\x01\xc0\x00\x02\x07\x00\x50", "\x05\x00\x05\x07", "tunnel"},
		{"\x05\x01\x02", "\x05\xff", "tunnel"},
		{greeting + "\x05\x01\x00\x09\x00", "\x05\x00\x05\x08", "tunnel"},
		{"\x05", "", "tunnel"},
	} {
		got := exchange(t, at, c.send, c.want)
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) || strings.Contains(got, "p@ss") {
			t.Errorf("%q is answered %q, want %q", c.send, got, c.want)
		}
	}
}

func TestForwarderNeverAsksForAPassword(t *testing.T) {
	t.Parallel()
	u := gateway(t)
	u.User = url.UserPassword("user", "old")
	at := forwarding(t, newForwarder(u))
	gone := gateway(t)
	gone.Host = "127.0.0.1:1"
	away := forwarding(t, newForwarder(gone))
	for _, at := range []string{at, away} {
		for _, send := range []string{"CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n",
			"GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"} {
			got := exchange(t, at, send, "apx forward: ")
			if !strings.Contains(got, "HTTP/1.1 502") || !strings.Contains(got, "apx forward: ") || strings.Contains(got, "127.0.0.1:1") {
				t.Errorf("%q is answered %q", send, got)
			}
		}
	}
}

func TestForwarderHasABoundedNumberOfConnections(t *testing.T) {
	t.Parallel()
	f := newForwarder(gateway(t))
	f.slots = make(chan struct{}, 1)
	at := forwarding(t, f)
	open := func() (net.Conn, *bufio.Reader) {
		c, err := net.Dial("tcp", at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\n\r\n")
		return c, bufio.NewReader(c)
	}
	first, answer := open()
	if line, err := answer.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("%q, %v", line, err)
	}
	_, waiting := open()
	if len(f.slots) != 1 {
		t.Errorf("%d slots are taken", len(f.slots))
	}
	first.Close()
	if line, err := waiting.ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Errorf("the connection that waited gets %q, %v", line, err)
	}
}

// TestForwarderVerifiesTheCertificate reaches gateways by TLS: one that is trusted, one of an unknown authority and
// one whose certificate has another name. The latter two get no password.
func TestForwarderVerifiesTheCertificate(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32 // requests that reached a gateway
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		gate(w, r)
	}))
	s.EnableHTTP2 = true // it is not asked for: a tunnel is a connection
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	good := addressed(t, s) // 127.0.0.1, which the certificate names
	wrong := addressed(t, s)
	wrong.Host = strings.Replace(wrong.Host, "127.0.0.1", "localhost", 1)
	trust := x509.NewCertPool()
	trust.AddCert(s.Certificate())
	const tunnel = "CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example\r\n\r\n"
	const plain = "GET http://shop.example/ HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		proxy *url.URL
		roots *x509.CertPool
		fault string // empty: it is trusted
	}{
		"good":                    {good, trust, ""},
		"of an unknown authority": {good, x509.NewCertPool(), "certificate signed by unknown authority"},
		"with another name":       {wrong, trust, "not localhost"},
	} {
		f := newForwarder(c.proxy)
		f.tls.RootCAs = c.roots
		before := asked.Load()
		if err := f.untrusted(t.Context()); (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s: the certificate is reported as %v, want %q", name, err, c.fault)
		}
		at := forwarding(t, f)
		for send, want := range map[string]string{tunnel + "hello": "tunnel to shop.example:443\nhello", plain: "GET http://shop.example/",
			greeting + "\x05\x01\x00\x01\xc0\x00\x02\x07\x00\x50x": "tunnel to 192.0.2.7:80\nx"} {
			if c.fault != "" {
				want = c.fault
			}
			if c.fault != "" && send[0] == socks5.Version {
				want = "\x05\x00\x05\x01"
			}
			if got := exchange(t, at, send, want); !strings.Contains(got, want) || strings.Contains(got, "p@ss") {
				t.Errorf("%s: %q is answered %q, want %q", name, send, got, want)
			}
		}
		if n := asked.Load() - before; (n == 0) != (c.fault != "") {
			t.Errorf("%s: %d requests reached the gateway", name, n)
		}
	}
	away := *good
	away.Host = "127.0.0.1:1"
	if err := newForwarder(&away).untrusted(t.Context()); err != nil {
		t.Errorf("a gateway that cannot be reached is reported: %v", err)
	}
}
