package upstreamproxy_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/proxy"

	"agentproxy/test/fake/upstreamproxy"
)

func newOxylabs(t *testing.T) *upstreamproxy.Proxy {
	return upstreamproxy.New(t, "oxylabs", "acme", "pw")
}

// client returns a client of a proxy that does not reuse connections.
func client(t *testing.T, p *upstreamproxy.Proxy, user, password string) *http.Client {
	t.Helper()
	to := &url.URL{Scheme: "http", Host: p.Addr().String(), User: url.UserPassword(user, password)}
	tr := &http.Transport{Proxy: http.ProxyURL(to), DisableKeepAlives: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 2 * time.Minute}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	res, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func TestATargetSeesTheExitOfTheSession(t *testing.T) {
	t.Parallel()
	p := newOxylabs(t)
	now, mu := time.Unix(1e9, 0), sync.Mutex{}
	p.Clock(func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	exit := func(user string) string {
		_, text := get(t, client(t, p, user, "pw"), p.Echo)
		return text
	}
	first := exit("customer-acme-sessid-a1-sesstime-5")
	if !strings.HasPrefix(first, "127.") || exit("customer-acme-sessid-a1-sesstime-5") != first {
		t.Error("a session does not keep its exit")
	}
	if exit("customer-acme-sessid-a2-sesstime-5") == first {
		t.Error("another session has the same exit")
	}
	if first, second := exit("customer-acme"), exit("customer-acme"); first == second {
		t.Error("without a session two requests have one exit")
	}
	mu.Lock()
	now = now.Add(5 * time.Minute)
	mu.Unlock()
	if exit("customer-acme-sessid-a1-sesstime-5") == first {
		t.Error("a session keeps its exit after its time")
	}
	seen := p.Sessions()
	if len(seen) != 6 || seen[0].Session != "a1" || seen[0].Exit.String() != first || seen[0].Protocol != "http" {
		t.Errorf("seen are %d, the first is %+v", len(seen), seen[0])
	}
}

func TestTunnelsAreRelayedAndCounted(t *testing.T) {
	t.Parallel()
	target := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
	}))
	defer target.Close()
	for _, scheme := range []string{"connect", "socks5"} {
		t.Run(scheme, func(t *testing.T) {
			p := newOxylabs(t)
			p.Route("shop.test", target.Listener.Addr().String())
			tr := target.Client().Transport.(*http.Transport).Clone()
			tr.TLSClientConfig.ServerName, tr.DisableKeepAlives = "example.com", true
			if scheme == "connect" {
				tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: p.Addr().String(), User: url.UserPassword("customer-acme-cc-DE", "pw")})
			} else {
				d, err := proxy.SOCKS5("tcp", p.Addr().String(), &proxy.Auth{User: "customer-acme-cc-DE", Password: "pw"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					return d.(proxy.ContextDialer).DialContext(ctx, network, addr)
				}
			}
			status, body := get(t, &http.Client{Transport: tr, Timeout: 2 * time.Minute}, "https://shop.test/")
			if status != 200 || len(body) != 100_000 {
				t.Fatalf("got %d, %d bytes", status, len(body))
			}
			up, down := p.Bytes("acme", "pw")
			if up < 100 || down < 100_000 {
				t.Errorf("counted %d and %d", up, down)
			}
			s := p.Sessions()
			if len(s) != 1 || s[0].Protocol != scheme || s[0].Target != "shop.test:443" || s[0].Country != "DE" {
				t.Errorf("seen %+v", s)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		claim  string
		set    func(*upstreamproxy.Proxy)
		user   string
		status int
	}{
		{"a wrong account", func(*upstreamproxy.Proxy) {}, "customer-other", 407},
		{"a user name that is not of the grammar", func(*upstreamproxy.Proxy) {}, "customer-acme-city-x-session-y", 407},
		{"an account that is off", func(p *upstreamproxy.Proxy) { p.Enable("acme", "pw", false) }, "customer-acme", 407},
		{"a country without exits", func(p *upstreamproxy.Proxy) { p.Stock("DE", false) }, "customer-acme-cc-DE", 502},
		{"402", func(p *upstreamproxy.Proxy) { p.Fail(upstreamproxy.PaymentRequired) }, "customer-acme", 402},
		{"403", func(p *upstreamproxy.Proxy) { p.Fail(upstreamproxy.Forbidden) }, "customer-acme", 403},
		{"429", func(p *upstreamproxy.Proxy) { p.Fail(upstreamproxy.TooMany) }, "customer-acme", 429},
		{"503", func(p *upstreamproxy.Proxy) { p.Always(upstreamproxy.Unavailable) }, "customer-acme", 503},
		{"a slow answer is an answer", func(p *upstreamproxy.Proxy) { p.Late(time.Millisecond); p.Fail(upstreamproxy.Slow) }, "customer-acme", 200},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := newOxylabs(t)
			c.set(p)
			if status, _ := get(t, client(t, p, c.user, "pw"), p.Echo); status != c.status {
				t.Errorf("got %d, want %d", status, c.status)
			}
		})
	}
	for _, f := range []upstreamproxy.Fault{upstreamproxy.Garbage, upstreamproxy.Drop} {
		t.Run(string(f), func(t *testing.T) {
			p := newOxylabs(t)
			p.Always(f)
			if res, err := client(t, p, "customer-acme", "pw").Get(p.Echo); err == nil {
				t.Errorf("got %d", res.StatusCode)
			}
		})
	}
}

func TestACapEndsAnAccountInTheSellersWords(t *testing.T) {
	t.Parallel()
	p := upstreamproxy.New(t, "proxies.sx", "psx_acme", "pak_one")
	p.Account("psx_acme", "pak_two", 1)
	for i, want := range []int{200, 407} {
		status, body := get(t, client(t, p, "psx_acme-any-any", "pak_two"), p.Echo)
		if status != want || status == 407 && !strings.HasPrefix(body, "E_CAP_EXCEEDED: ") {
			t.Errorf("%d: %d %s", i, status, body)
		}
	}
	if status, _ := get(t, client(t, p, "psx_acme-any-any", "pak_one"), p.Echo); status != 200 {
		t.Errorf("another key of the account: %d", status)
	}
	if up, down := p.Bytes("psx_acme", "pak_two"); up == 0 || down == 0 {
		t.Errorf("counted %d and %d", up, down)
	}
}

func TestCONNECTIsRefusedAndSOCKSToo(t *testing.T) {
	t.Parallel()
	p := newOxylabs(t)
	p.Always(upstreamproxy.Unauthorized)
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 407 || res.Header.Get("Proxy-Authenticate") == "" || !res.Close {
		t.Errorf("CONNECT: %+v, %v", res, err)
	}
	d, err := proxy.SOCKS5("tcp", p.Addr().String(), &proxy.Auth{User: "customer-acme", Password: "pw"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Dial("tcp", "a.test:443"); err == nil {
		t.Error("SOCKS5 was let through")
	}
	p.Always(upstreamproxy.None)
	if _, err := d.Dial("tcp", "a.test:443"); err == nil {
		t.Error("a name without a route was reached")
	}
}

func TestCutEndsTunnels(t *testing.T) {
	t.Parallel()
	p := newOxylabs(t)
	target, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	d, err := proxy.SOCKS5("tcp", p.Addr().String(), &proxy.Auth{User: "customer-acme", Password: "pw"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Dial("tcp", target.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p.Cut()
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Minute))
	if _, err := c.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the tunnel goes on: %v", err)
	}
}
