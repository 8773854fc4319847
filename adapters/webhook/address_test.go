package webhook_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/adapters/webhook"
	"agentproxy/domain/egress"
)

// refusedHosts are what no webhook reaches: each class of address, in the
// spellings that others read as one.
var refusedHosts = []string{
	"127.0.0.1", "127.9.9.9", "127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "0.0.0.0", "0",
	"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.8",
	"192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255",
	"[::]", "[::1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::7f00:1]", "[64:ff9b::a00:1]", "[64:ff9b:1::7f00:1]", "[64:ff9b:1::808:808]", "[2002:7f00:1::]",
	"[2002:808:808::1]", "[2001::1]", "[2001:db8::1]", "[fc00::1]", "[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25eth0]",
	"[fec0::1]", "[ff02::1]", "[2606:4700::1111%25eth0]",
}

func TestAddressesThatAreRefused(t *testing.T) {
	w := begin(t, nil, nil)
	for _, host := range refusedHosts {
		out := w.send("https://" + host + "/x")
		if out.StatusCode != 0 {
			t.Errorf("%s answered %d", host, out.StatusCode)
		}
		mustNotName(t, out.Err, host)
	}
	if len(w.dials()) != 0 || w.looked != 0 {
		t.Errorf("dialled %v, looked up %d names", w.dials(), w.looked)
	}
}

func TestNamesThatLeadThereAreRefused(t *testing.T) {
	var answer atomic.Pointer[[]netip.Addr]
	w := begin(t, nil, func(c *webhook.Config) {
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return *answer.Load(), nil }
	})
	for _, host := range refusedHosts {
		addr, err := netip.ParseAddr(strings.NewReplacer("[", "", "]", "", "%25", "%").Replace(host))
		if err != nil {
			continue // a spelling
		}
		for _, answers := range [][]netip.Addr{{addr}, {public, addr}, {addr, public}, {public, public, public, public, public, addr}} {
			answer.Store(&answers)
			if out := w.send(hook); out.StatusCode != 0 {
				t.Errorf("%v answered %d", answers, out.StatusCode)
			} else {
				mustNotName(t, out.Err, host)
			}
		}
	}
	if len(w.dials()) != 0 {
		t.Errorf("dialled %v", w.dials())
	}
}

// mustNotName fails when a text for the agent holds an address.
func mustNotName(t *testing.T, text, host string) {
	t.Helper()
	if text == "" || strings.Contains(text, strings.Trim(host, "[]")) && len(host) > 3 || strings.Contains(text, "8.8.8.8") || strings.Contains(text, "127.0") {
		t.Errorf("%s: the agent reads %q", host, text)
	}
}

func TestARebindingNameReachesNothing(t *testing.T) {
	var hits atomic.Int32
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	trap.Config.ConnState = func(net.Conn, http.ConnState) { hits.Add(1) }
	defer trap.Close()
	port := netip.MustParseAddrPort(trap.Listener.Addr().String()).Port()
	loopback := netip.MustParseAddr("127.0.0.1")

	var asked atomic.Int32
	w := begin(t, nil, func(c *webhook.Config) {
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			if asked.Add(1)%2 == 1 {
				return []netip.Addr{public}, nil
			}
			return []netip.Addr{loopback}, nil
		}
		c.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
			if target.Addr().IsLoopback() {
				return new(net.Dialer).DialContext(ctx, "tcp", target.String())
			}
			return closed(ctx, target)
		}
	})
	for range 100 {
		before := asked.Load()
		w.send(fmt.Sprintf("https://rebind.example:%d/x", port))
		if asked.Load() != before+1 {
			t.Fatalf("one connection asked %d times", asked.Load()-before)
		}
	}
	for _, target := range w.dials() {
		if target.Addr() != public {
			t.Errorf("dialled %v", target)
		}
	}
	if len(w.dials()) != 50 || hits.Load() != 0 {
		t.Errorf("%d dials and %d connections to loopback, want 50 and 0", len(w.dials()), hits.Load())
	}
}

func TestEveryConnectionIsJudgedAnew(t *testing.T) {
	inside := atomic.Bool{}
	w := begin(t, func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Connection", "close") }, func(c *webhook.Config) {
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) {
			if inside.Load() {
				return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
			}
			return []netip.Addr{public}, nil
		}
	})
	if out := w.send(hook); !out.OK() {
		t.Fatalf("%+v", out)
	}
	inside.Store(true)
	if out := w.send(hook); out.StatusCode != 0 || len(w.requests()) != 1 {
		t.Errorf("%+v", out)
	}
}

