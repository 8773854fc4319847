package conns_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/conns"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// addressed serves the address of each request's client on a listener that takes headers from networks.
func addressed(t *testing.T, table *conns.Table, balancers []netip.Prefix, raw net.Listener, timeout time.Duration) {
	t.Helper()
	l := table.Listen(raw, slog.New(slog.DiscardHandler))
	l.Balancers, l.HeaderTimeout = balancers, timeout
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) }),
		ReadHeaderTimeout: 2 * time.Minute}
	conns.Attach(s)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
}

// sends writes bytes to a new connection and returns the status and body of the answer, or why there is none.
func sends(t *testing.T, c net.Conn, text string) string {
	t.Helper()
	defer c.Close()
	go func() { _, _ = io.WriteString(c, text+"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") }()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return "closed"
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	if res.StatusCode != 200 {
		return fmt.Sprint(res.StatusCode)
	}
	return string(body)
}

// A header of a balancer names the client, a reverse proxy needs none, and of another peer it is no request.
func TestBalancersNameTheirClients(t *testing.T) {
	t.Parallel()
	dialed := func(balancers []netip.Prefix) func() net.Conn {
		raw, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addressed(t, conns.New(conns.Config{}), balancers, raw, 2*time.Minute)
		return func() net.Conn {
			c, err := net.Dial("tcp", raw.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
			return c
		}
	}
	trusted, stranger, off := dialed(loopback), dialed([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}), dialed(nil)
	silent := trusted() // it blocks no other
	defer silent.Close()
	for name, tc := range headers {
		want := tc.want
		c := trusted()
		switch {
		case tc.want == "":
			want = c.LocalAddr().String()
		case tc.want == "none" && name[0] == 'v' && name != "v1, lower case":
			want = "closed"
		case tc.want == "none":
			_ = c.Close()
			continue
		}
		if got := sends(t, c, tc.text); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for name, dial := range map[string]func() net.Conn{"a stranger": stranger, "the option off": off} {
		if got := sends(t, dial(), headers["v1, IPv4"].text); got != "400" {
			t.Errorf("%s sends a header: %s", name, got)
		}
		if got := sends(t, dial(), headers["v2, IPv4"].text); got != "400" {
			t.Errorf("%s sends a header of version 2: %s", name, got)
		}
	}
	c := trusted()
	if want := c.LocalAddr().String(); sends(t, c, "") != want {
		t.Error("a reverse proxy without a header is refused")
	}
}

// piped is a listener of pipes whose peers are on loopback.
type piped struct{ conns chan net.Conn }

func (p piped) Accept() (net.Conn, error) {
	c, ok := <-p.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return local{c}, nil
}
func (p piped) Close() error   { close(p.conns); return nil }
func (p piped) Addr() net.Addr { return &net.TCPAddr{} }

type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 4000} }

// Who sends a part of a header, or nothing, is closed after the time of a header, and no other waits for him.
func TestAHeaderHasATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := piped{make(chan net.Conn)}
		addressed(t, conns.New(conns.Config{}), loopback, l, 10*time.Second)
		dial := func() net.Conn {
			near, far := net.Pipe()
			l.conns <- far
			return near
		}
		began := time.Now()
		for _, part := range []string{"", "PROXY TCP4 192.0.2.1", headers["v2, IPv4"].text[:20]} {
			c := dial()
			go func() {
				_, _ = io.WriteString(c, part)
				if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(began) != 10*time.Second {
					t.Errorf("after %q: %v after %s", part, err, time.Since(began))
				}
			}()
		}
		if got := sends(t, dial(), headers["v1, IPv4"].text); got != "192.0.2.1:4000" || time.Since(began) != 0 {
			t.Errorf("beside them: %s after %s", got, time.Since(began))
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
	})
}

// Behind a balancer the bound of an address is the client's.
func TestAClientBehindABalancerHasAShare(t *testing.T) {
	t.Parallel()
	balancer := netip.MustParseAddr("127.0.0.1")
	table := conns.New(conns.Config{PerAddress: 2, Exempt: loopback})
	var first, other []*peer
	enter := func(addr netip.Addr) (*peer, bool) {
		p := join(t, table, balancer)
		return p, table.Move(&p.slot, addr)
	}
	for range 4 {
		p, _ := enter(address(1))
		first = append(first, p)
		p, _ = enter(address(2))
		p.sent = true
		other = append(other, p)
	}
	if got := fmt.Sprint(evicted(first), evicted(other)); got != "[0 1] []" {
		t.Errorf("evicted %s of four each with a bound of two", got)
	}
	for range 4 {
		p, _ := enter(address(2))
		p.sent = true
		other = append(other, p)
	}
	p, ok := enter(address(2))
	if ok {
		t.Error("an address has more than four times its bound of connections that are unread")
	}
	table.Remove(&p.slot)
	for _, p := range append(first, other...) {
		table.Remove(&p.slot)
	}
	join(t, table, address(2))
	if table.Open() != 1 {
		t.Errorf("%d are open", table.Open())
	}
	table.Move(&conns.Slot{}, balancer) // one that was removed meanwhile
}
