package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentproxy/adapters/gateway/dial"
	"agentproxy/domain/egress"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

var names = resolver{"name.test": {"127.0.0.1"}, "inside.test": {"127.0.0.1", "10.0.0.1"}, "other.test": {"127.0.0.1"}}

func named(c *setup) { c.Resolver = names }

// Whatever protocols client and upstream use, the name is sent on, the target is
// reached from the upstream, and the bytes on the client's connection are charged.
func TestTrafficGoesThroughTheUpstream(t *testing.T) {
	t.Parallel()
	for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
		for _, name := range []string{"customer-1-session-abc", ""} {
			t.Run(fmt.Sprintf("%s as %q", p, name), func(t *testing.T) {
				s := newSeller(t, name, strings.Repeat("p", len(name)))
				w := begin(t, newCore(t), named)
				id := w.add(1, 0)
				w.via(id, s.endpoint(p))
				_, port, _ := net.SplitHostPort(echo(t))
				ping := func(c net.Conn) {
					_, _ = io.WriteString(c, "hello")
					_ = c.(*net.TCPConn).CloseWrite()
					if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
						t.Errorf("read %q, %v", got, err)
					}
					_ = c.Close()
				}
				ping(w.connect(id, "name.test:"+port))
				c, err := w.socks(user(id, 0), password(id)).Dial("tcp", "127.0.0.1:"+port)
				if err != nil {
					t.Fatal(err)
				}
				ping(c)
				if u := w.settled(id); u.Up != 10 || u.Down != 10 || u.Connections != 2 {
					t.Errorf("usage %+v, want 10, 10 and 2: the handshakes are free", u)
				}
				targets, users := s.targets()
				if want := []string{"name.test:" + port, "127.0.0.1:" + port}; fmt.Sprint(targets) != fmt.Sprint(want) || users[0] != name {
					t.Errorf("the upstream was asked for %v by %q", targets, users)
				}
				for _, o := range w.observed() {
					if o.Type != "tunnel" || o.ExitIP != "" || o.Evidence != "" || o.Bytes != 10 {
						t.Errorf("observed %+v", o)
					}
				}
			})
		}
	}
}

func TestPlainRequestsGoThroughTheUpstream(t *testing.T) {
	t.Parallel()
	for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
		s := newSeller(t, "u", "secret")
		w := begin(t, newCore(t), named)
		id := w.add(1, 0)
		w.via(id, s.endpoint(p))
		site := newSite(t, func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, r.Method, r.RequestURI, r.Host) })
		_, port, _ := net.SplitHostPort(site.Listener.Addr().String())
		c := w.dial()
		request := "GET http://name.test:" + port + "/a HTTP/1.1\r\nHost: name.test:" + port + "\r\n"
		fmt.Fprint(c, request+basic(user(id, 0), password(id))+"\r\n")
		res, body := response(t, c)
		if want := "GET/aname.test:" + port; res.StatusCode != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", p, res.StatusCode, body, want)
		}
		_ = c.Close()
		u := w.settled(id)
		if want := int64(len(request) + 2); u.Up != want || u.Down <= int64(len(body)) || s.out.Load() > u.Down {
			t.Errorf("%s: charged %d up and %d down, want %d up", p, u.Up, u.Down, want)
		}
		if o := w.noted(1)[0]; o.Type != "request" || o.Evidence != "success" || o.ExitIP != "" {
			t.Errorf("observed %+v", o)
		}
	}
}

// A target is checked before the upstream receives it, and an address is sent in the
// form in which it was checked.
func TestTargetsAreJudgedBeforeTheUpstream(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	w := begin(t, newCore(t), named)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	auth := basic(user(id, 0), password(id))
	for target, want := range map[string]int{"inside.test:80": 502, "10.0.0.1:80": 403, "0x7f.1:80": 403, "name.test:25": 403,
		"nowhere.test:80": 502, w.addr: 403, "[64:ff9b:1::1]:80": 403} {
		if got := w.connectAs(w.dial(), auth, target); got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}
	if targets, _ := s.targets(); s.accepted.Load() != 0 {
		t.Errorf("the upstream was asked for %v", targets)
	}
	_, port, _ := net.SplitHostPort(echo(t))
	w.connect(id, "[::ffff:127.0.0.1]:"+port)
	if targets, _ := s.targets(); len(targets) != 1 || targets[0] != "127.0.0.1:"+port {
		t.Errorf("the upstream was asked for %v", targets)
	}
}

