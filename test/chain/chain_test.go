package chain

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	socks "golang.org/x/net/proxy"

	"agentproxy/domain/procurement"
	"agentproxy/domain/traffic"
	"agentproxy/test/freeport"
	"agentproxy/test/realproxy"
)

func credential() string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user()+":"+password())) + "\r\n"
}

// connect opens a tunnel by CONNECT. What was counted until then is the
// handshake's; status is that of the answer.
func (w *world) connect(target string) (c *line, status int, body string) {
	w.t.Helper()
	c = w.dial()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, credential())
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b[0]) {
		if _, err := io.ReadFull(c, b); err != nil {
			w.t.Fatalf("after %q: %v", head, err)
		}
	}
	res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(head)), &http.Request{Method: "CONNECT"})
	if err != nil {
		w.t.Fatal(err)
	}
	if res.StatusCode != 200 {
		rest, _ := io.ReadAll(c)
		body = string(rest)
	}
	c.up, c.down = 0, 0
	return c, res.StatusCode, body
}

// tunnels are the ways of a client to a tunnel.
var tunnels = map[string]func(w *world, target string) *line{
	"CONNECT": func(w *world, target string) *line {
		c, status, body := w.connect(target)
		if status != 200 {
			w.t.Fatalf("CONNECT %s: %d %s", target, status, body)
		}
		return c
	},
	"SOCKS5": func(w *world, target string) *line {
		c := w.dial()
		d, err := socks.SOCKS5("tcp", w.addr, &socks.Auth{User: user(), Password: password()}, through{c})
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := d.Dial("tcp", target); err != nil {
			w.t.Fatalf("SOCKS5 to %s: %v", target, err)
		}
		c.up, c.down = 0, 0
		return c
	},
}

// through dials what is connected already.
type through struct{ c net.Conn }

func (t through) Dial(string, string) (net.Conn, error) { return t.c, nil }

// bulk is what is sent to a target and back.
var bulk = strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB

