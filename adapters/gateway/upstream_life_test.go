package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// silent accepts and sends no more than a beginning.
func silent(beginning string) func(net.Conn) {
	return func(c net.Conn) { fmt.Fprint(c, beginning); _, _ = io.Copy(io.Discard, c) }
}

// The end of a session ends a connection attempt through an upstream at every step:
// here every time limit is an hour.
func TestTerminateStopsAnAttemptThroughAnUpstream(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, target string
		proxy        procurement.Endpoint
		http, socks  func(net.Conn)
	}{
		{name: "the target's name", target: "slow.test:80"},
		{name: "the proxy's name", proxy: procurement.Endpoint{Host: "slow.test", Port: 80}},
		{name: "the answer", http: silent("")},
		{name: "the rest of the answer", http: silent("HTTP/1.1 200 OK\r\n")},
		{name: "the reply", proxy: procurement.Endpoint{Protocol: session.SOCKS5}, socks: silent("\x05")},
	} {
		for _, plain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %v", tc.name, plain), func(t *testing.T) {
				s := newSeller(t, "u", "secret")
				s.set(func(m *manner) { m.http, m.socks = tc.http, tc.socks })
				asked := make(chan struct{}, 2)
				w := begin(t, newCore(t), func(c *setup) {
					c.Resolver = watched{names, asked}
					c.Timing.Connect, c.Timing.Resolve = time.Hour, time.Hour
				})
				id := w.add(1, 0)
				proxy := s.endpoint(tc.proxy.Protocol)
				if tc.proxy.Host != "" {
					proxy.Host, proxy.Port = tc.proxy.Host, tc.proxy.Port
				}
				w.via(id, proxy)
				target := tc.target
				if target == "" {
					target = "127.0.0.1:80"
				}
				c := w.dial()
				if plain {
					fmt.Fprintf(c, "GET http://%s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", target, basic(user(id, 0), password(id)))
				} else {
					fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n%s\r\n", target, basic(user(id, 0), password(id)))
				}
				if tc.http == nil && tc.socks == nil {
					<-asked
				} else {
					waitFor(t, "the upstream to be asked", func() bool { targets, _ := s.targets(); return len(targets) == 1 })
				}
				w.change(id, func(r *traffic.Route) { r.Status = session.Terminated })
				w.Changed(id)
				if res, body := response(t, c); res.StatusCode != 410 || !strings.Contains(body, "SESSION_EXPIRED") {
					t.Errorf("%d %s", res.StatusCode, body)
				}
				if o := w.observed(); len(o) != 1 || o[0].Code != "SESSION_EXPIRED" || o[0].Evidence != "" {
					t.Errorf("observed %+v", o)
				}
			})
		}
	}
}

// watched is a resolver that signals when it is asked for the slow name.
type watched struct {
	resolver
	asked chan struct{}
}

func (w watched) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	if strings.TrimSuffix(host, ".") == "slow.test" {
		w.asked <- struct{}{}
	}
	return w.resolver.LookupNetIP(ctx, network, host)
}

func TestTerminateCutsATunnelThroughAnUpstream(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	l, ended := listen(t), make(chan struct{})
	go serve(l, func(c net.Conn) { _, _ = io.Copy(c, c); close(ended) })
	c := w.connect(id, l.Addr().String())
	_, _ = io.WriteString(c, "x")
	_, _ = io.ReadFull(c, make([]byte, 1))
	w.change(id, func(r *traffic.Route) { r.Status = session.Terminated })
	w.Changed(id)
	if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("not cut")
	}
	<-ended
	if u := w.settled(id); u.Up != 1 || u.Down != 1 {
		t.Errorf("usage %+v", u)
	}
}

func TestStopEndsAnAttemptThroughAnUpstream(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	s.answers(silent(""))
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Connect = time.Hour })
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	fmt.Fprintf(w.dial(), "CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n%s\r\n", basic(user(id, 0), password(id)))
	waitFor(t, "the upstream to be asked", func() bool { targets, _ := s.targets(); return len(targets) == 1 })
	_ = w.Stop(context.Background()) // waits for every connection
}

