package gateway_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentproxy/domain/egress"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, static := w.add(1, 0), w.add(2, 0, "127.0.0.3", "127.0.0.4")
	w.change(id, func(r *traffic.Route) { r.Rotation = 2 })
	w.change(static, func(r *traffic.Route) { r.Type = session.Static })
	unknown := "sess_99999999999999999999"
	ip := func(n int) string { return traffic.User{SessionID: static, Static: true, Number: n}.String() }
	target := echo(t)
	for _, c := range []struct {
		name, auth string
		want       int
	}{
		{"right", basic(user(id, 0), password(id)), 200},
		{"an old user name after rotations", basic(user(id, 1), password(id)), 200},
		{"the current user name", basic(user(id, 2), password(id)), 200},
		{"a user name of the future", basic(user(id, 3), password(id)), 407},
		{"none", "", 407},
		{"another scheme", "Proxy-Authorization: Bearer x\r\n", 407},
		{"a wrong password", basic(user(id, 0), "wrong"), 407},
		{"another session's password", basic(user(id, 0), password(static)), 407},
		{"not a user name", basic("admin", password(id)), 407},
		{"an unknown session", basic(user(unknown, 0), password(unknown)), 407},
		{"static, first IP", basic(ip(0), password(static)), 200},
		{"static, second IP", basic(ip(1), password(static)), 200},
		{"static, no such IP", basic(ip(2), password(static)), 407},
		{"static, dynamic user name", basic(user(static, 0), password(static)), 407},
		{"dynamic, static user name", basic(traffic.User{SessionID: id, Static: true}.String(), password(id)), 407},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := w.connectAs(w.dial(), c.auth, target); got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
	waitFor(t, "five tunnels", func() bool { return w.Stats().Tunnels == 5 })
	if seen := w.observed("tunnel", "auth_failed"); len(seen) != 0 {
		t.Errorf("wrong credentials were observed: %+v", seen)
	}
	wrong := w.observed("tunnel")
	if len(wrong) != 2 || wrong[0].SessionID != id || wrong[0].StatusCode != 407 || wrong[0].Code != "PROXY_AUTH_REQUIRED" || wrong[0].HowToFix == "" {
		t.Errorf("of the wrong passwords of user names were observed %+v", wrong)
	}
}

// The exit of a static session is the one that the user name's index names.
func TestStaticExits(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.3", "127.0.0.4")
	w.change(id, func(r *traffic.Route) { r.Type = session.Static })
	l := listen(t)
	go serve(l, func(c net.Conn) { _, _ = io.WriteString(c, c.RemoteAddr().String()) })
	for i, want := range []string{"127.0.0.3:", "127.0.0.4:"} {
		c := w.dial()
		name := traffic.User{SessionID: id, Static: true, Number: i}.String()
		if status := w.connectAs(c, basic(name, password(id)), l.Addr().String()); status != 200 {
			t.Fatal(status)
		}
		if b, _ := io.ReadAll(c); !strings.HasPrefix(string(b), want) {
			t.Errorf("seen from %s, want %s", b, want)
		}
	}
}

// What leaves from an address that a static session lost or gave back is closed, what leaves from the others goes on,
// and one that ended before its session is refused by its user name.
func TestLostAddressesCarryNothing(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.3", "127.0.0.4", "127.0.0.5")
	w.change(id, func(r *traffic.Route) { r.Type = session.Static })
	target := echo(t)
	name := func(i int) string { return traffic.User{SessionID: id, Static: true, Number: i}.String() }
	open := make([]net.Conn, 3)
	for i := range open {
		open[i] = w.dial()
		if status := w.connectAs(open[i], basic(name(i), password(id)), target); status != 200 {
			t.Fatal(status)
		}
	}
	w.change(id, func(r *traffic.Route) {
		r.Exits = slices.Clone(r.Exits)
		r.Exits[0].IP, r.Exits[1].Ended = netip.MustParseAddr("127.0.0.6"), true
	})
	w.Changed(id)
	for i := range 2 {
		if _, err := io.Copy(io.Discard, open[i]); err != nil && !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the connection from address %d: %v", i, err)
		}
	}
	if err := ping(open[2]); err != nil {
		t.Errorf("the connection from an address that stays: %v", err)
	}
	for i, want := range []int{200, 410, 200} {
		if status := w.connectAs(w.dial(), basic(name(i), password(id)), target); status != want {
			t.Errorf("address %d: %d, want %d", i, status, want)
		}
	}
}