// exchange sends a request and reads the answer to its end.
func exchange(t *testing.T, c io.ReadWriter, request string) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(c, request); sent <- err }()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || string(body) != bulk {
		t.Fatalf("%d with %d bytes, %v", res.StatusCode, len(body), err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if from := res.Header.Get("X-From"); from != hopExit {
		t.Errorf("the target was reached from %s, want the proxy's %s", from, hopExit)
	}
}

func post(target string) string {
	return fmt.Sprintf("POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", target, len(bulk), bulk)
}

// A megabyte goes each way, and what is charged is what passed on the client's
// wire.
func TestTunnelsThroughIndependentProxies(t *testing.T) {
	for _, start := range realproxy.All {
		p := start(t, hopExit)
		for name, open := range tunnels {
			t.Run(name+" through "+p.Name, func(t *testing.T) {
				w := begin(t, p.Endpoint())
				plain := strings.Replace(site(t, (*httptest.Server).Start).Listener.Addr().String(), "127.0.0.1", "localhost", 1)
				c := open(w, plain)
				exchange(t, c, post(plain))
				_ = c.Close()
				if u := w.settled(); u.Up != c.up || u.Down != c.down || u.Connections != 1 || c.up != int64(len(post(plain))) {
					t.Errorf("charged %d up and %d down of %d connections, the client counted %d and %d", u.Up, u.Down, u.Connections, c.up, c.down)
				}
				if o := w.last(1); o.Type != "tunnel" || o.Bytes != c.up+c.down || o.ExitIP != "198.51.100.7" || o.Host != "localhost" {
					t.Errorf("observed %+v", o)
				}

				secure := site(t, (*httptest.Server).StartTLS)
				before := w.settled()
				c = open(w, secure.Listener.Addr().String())
				config := secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
				config.ServerName = "example.com"
				config.NextProtos = nil
				tc := tls.Client(c, config)
				exchange(t, tc, post("example.com"))
				_, _ = io.Copy(io.Discard, c) // the target's last words
				_ = c.Close()
				if u := w.settled(); u.Up-before.Up != c.up || u.Down-before.Down != c.down {
					t.Errorf("TLS: charged %d up and %d down, the client counted %d and %d", u.Up-before.Up, u.Down-before.Down, c.up, c.down)
				}
			})
		}
	}
}

func TestPlainRequestsThroughIndependentProxies(t *testing.T) {
	for _, start := range realproxy.All {
		p := start(t, hopExit)
		t.Run(p.Name, func(t *testing.T) {
			w := begin(t, p.Endpoint())
			s := site(t, (*httptest.Server).Start)
			target := s.Listener.Addr().String()
			request := strings.Replace(post(target), "POST /", "POST http://"+target+"/", 1)
			head, body, _ := strings.Cut(request, "\r\n\r\n")
			c := w.dial()
			exchange(t, c, head+"\r\n"+credential()+"\r\n"+body)
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
			if u := w.settled(); u.Up != int64(len(request)) || u.Down != c.down || u.Connections != 1 {
				t.Errorf("charged %d up and %d down of %d connections, want %d and %d", u.Up, u.Down, u.Connections, len(request), c.down)
			}
			if o := w.last(1); o.Type != "request" || o.StatusCode != 200 || o.Evidence != "success" {
				t.Errorf("observed %+v", o)
			}
		})
	}
}

// Refusals of independent proxies are mapped to the codes of the gateway. Neither the
// answer nor the event has their credential.
func TestRefusalsOfIndependentProxies(t *testing.T) {
	closed := freeport.Address(t)
	type refusal struct {
		status       int
		code, reason string
	}
	want := map[string]map[string]refusal{
		"squid": {
			"the credential": {502, "UPSTREAM_AUTH", "407 Proxy Authentication Required"},
			"the target":     {403, "UPSTREAM_REFUSED", "403 Forbidden"},
			"a closed port":  {502, "UPSTREAM_FAILED", "503 Service Unavailable"},
			"no proxy":       {502, "UPSTREAM_UNREACHABLE", ""},
		},
		"tinyproxy": { // a missing credential is 407, a wrong one 401
			"the credential": {502, "UPSTREAM_AUTH", "401 Unauthorized"},
			"the target":     {403, "UPSTREAM_REFUSED", "403 Filtered"},
			"a closed port":  {502, "UPSTREAM_FAILED", "500 Unable to connect"},
			"no proxy":       {502, "UPSTREAM_UNREACHABLE", ""},
		},
		"microsocks": { // it refuses no target
			"the credential": {502, "UPSTREAM_AUTH", ""},
			"a closed port":  {502, "TARGET_UNREACHABLE", "SOCKS5 reply 5: connection refused"},
			"no proxy":       {502, "UPSTREAM_UNREACHABLE", ""},
		},
	}
	targets := map[string]string{"the target": "refused.test:9", "a closed port": closed}
	for _, start := range realproxy.All {
		p := start(t, hopExit)
		w := begin(t, p.Endpoint())
		n := 0
		for _, what := range []string{"the credential", "the target", "a closed port", "no proxy"} {
			r, known := want[p.Name][what]
			if !known {
				continue
			}
			t.Run(what+" by "+p.Name, func(t *testing.T) {
				hop := p.Endpoint()
				target := targets[what]
				switch what {
				case "the credential":
					hop.Password, target = "wrong-"+realproxy.Password, "127.0.0.1:80"
				case "no proxy":
					p.Kill()
					target = "127.0.0.1:80"
				}
				w.set(func(r *traffic.Route) { r.Upstreams = []procurement.Endpoint{hop} })
				_, status, body := w.connect(target)
				n++
				o := w.last(n)
				if status != r.status || o.StatusCode != status || o.Code != r.code || o.Type != "failed" || !strings.Contains(body, r.code) {
					t.Errorf("%d %s, observed %+v; want %d %s", status, body, o, r.status, r.code)
				}
				if !strings.Contains(o.HowToFix, r.reason) {
					t.Errorf("the feed has %q, want %q", o.HowToFix, r.reason)
				}
				if shown := body + o.HowToFix; strings.Contains(shown, realproxy.User) || strings.Contains(shown, realproxy.Password) {
					t.Errorf("the credential is revealed: %s %s", body, o.HowToFix)
				}
			})
		}
		if u := w.settled(); u.Used() != 0 {
			t.Errorf("refusals by %s are charged: %+v", p.Name, u)
		}
	}
}

// The death of a proxy ends its tunnels, and each has an event.
func TestTunnelsEndWithTheirProxy(t *testing.T) {
	for _, start := range realproxy.All {
		p := start(t, hopExit)
		t.Run(p.Name, func(t *testing.T) {
			w := begin(t, p.Endpoint())
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				if c, err := l.Accept(); err == nil {
					_, _ = io.Copy(c, c)
					_ = c.Close()
				}
			}()
			c, _, _ := w.connect(l.Addr().String())
			_, _ = io.WriteString(c, "x")
			if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			p.Kill()
			if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil {
				t.Errorf("read %d bytes of a dead proxy", n)
			} else if e, ok := err.(net.Error); ok && e.Timeout() {
				t.Error("the tunnel is still open")
			}
			_ = c.Close()
			if o := w.last(1); o.Type != "tunnel" || o.Bytes != 2 {
				t.Errorf("observed %+v", o)
			}
			if u := w.settled(); u.Up != 1 || u.Down != 1 {
				t.Errorf("charged %+v", u)
			}
		})
	}
}
