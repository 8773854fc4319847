package gateway_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/traffic"
)

// header is the header with which a balancer names a client by version 2 of the PROXY protocol.
func header(client string) string {
	c := netip.MustParseAddrPort(client)
	b := append([]byte("\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c"), c.Addr().AsSlice()...)
	b = append(b, 198, 51, 100, 7)
	b = binary.BigEndian.AppendUint16(b, c.Port())
	return string(binary.BigEndian.AppendUint16(b, 8081))
}

func balanced(t *testing.T, from string, l *exitLog) *world {
	return begin(t, newCore(t), func(s *setup) {
		s.Balancers = []netip.Prefix{netip.MustParsePrefix(from)}
		s.Exits, s.AuthFailureLimit, s.PerAddress = l, 2, 4
	})
}

// The client that a balancer names is whom the exit log records, whom allowed_ips lets in, whom the feed shows and
// whose wrong credentials are counted, by both versions and both protocols.
func TestABalancerNamesItsClients(t *testing.T) {
	t.Parallel()
	l := &exitLog{}
	w := balanced(t, "127.0.0.0/8", l)
	id, target := w.add(1, 0), echo(t)
	w.change(id, func(r *traffic.Route) { r.Allowed = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")} })
	from := func(header, password string) int {
		c := w.dial()
		_, _ = io.WriteString(c, header)
		return w.connectAs(c, basic(user(id, 0), password), target)
	}
	one, two := header("192.0.2.1:4000"), "PROXY TCP4 192.0.2.2 198.51.100.7 4001 8081\r\n"
	for _, h := range []string{one, two} {
		if status := from(h, password(id)); status != 200 {
			t.Fatalf("with %q: %d", h, status)
		}
	}
	if status := from(header("203.0.113.5:1"), password(id)); status != 403 {
		t.Errorf("a client that is not allowed: %d", status)
	}
	c := w.dial()
	_, _ = io.WriteString(c, one+"\x05\x01\x02")
	if b := make([]byte, 2); !readIs(c, b, "\x05\x02") {
		t.Errorf("SOCKS5 behind a header: %q", b)
	}
	waitFor(t, "the client in the feed", func() bool {
		for _, o := range w.observed() {
			if o.Code == "CLIENT_ADDRESS_REFUSED" && o.Client == netip.MustParseAddr("203.0.113.5") {
				return true
			}
		}
		return false
	})
	got := l.all()
	if len(got) != 2 || got[0].Client != netip.MustParseAddrPort("192.0.2.1:4000") || got[1].Client != netip.MustParseAddrPort("192.0.2.2:4001") {
		t.Errorf("recorded are %+v", got)
	}
	for range 3 {
		from(two, "wrong")
	}
	if a, b := from(two, "wrong"), from(one, "wrong"); a != 429 || b != 407 {
		t.Errorf("wrong passwords of one client: %d, of another %d", a, b)
	}
}

func readIs(c net.Conn, b []byte, want string) bool {
	_, err := io.ReadFull(c, b)
	return err == nil && string(b) == want
}

// A balancer's own connection has its address; one without a header, or with a damaged one, is closed without an answer.
func TestABalancerWithoutAHeaderIsRefused(t *testing.T) {
	t.Parallel()
	l := &exitLog{}
	w := balanced(t, "127.0.0.0/8", l)
	id, target := w.add(1, 0), echo(t)
	for _, begin := range []string{"CONNECT " + target + " HTTP/1.1\r\n\r\n", "\x05\x01\x02", "PROXY TCP4 here there 1 2\r\n",
		strings.Replace(header("192.0.2.1:4000"), "\x21\x11", "\x21\x12", 1), "PROXY " + strings.Repeat("x", 200)} {
		c := w.dial()
		_, _ = io.WriteString(c, begin)
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%q is answered with %q", begin, b)
		}
	}
	c := w.dial()
	_, _ = io.WriteString(c, "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00")
	if status := w.connectAs(c, basic(user(id, 0), password(id)), target); status != 200 {
		t.Errorf("a health check: %d", status)
	}
	if got := l.all(); len(got) != 1 || got[0].Client.String() != c.LocalAddr().String() {
		t.Errorf("recorded are %+v", got)
	}
}

// A header of a peer that is no balancer names none: it is the garbage that it is without the option.
func TestAStrangersHeaderIsGarbage(t *testing.T) {
	t.Parallel()
	l := &exitLog{}
	w := balanced(t, "192.0.2.0/24", l)
	id, target := w.add(1, 0), echo(t)
	for _, h := range []string{header("192.0.2.1:4000"), "PROXY TCP4 192.0.2.2 198.51.100.7 4001 8081\r\n"} {
		c := w.dial()
		_, _ = io.WriteString(c, h)
		if status := w.connectAs(c, basic(user(id, 0), password(id)), target); status != 400 {
			t.Errorf("%q: %d", h, status)
		}
	}
	w.connect(id, target)
	if got := l.all(); len(got) != 1 || got[0].Client.Addr() != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("recorded are %+v", got)
	}
}

// Behind a balancer a stranger uses up his own share of the connections without a credential, not the balancer's.
func TestStrangersBehindABalancerHaveShares(t *testing.T) {
	t.Parallel()
	w := balanced(t, "127.0.0.0/8", &exitLog{})
	id, target := w.add(1, 0), echo(t)
	var idle []net.Conn
	for range 5 { // one more than an address may have
		c := w.dial()
		_, _ = io.WriteString(c, header("203.0.113.5:1"))
		idle = append(idle, c)
	}
	closed := make(chan struct{}, len(idle))
	for _, c := range idle {
		go func() {
			_, _ = c.Read(make([]byte, 1))
			closed <- struct{}{}
		}()
	}
	<-closed
	c := w.dial()
	_, _ = io.WriteString(c, header("192.0.2.1:4000"))
	if status := w.connectAs(c, basic(user(id, 0), password(id)), target); status != 200 {
		t.Errorf("a customer: %d", status)
	}
}

// BenchmarkProxyProtocol alternates between tunnels of gateways without balancers, with those of others, and with a
// header of each connection, and reports the medians of the processor's time, in which client, gateway and target are.
func BenchmarkProxyProtocol(b *testing.B) {
	const each = 50
	target := echo(b)
	part := func(networks, head string) func() {
		w := begin(b, newCore(b), func(s *setup) {
			if networks != "" {
				s.Balancers = []netip.Prefix{netip.MustParsePrefix(networks)}
			}
		})
		id := w.add(1, 0)
		auth := basic(user(id, 0), password(id))
		return func() {
			for n := range each {
				c, err := from(fmt.Sprint("127.0.3.", 1+n%100)).Dial("tcp", w.addr)
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.WriteString(c, head)
				if status := w.connectAs(c, auth, target); status != 200 {
					b.Fatalf("status %d", status)
				}
				_ = c.Close()
			}
		}
	}
	alternate(b, each, map[string]func(){"off": part("", ""), "others": part("192.0.2.0/24", ""),
		"header": part("127.0.0.0/8", header("192.0.2.1:4000"))})
}