func TestAKeptConnectionIsUsedAgain(t *testing.T) {
	w := begin(t, nil, nil)
	for range 5 {
		if out := w.send(hook); !out.OK() {
			t.Fatalf("%+v", out)
		}
	}
	if n := len(w.dials()); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestPorts(t *testing.T) {
	w := begin(t, nil, nil)
	for _, port := range []string{"0", "25", "465", "587", "65536", "-1", "", "443x", "+443", "０"} {
		if out := w.send("https://hooks.example.com:" + port + "/x"); out.StatusCode != 0 {
			t.Errorf("port %q answered %d", port, out.StatusCode)
		}
	}
	if len(w.dials()) != 0 {
		t.Errorf("dialled %v", w.dials())
	}
	for _, port := range []uint16{1, 80, 8443, 65535} {
		url := fmt.Sprintf("https://hooks.example.com:%d", port)
		if out := w.send(url); !out.OK() {
			t.Errorf("%s: %+v", url, out)
		}
		if last := w.dials()[len(w.dials())-1]; last != netip.AddrPortFrom(public, port) {
			t.Errorf("%s dialled %v", url, last)
		}
	}
}

func TestURLsThatAreRefused(t *testing.T) {
	w := begin(t, nil, nil)
	for _, url := range []string{
		"", "/x", "x", "//hooks.example.com/x", "http://hooks.example.com/x", "HTTP://hooks.example.com/x", "ftp://hooks.example.com/x",
		"https:hooks.example.com", "https://", "https:///x", "https://:443/x", "https://user@hooks.example.com/x", "https://user:secret@hooks.example.com/x",
		"https://@hooks.example.com/x", "https://hooks.example.com@127.0.0.1/x", "https://127.0.0.1#@hooks.example.com/",
		"https://127.0.0.1\\@hooks.example.com/", "https://hooks.example.com\r\nX: 1/", "https://hooks.example.com /x", "https://[::1/",
		"https://bücher.example/", "https://１２７.0.0.1/", "https://127。0。0。1/", "https://%31%32%37.0.0.1/", "https://a..b/", "https://.a/",
		"javascript:alert(1)", "file:///etc/passwd", "unix:///var/run/x.sock", "https://" + strings.Repeat("a", 254) + "/",
	} {
		if out := w.send(url); out.StatusCode != 0 {
			t.Errorf("%q answered %d", url, out.StatusCode)
		} else if strings.Contains(out.Err, "secret") {
			t.Errorf("%q: %s", url, out.Err)
		}
	}
	if len(w.dials()) != 0 {
		t.Errorf("dialled %v", w.dials())
	}
	for _, url := range []string{"HTTPS://Hooks.Example.COM/x", hook + "#part", "https://hooks.example.com", "https://hooks.example.com?x=1"} {
		if out := w.send(url); !out.OK() {
			t.Errorf("%q: %+v", url, out)
		}
	}
}

func TestDevelopmentModeAllowsHTTPAndLoopback(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(204) }))
	defer server.Close()
	own := netip.MustParseAddrPort(server.Listener.Addr().String())
	for _, c := range []struct {
		claim  string
		config webhook.Config
		code   int
	}{
		{"development mode", webhook.Config{Dev: true}, 204},
		{"our own listener in it", webhook.Config{Dev: true, Policy: egress.Policy{Refuse: []netip.AddrPort{own}}}, 0},
		{"no development mode", webhook.Config{}, 0},
		{"an allowed network opens no http", webhook.Config{Policy: egress.Policy{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}}, 0},
		{"nor does a policy of its own", webhook.Config{Policy: egress.Policy{Loopback: true}}, 0},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s := webhook.New(c.config) // its own resolver and dialer
			defer s.Close()
			if out, err := s.Send(context.Background(), message(server.URL)); err != nil || out.StatusCode != c.code {
				t.Errorf("%+v, %v; want %d", out, err, c.code)
			}
		})
	}
	t.Run("a name for it, by the system's resolver", func(t *testing.T) {
		for dev, want := range map[bool]int{true: 204, false: 0} {
			s := webhook.New(webhook.Config{Dev: dev})
			scheme := map[bool]string{true: "http", false: "https"}[dev]
			out, err := s.Send(context.Background(), message(fmt.Sprintf("%s://localhost:%d/x", scheme, own.Port())))
			if err != nil || out.StatusCode != want || !dev && !strings.Contains(out.Err, "not a public address") {
				t.Errorf("development mode %v: %+v, %v", dev, out, err)
			}
			s.Close()
		}
	})
	t.Run("loopback is closed to https too outside of it", func(t *testing.T) {
		w := begin(t, nil, func(c *webhook.Config) { c.Policy.Loopback = true })
		if out := w.send("https://127.0.0.1/"); out.StatusCode != 0 || len(w.dials()) != 0 {
			t.Errorf("%+v", out)
		}
	})
	t.Run("in it the rest stays closed", func(t *testing.T) {
		w := begin(t, nil, func(c *webhook.Config) { c.Dev = true })
		for _, host := range refusedHosts {
			addr, _ := netip.ParseAddr(strings.Trim(host, "[]"))
			if addr.Unmap().IsLoopback() {
				continue
			}
			if out := w.send("http://" + host + "/"); out.StatusCode != 0 {
				t.Errorf("%s answered %d", host, out.StatusCode)
			}
		}
		if len(w.dials()) != 0 {
			t.Errorf("dialled %v", w.dials())
		}
	})
}