// A proxy that a provider's answer named is checked like a target, one that the
// operator named is not.
func TestUpstreamsAreJudgedUnlessTrusted(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	addr := s.l.Addr().(*net.TCPAddr).AddrPort()
	b := newCore(t)
	w := begin(t, b, func(c *setup) {
		c.AddressPolicy = egress.Policy{}
		c.Resolver = resolver{"public.test": {"8.8.8.8"}, "proxy.test": {"127.0.0.1"}, "mixed.test": {"8.8.8.8", "127.0.0.1"}}
	})
	own := w.Gateway.Addr().(*net.TCPAddr).AddrPort()
	_, port, _ := net.SplitHostPort(echo(t))
	id := b.add(1, 0)
	auth := basic(user(id, 0), password(id))
	for _, tc := range []struct {
		host    string
		port    uint16
		trusted bool
		want    int
	}{
		{addr.Addr().String(), addr.Port(), false, 502},
		{"proxy.test", addr.Port(), false, 502},
		{"mixed.test", addr.Port(), false, 502},
		{own.Addr().String(), own.Port(), false, 502},
		{"nowhere.test", 80, true, 502},
		{"0x7f.1", addr.Port(), true, 502},
		{"", addr.Port(), true, 502},
		{addr.Addr().String(), 0, true, 502},
		{"proxy.test", addr.Port(), true, 200},
		{addr.Addr().String(), addr.Port(), true, 200},
	} {
		before := s.accepted.Load()
		w.via(id, procurement.Endpoint{Host: tc.host, Port: tc.port, User: "u", Password: "secret", Trusted: tc.trusted})
		w.Changed(id)
		if got := w.connectAs(w.dial(), auth, "public.test:"+port); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
		if came := s.accepted.Load() - before; came != 0 && tc.want != 200 {
			t.Errorf("%+v: %d connections", tc, came)
		}
	}
	for _, o := range w.observed("tunnel") {
		if o.Code != "UPSTREAM_UNREACHABLE" || o.Type != "failed" || o.Evidence != "http_error" {
			t.Errorf("observed %+v", o)
		}
	}
	open := begin(t, b, nil) // where loopback is open, the gateway's own port is not
	own = open.Gateway.Addr().(*net.TCPAddr).AddrPort()
	b.via(id, procurement.Endpoint{Host: own.Addr().String(), Port: own.Port()})
	if got := open.connectAs(open.dial(), auth, "127.0.0.1:"+port); got != 502 {
		t.Errorf("through the gateway itself: %d", got)
	}
	if o := b.observed("tunnel"); o[len(o)-1].Code != "UPSTREAM_UNREACHABLE" {
		t.Errorf("through the gateway itself: %+v", o[len(o)-1])
	}
}

// Traffic for an exit that should be behind a proxy never leaves from this host.
func TestAMissingUpstreamIsNotBypassed(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	w.change(id, func(r *traffic.Route) {
		r.Type, r.Exits, r.Upstreams = session.Static, make([]session.Exit, 2), []procurement.Endpoint{s.endpoint(session.HTTP)}
	})
	target := newCounting(t)
	for n, want := range []int{200, 502} {
		name := traffic.User{SessionID: id, Static: true, Number: n}.String()
		if got := w.connectAs(w.dial(), basic(name, password(id)), target.addr()); got != want {
			t.Errorf("IP %d: %d, want %d", n, got, want)
		}
	}
	waitFor(t, "the one connection", func() bool { return target.accepted.Load() == 1 })
}

// The first bytes of a target may come with the upstream's answer. They are relayed
// and charged like all others.
func TestEarlyBytesOfTheTargetReachTheClient(t *testing.T) {
	t.Parallel()
	for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
		for _, size := range []int{1, 3000, 30_000} {
			s := newSeller(t, "u", "secret")
			behind := strings.Repeat("0123456789", size/10+1)[:size]
			s.set(func(m *manner) { m.behind = behind })
			w := begin(t, newCore(t), nil)
			id := w.add(1, 0)
			w.via(id, s.endpoint(p))
			c := w.connect(id, echo(t))
			_, _ = io.WriteString(c, "and back")
			_ = c.CloseWrite()
			if got, err := io.ReadAll(c); err != nil || string(got) != behind+"and back" {
				t.Errorf("%s: read %d bytes, %v; want %d", p, len(got), err, size+8)
			}
			_ = c.Close()
			if u := w.settled(id); u.Up != 8 || u.Down != int64(size+8) {
				t.Errorf("%s: usage %+v, want 8 and %d", p, u, size+8)
			}
		}
	}
}

