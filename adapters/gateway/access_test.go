package gateway_test

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/traffic"
)

// A right password from elsewhere is refused and listed in the feed, by both protocols.
func TestClientsFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0), echo(t)
	w.connect(id, target)
	w.change(id, func(r *traffic.Route) {
		r.Allowed = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}
	})
	w.Changed(id)
	status, body := w.refused(id, target)
	if status != 403 || body["code"] != "CLIENT_ADDRESS_REFUSED" || !strings.Contains(body["how_to_fix"], "allowed_ips") {
		t.Errorf("from elsewhere: %d %v", status, body)
	}
	host, port, _ := strings.Cut(target, ":")
	if reply := w.socksReply(id, host, port); reply != 2 {
		t.Errorf("SOCKS5 from elsewhere: reply %d", reply)
	}
	waitFor(t, "the refusal in the feed", func() bool {
		for _, o := range w.observed() {
			if o.Code == "CLIENT_ADDRESS_REFUSED" && o.Client == netip.MustParseAddr("127.0.0.1") && o.Evidence == "" {
				return true
			}
		}
		return false
	})
	if status := w.connectAs(w.dial(), basic(user(id, 0), "wrong"), target); status != 407 {
		t.Errorf("a wrong password from elsewhere: %d", status)
	}
	w.change(id, func(r *traffic.Route) { r.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	w.Changed(id)
	w.connect(id, target)
}

// A password that was replaced ends at once, also on a connection that is kept, and tunnels go on.
func TestReplacedPasswords(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0), echo(t)
	open := w.connect(id, target)
	status := func(password string) int { return w.connectAs(w.dial(), basic(user(id, 0), password), target) }
	second, third := traffic.NumberedPassword(key, id, 1), traffic.NumberedPassword(key, id, 2)
	if s := status(second); s != 407 {
		t.Errorf("a password that was not issued yet: %d", s)
	}
	for n, valid := range map[int]string{1: second, 2: third} {
		w.change(id, func(r *traffic.Route) { r.PasswordNo = n })
		w.Changed(id)
		for _, p := range []string{password(id), second, third, traffic.NumberedPassword([]byte("another key"), id, n), second + "1", "x" + second} {
			want := 407
			if p == valid {
				want = 200
			}
			if s := status(p); s != want {
				t.Errorf("after %d: %q: %d, want %d", n, p, s, want)
			}
		}
	}
	_, _ = open.Write([]byte("ping"))
	if _, err := io.ReadFull(open, make([]byte, 4)); err != nil {
		t.Errorf("the tunnel of before: %v", err)
	}
}

// Open tunnels and responses under way are closed when the agent asks for it; others can be made.
func TestConnectionsAreClosedOnRequest(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { s.Timing.Linger = patience })
	id, other, target := w.add(1, 0), w.add(2, 0), echo(t)
	slow := listen(t)
	go serve(slow, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx")
		_, _ = io.Copy(io.Discard, c)
	})
	closed, stays := w.connect(id, target), w.connect(other, target)
	res, err := w.client(id).Get("http://" + slow.Addr().String() + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	w.change(id, func(r *traffic.Route) { r.Cuts++ })
	w.Changed(id)
	if _, err := io.ReadAll(closed); err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the tunnel: %v", err)
	}
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("the response is complete")
	}
	for _, c := range []io.ReadWriter{stays, w.connect(id, target)} {
		_, _ = c.Write([]byte("ping"))
		if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
			t.Errorf("a connection that is not closed: %v", err)
		}
	}
}