func TestAnAllowedNetworkIsReached(t *testing.T) {
	w := begin(t, nil, func(c *webhook.Config) {
		c.Policy.Allow = []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}
		c.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "a.example.com" {
				return []netip.Addr{netip.MustParseAddr("10.1.2.3")}, nil
			}
			return []netip.Addr{netip.MustParseAddr("10.2.0.1")}, nil
		}
	})
	if out := w.send("https://a.example.com"); !out.OK() {
		t.Errorf("inside: %+v", out)
	}
	if out := w.send("https://b.example.com"); out.StatusCode != 0 {
		t.Errorf("outside: %+v", out)
	}
}

func TestOtherAddressesAreTriedWithinTheTime(t *testing.T) {
	answers := []netip.Addr{public, netip.MustParseAddr("::ffff:9.9.9.9"), netip.MustParseAddr("1.1.1.1")}
	w := begin(t, nil, func(c *webhook.Config) {
		through := c.Dial
		c.Timeout = 3 * time.Second
		c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return answers, nil }
		c.Dial = func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
			switch target.Addr() {
			case answers[0]: // silent
				<-ctx.Done()
				return nil, ctx.Err()
			case answers[2]:
				return through(ctx, target)
			}
			return closed(ctx, target)
		}
	})
	if out := w.send(hook); !out.OK() {
		t.Fatalf("%+v", out)
	}
	want := []netip.AddrPort{netip.MustParseAddrPort("8.8.8.8:443"), netip.MustParseAddrPort("9.9.9.9:443"), netip.MustParseAddrPort("1.1.1.1:443")}
	if got := w.dials(); !slices.Equal(got, want) {
		t.Errorf("dialled %v, want %v", got, want)
	}
	t.Run("four of them", func(t *testing.T) {
		w := begin(t, nil, func(c *webhook.Config) {
			c.Resolve = func(context.Context, string) ([]netip.Addr, error) { return slices.Repeat(answers, 5), nil }
			c.Dial = closed
		})
		if out := w.send(hook); out.StatusCode != 0 || len(w.dials()) != 4 {
			t.Errorf("%+v after %d dials", out, len(w.dials()))
		}
	})
}

func FuzzSend(f *testing.F) {
	for _, url := range []string{hook, "https://127.1/", "http://[::1]:25/", "https://user@8.8.8.8:8443/", "https://[64:ff9b::7f00:1]/", "https://8.8.8.8"} {
		f.Add(url)
	}
	var dialled atomic.Pointer[netip.AddrPort]
	sender := webhook.New(webhook.Config{
		Timeout: time.Second,
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{public, netip.MustParseAddr("127.0.0.1")}, nil
		},
		Dial: func(ctx context.Context, target netip.AddrPort) (net.Conn, error) {
			dialled.Store(&target)
			return closed(ctx, target)
		},
	})
	f.Fuzz(func(t *testing.T, url string) {
		dialled.Store(nil)
		out, err := sender.Send(context.Background(), message(url))
		if err != nil || out.StatusCode != 0 || out.Err == "" {
			t.Fatalf("%+v, %v", out, err)
		}
		if target := dialled.Load(); target != nil && (egress.Policy{}.Check(*target) != nil || !strings.HasPrefix(strings.ToLower(url), "https:")) {
			t.Fatalf("%q dialled %v", url, target)
		}
	})
}