// An idle connection serves the same session, upstream proxy and rotation only: the
// exit behind it is unknown here, and another one may have the same user name.
func TestKeptConnectionsEndWithTheirUpstream(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "", "")
	w := begin(t, newCore(t), nil)
	site := newSite(t, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "ok") })
	one, two := w.add(1, 0), w.add(2, 0)
	proxy := s.endpoint(session.HTTP)
	proxy.User = "u-1"
	for _, id := range []string{one, two} {
		w.via(id, proxy)
	}
	requests := 0
	get := func(id string, number int) {
		t.Helper()
		requests++
		c := w.dial()
		defer c.Close()
		fmt.Fprintf(c, "GET %s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", site.URL, basic(user(id, number), password(id)))
		if res, body := response(t, c); res.StatusCode != 200 || body != "ok" {
			t.Fatalf("%d %s", res.StatusCode, body)
		}
		waitFor(t, "the request's end", func() bool { return len(w.observed()) == requests })
		// The connection is kept before the gateway waits for the next request.
		_, _ = io.WriteString(c, "GARBAGE\r\n\r\n")
		response(t, c)
	}
	opened := func(want int, what string) {
		t.Helper()
		if targets, users := s.targets(); len(targets) != want {
			t.Errorf("%s: %d connections through the upstream by %v, want %d", what, len(targets), users, want)
		}
	}
	get(one, 0)
	get(one, 0)
	opened(1, "the same session")
	get(two, 0)
	opened(2, "another session with the same user")
	rotate := func(edit func(*procurement.Endpoint)) {
		w.change(one, func(r *traffic.Route) {
			next := r.Upstreams[0]
			edit(&next)
			r.Upstreams, r.Rotation = []procurement.Endpoint{next}, r.Rotation+1
		})
		w.Changed(one)
	}
	rotate(func(e *procurement.Endpoint) { e.User = "u-2" })
	get(one, 1)
	opened(3, "after a rotation to another user")
	get(one, 0)
	opened(3, "an old user name is the current exit")
	rotate(func(*procurement.Endpoint) {})
	get(one, 2)
	opened(4, "after a rotation with the same user")
	w.change(one, func(r *traffic.Route) { r.Upstreams = []procurement.Endpoint{proxy} })
	w.Changed(one)
	get(one, 2)
	opened(5, "after another user without a rotation")
	w.change(one, func(r *traffic.Route) { r.Upstreams = nil })
	w.Changed(one)
	get(one, 2)
	opened(5, "without an upstream proxy")
}

// Metering and limit are those of a direct connection.
func TestLimitIsNeverExceededThroughAnUpstream(t *testing.T) {
	t.Parallel()
	for _, p := range []session.Protocol{session.HTTP, session.SOCKS5} {
		s := newSeller(t, "u", "secret")
		const limit = 5_000_000
		w := begin(t, newCore(t), nil)
		id, free := w.add(1, limit), w.add(2, 0)
		w.via(id, s.endpoint(p))
		w.via(free, s.endpoint(p))
		target := newCounting(t)
		var delivered atomic.Int64
		var wg sync.WaitGroup
		var tunnels []*net.TCPConn
		for range 8 {
			tunnels = append(tunnels, w.connect(id, target.addr()))
		}
		for _, c := range tunnels {
			wg.Go(func() { delivered.Add(download(t, c, 1_000_000)) })
		}
		wg.Wait()
		if u := w.settled(id); u.Used() != limit || u.Down != delivered.Load() {
			t.Errorf("%s: used %+v of %d, delivered %d", p, u, limit, delivered.Load())
		}
		if status := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target.addr()); status != 402 {
			t.Errorf("%s: the next connection: %d, want 402", p, status)
		}
		up, down := int64(3<<20), int64(5<<20)
		target = newCounting(t)
		c := w.connect(free, target.addr())
		go func() { _, _ = c.Write(order(up, down)); _, _ = io.CopyN(c, zeros{}, up) }()
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Error(err)
		}
		_ = c.Close()
		if u := w.settled(free); u.Up != up+16 || u.Down != down || target.in.Load() != up+16 || target.out.Load() != down {
			t.Errorf("%s: usage %+v, want %d up and %d down", p, u, up+16, down)
		}
	}
}

// Early bytes of the target stop at an expired lease like all others.
func TestEarlyBytesWaitForTheRenewal(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	hold, release := make(chan struct{}), make(chan struct{})
	var asked atomic.Int32
	s.answers(func(c net.Conn) {
		if asked.Add(1) > 1 {
			fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\n")
			return
		}
		close(hold)
		<-release
		fmt.Fprint(c, "HTTP/1.1 200 OK\r\n\r\nbanner")
		_, _ = io.Copy(io.Discard, c)
	})
	w := expiring(t)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	const target = "127.0.0.1:80"
	var c *net.TCPConn
	status, banner := make(chan int), make(chan string, 1)
	ask := func() {
		c = w.dial()
		go func(c *net.TCPConn) {
			status <- w.connectAs(c, basic(user(id, 0), password(id)), target)
			b := make([]byte, len("banner"))
			_, _ = io.ReadFull(c, b)
			banner <- string(b)
		}(c)
	}
	ask()
	for held := false; !held; {
		select {
		case <-hold:
			held = true
		case <-status: // a machine with much to do had no lease in time
			_ = c.Close()
			<-banner
			ask()
		}
	}
	w.outage(true)
	w.expired(id, target)
	waits := w.Stats().LeaseWaits
	close(release)
	if got := <-status; got != 200 {
		t.Fatalf("status %d, want 200", got)
	}
	waitFor(t, "the banner to arrive", func() bool { return w.Stats().LeaseWaits > waits || len(banner) > 0 })
	if len(banner) > 0 {
		t.Error("it was relayed on an expired lease")
	}
	w.outage(false)
	if got := <-banner; got != "banner" {
		t.Errorf("%q", got)
	}
	_ = c.Close()
	waitFor(t, "the report", func() bool { return w.usage(id).Down == 6 })
}

// A refusal leaves no connection to the upstream open.
func TestARefusedConnectionToAnUpstreamIsClosed(t *testing.T) {
	t.Parallel()
	s := newSeller(t, "u", "secret")
	ended := make(chan error, 1)
	s.answers(func(c net.Conn) {
		fmt.Fprint(c, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	w.via(id, s.endpoint(session.HTTP))
	w.refusedOver(t, id, "127.0.0.1:80")
	if err := <-ended; err != nil {
		t.Error("still open:", err)
	}
}