func TestSessionStates(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // of the gateway's clock
	w := begin(t, newCore(t), func(c *setup) {
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	target := echo(t)
	for i, c := range []struct {
		status session.Status
		reason session.Reason
		want   int
		code   string
	}{
		{session.Active, "", 200, ""},
		{session.Creating, "", 503, "SESSION_NOT_READY"},
		{session.Terminated, session.AgentRequest, 410, "SESSION_EXPIRED"},
		{session.Expired, session.TimeExpired, 410, "SESSION_EXPIRED"},
		{session.Expired, session.TrafficExhausted, 402, "TRAFFIC_EXHAUSTED"},
		{session.Failed, session.ProviderFailed, 410, "SESSION_EXPIRED"},
	} {
		id := w.add(i, 0)
		w.change(id, func(r *traffic.Route) { r.Status, r.Reason = c.status, c.reason })
		if got := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.status, c.reason, got, c.want)
		}
		if c.code == "" {
			continue
		}
		seen := w.observed()
		if o := seen[len(seen)-1]; o.Code != c.code || o.Evidence != "" || o.Type != "refused" || o.SessionID != id {
			t.Errorf("observed %+v", o)
		}
		// The core notifies of the change.
		w.change(id, func(r *traffic.Route) { r.Status, r.Reason = session.Active, "" })
		w.Changed("")
		if got := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target); got != 200 {
			t.Errorf("%s became active: %d", c.status, got)
		}
	}
	id := w.add(99, 0)
	w.change(id, func(r *traffic.Route) { r.ExpiresAt = time.Now().Add(time.Hour) })
	w.Changed(id)
	c := w.connect(id, target)
	ahead.Store(int64(time.Hour))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("not cut when its time was over")
	}
	if got := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target); got != 410 {
		t.Errorf("after its time: %d", got)
	}
}

// A refused password costs no look-up, and past the limit another status; a right
// one is never refused for them.
func TestAuthFailureLimit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.AuthFailureLimit = 5 })
	id := w.add(1, 0)
	target := echo(t)
	for i := range 10 {
		want := 407
		if i >= 5 {
			want = 429
		}
		if got := w.connectAs(w.dial(), basic(user(id, 0), "wrong"), target); got != want {
			t.Errorf("guess %d: %d, want %d", i, got, want)
		}
	}
	if w.routes != 0 {
		t.Errorf("%d look-ups", w.routes)
	}
	w.connect(id, target)
}

// What follows a refused CONNECT was meant for a tunnel: it is never run.
func TestNothingRunsBehindARefusedConnect(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	second := "GET " + s.URL + "/second HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n"
	for _, first := range []string{
		"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n",
		"CONNECT 10.0.0.1:80 HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n",
		"CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		c := w.dial()
		_, _ = io.WriteString(c, first+second+strings.Repeat(second, 50))
		got, err := io.ReadAll(c)
		if err != nil || strings.Count(string(got), "Proxy-Status: ") != 1 {
			t.Errorf("%q, %v", got, err)
		}
		if !strings.Contains(string(got), "Connection: close") {
			t.Errorf("%q", got)
		}
	}
	if n := s.count(); n != 0 {
		t.Errorf("%d requests were run", n)
	}
}

func TestHeadLimits(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), lingers)
	hasty := begin(t, w.fakeCore, func(c *setup) { c.Timing.Header = 200 * time.Millisecond })
	id := w.add(1, 0)
	head := "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id))
	t.Run("a long head", func(t *testing.T) {
		c := w.dial()
		_, _ = io.WriteString(c, head+"X: "+strings.Repeat("x", 40<<10)+"\r\n\r\n")
		if res, body := response(t, c); res.StatusCode != 431 || !strings.Contains(body, "HEAD_TOO_LARGE") {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	})
	t.Run("a slow head", func(t *testing.T) {
		c := hasty.dial()
		go func() {
			for text := []byte(head + "X: "); ; text = append(text[1:], 'x') {
				if _, err := c.Write(text[:1]); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("held for ever")
		}
	})
	t.Run("nothing at all", func(t *testing.T) {
		if _, err := io.ReadAll(hasty.dial()); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("held for ever")
		}
	})
}