// Not even early bytes pass a limit.
func TestEarlyBytesKeepToTheLimit(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	behind := strings.Repeat("x", 20_000)
	s.set(func(m *manner) { m.behind = behind })
	w := begin(t, newCore(t), nil)
	id := w.add(1, 12_345)
	w.via(id, s.endpoint(session.HTTP))
	c := w.connect(id, echo(t))
	if got, err := io.ReadAll(c); err != nil || len(got) != 12_345 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Down != 12_345 {
		t.Errorf("charged %+v", u)
	}
}

func TestAnEarlyAnswerIsTheAnswer(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	behind := "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nearly"
	s.set(func(m *manner) { m.behind = behind })
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	c := w.dial()
	fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", echo(t), basic(user(id, 0), password(id)))
	if res, body := response(t, c); res.StatusCode != 200 || body != "early" {
		t.Errorf("%d %q", res.StatusCode, body)
	}
}

func TestProbeThroughTheUpstream(t *testing.T) {
	t.Parallel()
	site := newSite(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/public" {
			t.Errorf("the probe asked for %s", r.URL)
		}
		fmt.Fprint(rw, `{"data":{"ip":"198.51.100.7"}}`)
	})
	_, port, _ := net.SplitHostPort(site.Listener.Addr().String())
	b := newCore(t)
	w := begin(t, b, func(c *setup) {
		c.EchoURL, c.PublicEchoURL, c.AddressPolicy = site.URL+"/private", "http://echo.test:"+port+"/public", nil
	})
	for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
		s := newSeller(t, "u", "secret")
		id := b.add(1, 0)
		b.via(id, s.endpoint(p))
		route, _ := b.Route(t.Context(), id)
		got, err := w.Probe(t.Context(), route)
		if err != nil || got.ExitIP != "198.51.100.7" || got.Latency <= 0 {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
		if targets, _ := s.targets(); len(targets) != 1 || targets[0] != "echo.test:"+port {
			t.Errorf("%s: asked for %v", p, targets)
		}
		s.set(func(m *manner) { m.password = "another" })
		if _, err := w.Probe(t.Context(), route); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: a refused probe: %v", p, err)
		}
		route.Upstreams[0].Trusted = false
		if _, err := w.Probe(t.Context(), route); err == nil {
			t.Errorf("%s: a probe through a proxy that must not be dialled", p)
		}
	}
	s := newSeller(t, "", "")
	s.answers(func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	quick := begin(t, b, func(c *setup) { c.EchoURL, c.Timing.Connect = site.URL, 50*time.Millisecond })
	if _, err := quick.Probe(t.Context(), traffic.Route{Upstreams: []procurement.Endpoint{s.endpoint(session.HTTP)}}); err == nil {
		t.Error("a probe through a silent proxy")
	}
}

// A name may mean another address at the upstream: where that is the operator's network, or
// the operator asks for it, the address that was checked here is sent on.
func TestTheJudgedAddressIsSentOn(t *testing.T) {
	t.Parallel()
	answers := resolver{"rebind.test": {"2001:4860:4860::8888", "93.184.216.34"}, "six.test": {"2001:4860:4860::8888"}}
	for _, c := range []struct {
		how        dial.Resolution
		host, want string
	}{
		{dial.Automatic, "rebind.test", "93.184.216.34:443"}, // the fake is on loopback
		{dial.Here, "rebind.test", "93.184.216.34:443"},
		{dial.Here, "six.test", "[2001:4860:4860::8888]:443"},
		{dial.Name, "rebind.test", "rebind.test:443"},
		{dial.Name, "::ffff:93.184.216.34", "93.184.216.34:443"},
	} {
		for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
			w := begin(t, newCore(t), func(s *setup) {
				s.Resolver, s.Resolve = answers, map[string]dial.Resolution{"prov": c.how}
			})
			id := w.add(1, 0)
			s := newSeller(t, "u", "p")
			s.answers(writes("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"))
			s.replies(func(c net.Conn) { _, _ = c.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0}) })
			w.via(id, s.endpoint(p))
			w.change(id, func(r *traffic.Route) { r.Provider = "prov" })
			w.status(id, net.JoinHostPort(c.host, "443"))
			if targets, _ := s.targets(); len(targets) != 1 || targets[0] != c.want {
				t.Errorf("%s by %s, resolution %d: asked for %v, want %s", c.host, p, c.how, targets, c.want)
			}
		}
	}
}
