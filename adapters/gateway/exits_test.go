package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/exitlog"
	"agentproxy/domain/policy"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// exitLog keeps what a gateway records.
type exitLog struct {
	mu   sync.Mutex
	list []*exitlog.Connection
}

func (l *exitLog) Opened(c *exitlog.Connection) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, c)
	return uint64(len(l.list))
}

func (l *exitLog) Closed(n uint64, bytes int64, end exitlog.End, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 {
		return
	}
	c := l.list[n-1]
	if !c.Closed.IsZero() {
		panic(fmt.Sprintf("connection %d is closed twice", n))
	}
	c.Closed, c.Bytes, c.End = at, bytes, end
}

// all returns copies of the records.
func (l *exitLog) all() (list []exitlog.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		list = append(list, *c)
	}
	return list
}

// logged starts a gateway with an exit log.
func logged(t *testing.T) (*world, *exitLog) {
	l := &exitLog{}
	return begin(t, newCore(t), func(c *setup) {
		c.Exits = l
		c.Resolver = resolver{"shop.test": {"127.0.0.1"}, "bad.test": {"127.0.0.1"}}
		rules := &policy.Shared{Operator: deny(t, "bad.test")}
		c.Policy = func() *policy.Shared { return rules }
	}), l
}

// ended waits until n records have an end, and returns all.
func (l *exitLog) ended(t *testing.T, n int) []exitlog.Connection {
	t.Helper()
	waitFor(t, fmt.Sprintf("the end of %d records", n), func() bool {
		ended := 0
		for _, c := range l.all() {
			if !c.Closed.IsZero() {
				ended++
			}
		}
		return ended == n
	})
	return l.all()
}

func TestTunnelsAreInTheExitLog(t *testing.T) {
	t.Parallel()
	w, l := logged(t)
	seen := make(chan string, 10)
	target := listen(t)
	go serve(target, func(c net.Conn) {
		seen <- c.RemoteAddr().String()
		_, _ = io.Copy(c, c)
	})
	id := w.add(1, 0, "127.0.0.3")
	w.change(id, func(r *traffic.Route) { r.AgentID = "agt_1" })
	c := w.connect(id, "shop.test:"+port(target.Addr().String()))
	_, _ = c.Write([]byte("ping"))
	_, _ = io.ReadFull(c, make([]byte, 4))
	at := l.all()
	if len(at) != 1 || !at[0].Closed.IsZero() {
		t.Fatalf("while it is open: %+v", at)
	}
	_ = c.Close()
	got := l.ended(t, 1)[0]
	if got.Agent != "agt_1" || got.Session != id || got.Client.String() != c.LocalAddr().String() || got.Host != "shop.test" ||
		got.Target.String() != target.Addr().String() || got.Exit.String() != <-seen || got.Bytes != 8 || got.End != exitlog.Finished ||
		got.Seller != "" || got.Opened.IsZero() {
		t.Errorf("%+v", got)
	}
	if reply := w.socksReply(id, "127.0.0.1", port(target.Addr().String())); reply != 0 {
		t.Fatalf("SOCKS5: %d", reply)
	}
	if got := l.all()[1]; got.Host != "" || got.Exit.String() != <-seen {
		t.Errorf("by SOCKS5: %+v", got)
	}
	if status, _ := w.refused(id, "bad.test:80"); status != 403 {
		t.Errorf("the denied name: %d", status)
	}
	if n := len(l.all()); n != 2 {
		t.Errorf("%d records; a refusal is none", n)
	}
}

// A kept connection to a target is one record for each client that uses it.
func TestPlainRequestsAreInTheExitLog(t *testing.T) {
	t.Parallel()
	w, l := logged(t)
	target := listen(t)
	go serve(target, func(c net.Conn) {
		for r := bufio.NewReader(c); ; {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	id := w.add(1, 0)
	first, second := w.client(id), w.client(id)
	for i, c := range []*http.Client{first, first, second} {
		w.noted(i) // the connection was put back before the last request was observed
		res, err := c.Get("http://shop.test:" + port(target.Addr().String()) + "/secret?x=1")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if n := len(l.all()); n != 2 {
		t.Fatalf("%d records, want 2: %+v", n, l.all())
	}
	a, b := l.all()[0], l.all()[1]
	if a.Exit != b.Exit || a.Client == b.Client || a.Closed.IsZero() || !b.Closed.IsZero() || a.Host != "shop.test" {
		t.Errorf("%+v and %+v", a, b)
	}
	w.settled(id)
	_ = w.Stop(t.Context())
	list := l.ended(t, 2)
	if u := w.usage(id); list[0].Bytes+list[1].Bytes != u.Used() || list[0].Bytes <= list[1].Bytes {
		t.Errorf("%d and %d bytes, want %d together", list[0].Bytes, list[1].Bytes, u.Used())
	}
}

// Behind an upstream proxy the seller and what names the exit to it are recorded, and no password.
func TestUpstreamConnectionsAreInTheExitLog(t *testing.T) {
	t.Parallel()
	w, l := logged(t)
	id := w.add(1, 0, "198.51.100.9")
	token := procurement.Token(id, 0)
	seller := newSeller(t, "user-session-"+token, "p")
	w.via(id, seller.endpoint(session.HTTP))
	w.change(id, func(r *traffic.Route) {
		r.Provider, r.Exits = "one", []session.Exit{{IP: netip.MustParseAddr("198.51.100.9")}}
	})
	target := echo(t)
	_ = w.connect(id, target).Close()
	_ = w.connect(id, "shop.test:"+port(target)).Close()
	list := l.ended(t, 2)
	other := newSeller(t, "the-user-is-a-secret", "p").endpoint(session.HTTP)
	w.via(w.add(2, 0), other)
	_ = w.connect("sess_00000000000000000002", target).Close()
	if c := l.ended(t, 3)[2]; c.Token != net.JoinHostPort(other.Host, fmt.Sprint(other.Port)) {
		t.Errorf("without a token: %+v", c)
	}
	want := netip.AddrPortFrom(netip.MustParseAddr("198.51.100.9"), 0)
	for i, c := range list {
		if c.Seller != "one" || c.Token != token || c.Exit != want || (c.Target.String() == target) != (i == 0) {
			t.Errorf("%+v", c)
		}
	}
}

// A connection of a worker names it, so that a look-up finds which of a session's identities it was.
func TestWorkersAreInTheExitLog(t *testing.T) {
	t.Parallel()
	w, l := logged(t)
	id := w.add(1, 0, "127.0.0.3", "127.0.0.4")
	target := peers(t)
	_ = w.seenFrom(id, "", target)
	_ = w.seenFrom(id, "-session-w07", target)
	list := l.ended(t, 2)
	if list[0].Worker != "" || list[1].Worker != "w07" {
		t.Errorf("workers %q and %q, want none and w07", list[0].Worker, list[1].Worker)
	}
}
