package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// forwarder is a port that leads to the gateway, as a router's or a load balancer's does.
func forwarder(t *testing.T, to func() string) netip.AddrPort {
	l := listen(t)
	go serve(l, func(c net.Conn) {
		target, err := net.Dial("tcp", to())
		if err != nil {
			return
		}
		defer target.Close()
		go func() {
			_, _ = io.Copy(target, c)
			_ = target.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(c, target)
	})
	return netip.MustParseAddrPort(l.Addr().String())
}

func TestThePublicAddressIsNoTarget(t *testing.T) {
	t.Parallel()
	var addr atomic.Pointer[string] // of the gateway, which has to know its public port when it starts
	public := forwarder(t, func() string { return *addr.Load() })
	names := resolver{"gw.test": {"127.0.0.1"}, "alias.test": {"127.0.0.1"}, "moved.test": {"127.0.0.77"}, "elsewhere.test": {"127.0.0.77"}}
	w := begin(t, newCore(t), func(s *setup) {
		s.Resolver = names
		s.Public = []hostport.Target{{Host: "GW.test", Port: public.Port()}, {Host: "moved.test", Port: 443},
			{Host: "gone.test", Port: 443}, {Host: "127.0.0.99", Port: 8082}}
	})
	addr.Store(&w.addr)
	id := w.add(1, 0)
	waitFor(t, "the names to be resolved", func() bool { return w.status(id, "elsewhere.test:443") == 403 })
	for _, target := range []string{
		"gw.test:%d", "GW.Test.:%d", "127.0.0.1:%d", "[::ffff:127.0.0.1]:%d", "alias.test:%d",
	} {
		if got := w.status(id, fmt.Sprintf(target, public.Port())); got != 403 {
			t.Errorf(target+": %d, want 403", public.Port(), got)
		}
	}
	for target, want := range map[string]int{"127.0.0.99:8082": 403, "gone.test:443": 403, "moved.test:443": 403,
		"gw.test:1": 502, "127.0.0.99:8083": 502} {
		if got := w.status(id, target); got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}
	// A provider does not get it either.
	s := newSeller(t, "u", "p")
	w.via(id, s.endpoint(session.HTTP))
	w.Changed(id)
	if got := w.status(id, fmt.Sprintf("alias.test:%d", public.Port())); got != 403 {
		t.Errorf("through an upstream: %d, want 403", got)
	}
	w.via(id, procurement.Endpoint{Host: "gw.test", Port: public.Port()})
	w.Changed(id)
	if got := w.status(id, "1.1.1.1:443"); got != 502 {
		t.Errorf("with the gateway as upstream: %d, want 502", got)
	}
}

// Sixty nested requests through an address that the gateway does not know as its own open
// one connection and no more.
func TestALoopEnds(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	unknown := forwarder(t, func() string { return w.addr })
	id := w.add(1, 0)
	auth := basic(user(id, 0), password(id))
	greeting := "\x05\x01\x02"
	login := fmt.Sprintf("\x01%c%s%c%s", len(user(id, 0)), user(id, 0), len(password(id)), password(id))
	for name, pieces := range map[string][]string{
		"CONNECT":           {strings.Repeat(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n", unknown, auth), 60)},
		"plain HTTP":        {fmt.Sprintf("GET http://%s/ HTTP/1.1\r\nHost: x\r\nproxy-authorization:%s\r\n", unknown, auth[len("Proxy-Authorization:"):])},
		"SOCKS5 at once":    {greeting + login},
		"SOCKS5 in its way": {greeting, login},
	} {
		t.Run(name, func(t *testing.T) {
			c := w.connect(id, unknown.String())
			for i, p := range pieces {
				_, _ = io.WriteString(c, p)
				if i < len(pieces)-1 {
					if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n, err := io.Copy(io.Discard, c); n > 0 {
				t.Errorf("%d bytes came back, %v", n, err)
			}
		})
	}
	waitFor(t, "the end of all connections", func() bool { return w.Stats().Connections == 0 })
	if n := w.usage(id).Connections; n > 4 {
		t.Errorf("%d connections were counted for four attempts", n)
	}
	for _, o := range w.noted(4) {
		if o.Code != "TARGET_REFUSED" {
			t.Errorf("the feed has %+v", o)
		}
	}
	t.Run("a credential of another proxy passes", func(t *testing.T) {
		c := w.connect(id, echo(t))
		sent := fmt.Sprintf("CONNECT x:1 HTTP/1.1\r\n%s\r\n", basic(user(id, 0), "another"))
		_, _ = io.WriteString(c, sent)
		if _, err := io.ReadFull(c, make([]byte, len(sent))); err != nil {
			t.Error(err)
		}
	})
}

// Whatever words the user name of a nested request has, and whichever key its password is of, the loop ends at the
// first level.
func TestALoopEndsWithWordsAndOlderKeys(t *testing.T) {
	t.Parallel()
	older := []byte("an older key of the tests")
	w := begin(t, newCore(t), func(s *setup) { s.OlderKeys = [][]byte{older} })
	unknown := forwarder(t, func() string { return w.addr })
	id := w.add(1, 0)
	w.addWorkers(id, loopbacks, nil)
	attempts := int64(0)
	for _, words := range []string{"", "-session-x", "-rotate", "-session-x-rotate", "-country-us-session-x", "-session-x-ttl-5"} {
		for _, pass := range []string{password(id), traffic.Password(older, id), traffic.NumberedPassword(key, id, 3)} {
			c := w.connect(id, unknown.String())
			attempts++
			_, _ = io.WriteString(c, strings.Repeat(fmt.Sprintf("CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n", unknown,
				basic(user(id, 0)+words, pass)), 10))
			if n, err := io.Copy(io.Discard, c); n > 0 {
				t.Errorf("%q: %d bytes came back, %v", words, n, err)
			}
			_ = c.Close()
		}
	}
	waitFor(t, "the end of all connections", func() bool { return w.Stats().Connections == 0 })
	if n := w.usage(id).Connections; int64(n) > attempts {
		t.Errorf("%d connections were counted for %d attempts", n, attempts)
	}
}