// special are forbidden targets, in spellings that bypass naive checks.
var special = []string{
	"0.0.0.0", "0.0.0.1", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1",
	"169.254.169.254", "172.16.0.1", "192.0.0.1", "192.0.2.1", "192.168.0.1", "198.18.0.1", "198.51.100.1",
	"203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "168.63.129.16",
	"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1",
	"100::1", "2001::1", "2001:db8::1", "2002:7f00:1::", "fc00::1", "fe80::1", "ff02::1",
}

func TestSpecialAddresses(t *testing.T) {
	t.Parallel()
	trap, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trap.Close() })
	var caught atomic.Int64
	go serve(trap, func(net.Conn) { caught.Add(1) })
	port := trap.Addr().(*net.TCPAddr).Port
	w := begin(t, newCore(t), func(c *setup) {
		c.AddressPolicy = egress.Policy{}
		c.Resolver = resolver{
			"localhost":   {"127.0.0.1", "::1"},
			"mixed.test":  {"93.184.216.34", "127.0.0.1"},
			"inside.test": {"192.168.1.1"},
		}
	})
	id := w.add(1, 0)
	auth := basic(user(id, 0), password(id))
	names := []string{"localhost", "mixed.test", "inside.test"}
	for _, host := range append(special, names...) {
		target := net.JoinHostPort(host, fmt.Sprint(port))
		want, code := 403, "TARGET_REFUSED"
		if slices.Contains(names, host) { // which are not confirmed
			want, code = 502, "TARGET_UNREACHABLE"
		}
		if status := w.connectAs(w.dial(), auth, target); status != want {
			t.Errorf("CONNECT %s: %d", target, status)
		}
		c := w.dial()
		fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", target, auth)
		if res, body := response(t, c); res.StatusCode != want || !strings.Contains(body, code) {
			t.Errorf("GET %s: %d %s", target, res.StatusCode, body)
		}
		if c, err := w.socks(user(id, 0), password(id)).Dial("tcp", target); err == nil {
			_ = c.Close()
			t.Errorf("SOCKS5 %s: opened", target)
		}
	}
	for _, o := range w.observed() {
		if o.Evidence != "" || o.Code != "TARGET_REFUSED" && !slices.Contains(names, o.Host) {
			t.Errorf("observed %+v", o)
		}
	}
	if n := caught.Load(); n != 0 {
		t.Errorf("the trap saw %d connections", n)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	l := listen(t)
	go serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	_, port, _ := net.SplitHostPort(l.Addr().String())
	names := resolver{"echo.test": {"127.0.0.1"}, "second.test": {"127.0.0.9", "127.0.0.1"}}
	w := begin(t, newCore(t), func(c *setup) { c.Resolver = names })
	hasty := begin(t, w.fakeCore, func(c *setup) { c.Resolver, c.Timing.Resolve = names, 100*time.Millisecond })
	id := w.add(1, 0)
	for host, want := range map[string]int{"echo.test": 200, "ECHO.test": 200, "second.test": 200, "no.test": 502, "slow.test": 504} {
		by := w
		if want == 504 {
			by = hasty
		}
		if got := by.status(id, net.JoinHostPort(host, port)); got != want {
			t.Errorf("%s: %d, want %d", host, got, want)
		}
	}
}

// Even where loopback is open our own listeners stay closed.
func TestOwnListeners(t *testing.T) {
	t.Parallel()
	admin := listen(t)
	for _, addr := range []string{"127.0.0.1:0", ":0"} {
		w := begin(t, newCore(t), func(c *setup) {
			c.Addr = addr
			c.Forbidden = append(c.Forbidden, admin.Addr().(*net.TCPAddr).AddrPort())
		})
		_, port, _ := net.SplitHostPort(w.addr)
		id := w.add(1, 0)
		targets := []string{admin.Addr().String(), "127.0.0.1:" + port, "[::ffff:127.0.0.1]:" + port}
		if addr == ":0" {
			targets = append(targets, "127.0.0.77:"+port, "[::1]:"+port)
		}
		for _, target := range targets {
			if got := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target); got != 403 {
				t.Errorf("%s behind %s: %d", target, addr, got)
			}
		}
	}
}
