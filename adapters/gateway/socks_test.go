package gateway_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/proxy"
)

// socks is an ordinary SOCKS5 client.
func (w *world) socks(user, password string) proxy.Dialer {
	w.t.Helper()
	d, err := proxy.SOCKS5("tcp", w.addr, &proxy.Auth{User: user, Password: password}, proxy.Direct)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func TestSOCKS5(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Resolver = resolver{"echo.test": {"127.0.0.1"}} })
	id := w.add(1, 0)
	_, port, _ := net.SplitHostPort(echo(t))
	for _, host := range []string{"127.0.0.1", "echo.test"} {
		c, err := w.socks(user(id, 0), password(id)).Dial("tcp", net.JoinHostPort(host, port))
		if err != nil {
			t.Fatalf("%s: %v", host, err)
		}
		_, _ = io.WriteString(c, "hello")
		_ = c.(*net.TCPConn).CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
			t.Errorf("%s: %q, %v", host, got, err)
		}
		_ = c.Close()
	}
	if u := w.settled(id); u.Up != 10 || u.Down != 10 || u.Connections != 2 {
		t.Errorf("usage %+v, want 10 and 10: the handshake is free", u)
	}
}

func TestSOCKS5OverIPv6(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 on loopback:", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.2")
	c, err := w.socks(user(id, 0), password(id)).Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

func TestSOCKS5Refusals(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Resolver = resolver{} })
	id := w.add(1, 0)
	closed := listen(t)
	_ = closed.Close()
	auth := "\x01" + string(rune(len(user(id, 0)))) + user(id, 0) + string(rune(len(password(id)))) + password(id)
	greet := "\x05\x01\x02"
	for _, c := range []struct{ name, send, want string }{
		{"no method that we know", "\x05\x01\x00", "\x05\xff"},
		{"a wrong password", greet + "\x01\x04user\x04word", "\x05\x02\x01\x01"},
		{"BIND", greet + auth + "\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", "\x05\x02\x01\x00\x05\x07"},
		{"UDP", greet + auth + "\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", "\x05\x02\x01\x00\x05\x07"},
		{"an address type", greet + auth + "\x05\x01\x00\x09\x7f\x00\x00\x01\x00\x50", "\x05\x02\x01\x00\x05\x08"},
		{"a private target", greet + auth + "\x05\x01\x00\x01\x0a\x00\x00\x01\x00\x50", "\x05\x02\x01\x00\x05\x02"},
		{"an unknown name", greet + auth + "\x05\x01\x00\x03\x07no.test\x00\x50", "\x05\x02\x01\x00\x05\x04"},
		{"a closed port", greet + auth + "\x05\x01\x00\x01\x7f\x00\x00\x01" + portOf(closed), "\x05\x02\x01\x00\x05\x05"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := w.dial()
			_, _ = io.WriteString(conn, c.send)
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), c.want) {
				t.Errorf("%q, %v; want %q ...", got, err, c.want)
			}
		})
	}
}

func portOf(l net.Listener) string {
	p := l.Addr().(*net.TCPAddr).Port
	return string([]byte{byte(p >> 8), byte(p)})
}

// A SOCKS5 client can be an HTTP client underneath.
func TestHTTPThroughSOCKS5(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer s.Close()
	tr := &http.Transport{Dial: w.socks(user(id, 0), password(id)).Dial} //nolint:staticcheck // what the library offers
	defer tr.CloseIdleConnections()
	res, err := (&http.Client{Transport: tr}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); string(b) != "ok" {
		t.Errorf("%q", b)
	}
}
