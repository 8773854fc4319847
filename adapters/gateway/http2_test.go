package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/http2"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// streams returns a client that has all its requests on one HTTP/2 connection.
func (w *world) streams() *http2.ClientConn {
	w.t.Helper()
	c, err := (&http2.Transport{}).NewClientConn(w.dialTLS(trusting("h2")))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Ping(context.Background()); err != nil { // its settings have come
		w.t.Fatal(err)
	}
	return c
}

func basicValue(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// stream is a tunnel on a stream of HTTP/2.
type stream struct {
	io.WriteCloser
	io.ReadCloser
	res *http.Response
}

func (s *stream) Close() error {
	_ = s.WriteCloser.Close()
	return s.ReadCloser.Close()
}

// tunnel asks for a tunnel on a stream.
func (w *world) tunnel(c *http2.ClientConn, auth, target string) *stream {
	w.t.Helper()
	r, up := io.Pipe()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: target}, Host: target, Header: http.Header{}, Body: r}
	if auth != "" {
		req.Header.Set("Proxy-Authorization", auth)
	}
	res, err := c.RoundTrip(req)
	if err != nil {
		w.t.Fatal(err)
	}
	s := &stream{up, res.Body, res}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

// echoed sends bytes through a tunnel to an echo and waits for them.
func echoed(s *stream, b []byte) error {
	go func() { _, _ = s.Write(b) }()
	got := make([]byte, len(b))
	if _, err := io.ReadFull(s, got); err != nil {
		return err
	}
	if !bytes.Equal(got, b) {
		return errors.New("other bytes came back")
	}
	return nil
}

// Two hundred streams of five sessions on one connection are tunnels of their own, each counted by its session.
func TestStreamsAreTunnelsOfTheirSessions(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	target, c := echo(t), w.streams()
	var ids []string
	for n := range 5 {
		ids = append(ids, w.add(n, 0))
	}
	var all sync.WaitGroup
	for n := range 200 {
		id := ids[n%5]
		all.Go(func() {
			s := w.tunnel(c, basicValue(user(id, 0), password(id)), target)
			if s.res.StatusCode != 200 {
				t.Errorf("stream %d: %d", n, s.res.StatusCode)
				return
			}
			if err := echoed(s, bytes.Repeat([]byte{byte(n)}, 1000*(n%5+1))); err != nil {
				t.Errorf("stream %d: %v", n, err)
			}
		})
	}
	all.Wait()
	if s := w.Stats(); s.Tunnels != 200 || s.Connections != 201 {
		t.Errorf("%+v", s)
	}
	_ = c.Close()
	for n, id := range ids {
		if u := w.settled(id); u.Up != int64(40_000*(n+1)) || u.Down != u.Up || u.Connections != 40 {
			t.Errorf("session %d: %+v", n, u)
		}
	}
	waitFor(t, "the connection to end", func() bool { return w.Stats().Connections == 0 })
}

// A refusal ends its stream alone, with what a client of HTTP/1.1 gets.
func TestStreamsAreRefused(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(s *setup) { certified(s); s.Tunnels, s.RefusePlaintext = 2, true })
	target, c := echo(t), w.streams()
	id, over := w.add(1, 0), w.add(2, 0)
	w.change(over, func(r *traffic.Route) { r.Status, r.Reason = session.Terminated, session.AgentRequest })
	for _, tc := range []struct {
		auth, target string
		status       int
		code         string
	}{
		{"", target, 407, "PROXY_AUTH_REQUIRED"},
		{basicValue(user(id, 0), "wrong"), target, 407, "PROXY_AUTH_REQUIRED"},
		{basicValue(user(over, 0), password(over)), target, 410, "SESSION_EXPIRED"},
		{basicValue(user(id, 0), password(id)), "10.0.0.1:80", 403, "TARGET_REFUSED"},
		{basicValue(user(id, 0), password(id)), "127.0.0.1", 400, "BAD_REQUEST"},
	} {
		s := w.tunnel(c, tc.auth, tc.target)
		body, err := io.ReadAll(s)
		if s.res.StatusCode != tc.status || !strings.Contains(string(body), tc.code) ||
			!strings.HasPrefix(s.res.Header.Get("Proxy-Status"), "agentproxy") {
			t.Errorf("%s: %s %v %s %v", tc.code, s.res.Status, s.res.Header, body, err)
		}
		if (tc.status == 407) != (s.res.Header.Get("Proxy-Authenticate") != "") {
			t.Errorf("%s: %v", tc.code, s.res.Header)
		}
	}
	auth := basicValue(user(id, 0), password(id))
	one, two := w.tunnel(c, auth, target), w.tunnel(c, auth, target)
	if s := w.tunnel(c, auth, target); s.res.StatusCode != 429 {
		t.Errorf("a third stream of a session with two: %d", s.res.StatusCode)
	}
	_ = one.Close()
	waitFor(t, "the place of a stream that ended", func() bool { return w.tunnel(c, auth, target).res.StatusCode == 200 })
	if err := echoed(two, []byte("still here")); err != nil {
		t.Error(err)
	}
}

// Requests with the scheme http are forwarded, by the rules and at the price of HTTP/1.1.
func TestStreamsAreForwarded(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	site := listen(t)
	go func() {
		_ = http.Serve(site, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Proxy-Authorization") != "" {
				t.Error("the credential reaches the target")
			}
			b, _ := io.ReadAll(r.Body)
			rw.Header()["Date"] = nil
			rw.Header().Set("X-Seen", fmt.Sprint(r.Method, " ", r.URL, " ", r.Host, " ", r.Header.Get("X-Mine"), " ", r.ContentLength))
			if r.URL.Path == "/length" {
				rw.Header().Set("Content-Length", fmt.Sprint(len(b)))
			} else if r.URL.Path == "/hint" {
				rw.WriteHeader(http.StatusEarlyHints)
			}
			_, _ = rw.Write(b)
		}))
	}()
	plain, secured := w.add(1, 0), w.add(2, 0)
	c := w.streams()
	for _, tc := range []struct {
		method, path string
		size, known  int
	}{{"GET", "/length", 0, 0}, {"HEAD", "/length", 0, 0}, {"POST", "/length?a=b", 3000, 3000}, {"PUT", "/length", 100_000, 100_000},
		{"GET", "/hint", 0, 0}, {"POST", "/length", 100, -1}, {"GET", "/none", 0, 0}} {
		body := strings.Repeat("z", tc.size)
		u := fmt.Sprintf("http://%s%s", site.Addr(), tc.path)
		req, _ := http.NewRequest(tc.method, u, io.NopCloser(strings.NewReader(body)))
		req.ContentLength = int64(tc.known)
		if tc.size == 0 {
			req.Body = http.NoBody
		}
		req.Header = http.Header{"Proxy-Authorization": {basicValue(user(secured, 0), password(secured))}, "X-Mine": {"v"},
			"User-Agent": nil, "Accept-Encoding": {"identity"}}
		res, err := c.RoundTrip(req)
		if err != nil {
			t.Fatal(tc, err)
		}
		got, err := io.ReadAll(res.Body)
		want := fmt.Sprintf("%s %s %s v %d", tc.method, tc.path, site.Addr(), tc.known)
		if res.StatusCode != 200 || string(got) != body || err != nil || res.Header.Get("X-Seen") != want {
			t.Errorf("%v: %s %q, %d bytes, %v", tc, res.Status, res.Header.Get("X-Seen"), len(got), err)
		}
		twin := w.dial()
		fmt.Fprintf(twin, "%s %s HTTP/1.1\r\nHost: %s\r\n%sX-Mine: v\r\nAccept-Encoding: identity\r\n", tc.method, u, site.Addr(),
			basic(user(plain, 0), password(plain)))
		switch {
		case tc.known < 0:
			fmt.Fprintf(twin, "Transfer-Encoding: chunked\r\n\r\n%04x\r\n%s\r\n0\r\n\r\n", len(body), body)
		case tc.known > 0:
			fmt.Fprintf(twin, "Content-Length: %d\r\n\r\n%s", len(body), body)
		default:
			_, _ = io.WriteString(twin, "\r\n")
		}
		_ = twin.CloseWrite()
		_, _ = io.ReadAll(twin)
	}
	_ = c.Close()
	a, b := w.settled(plain), w.settled(secured)
	if a.Up != b.Up || a.Down != b.Down {
		t.Errorf("%+v by HTTP/1.1, %+v by HTTP/2", a, b)
	}
	refused := w.streams()
	req, _ := http.NewRequest("GET", "https://"+site.Addr().String()+"/", http.NoBody)
	req.Header.Set("Proxy-Authorization", basicValue(user(secured, 0), password(secured)))
	if res, err := refused.RoundTrip(req); err != nil || res.StatusCode != 400 {
		t.Errorf("the scheme https: %v, %v", res, err)
	}
}

// The same tunnel costs the same bytes on a stream, whatever of its ends comes first.
func TestTunnelsOfStreamsAreMeteredToTheByte(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	id, target, c := w.add(1, 0), newCounting(t), w.streams()
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			up, down := int64(1)<<(i%21)-1, int64(1)<<(i*7%23)-1
			s := w.tunnel(c, basicValue(user(id, 0), password(id)), target.addr())
			go func() {
				_, _ = s.Write(order(up, down))
				_, _ = io.CopyN(s.WriteCloser, zeros{}, up)
			}()
			if n, err := io.CopyN(io.Discard, s, down); err != nil {
				t.Errorf("%d of %d: %v", n, down, err)
			}
			if n, err := s.Read(make([]byte, 1)); n != 0 || err != io.EOF {
				t.Errorf("after the last byte: %d, %v", n, err)
			}
			_ = s.Close()
		})
	}
	all.Wait()
	if u := w.settled(id); u.Up != target.in.Load() || u.Down != target.out.Load() || u.Connections != 60 {
		t.Errorf("usage %+v, target saw %d up and %d down", u, target.in.Load(), target.out.Load())
	}
	half := w.tunnel(c, basicValue(user(id, 0), password(id)), echo(t))
	go func() { _, _ = io.WriteString(half.WriteCloser, "all of it"); _ = half.WriteCloser.Close() }()
	if got, err := io.ReadAll(half); err != nil || string(got) != "all of it" {
		t.Errorf("after the client's end: %q, %v", got, err)
	}
}

// wasReset fails unless the next that is read of a tunnel is the reset of its stream: an end would look like that of
// what was transferred as a whole.
func wasReset(t *testing.T, what string, s *stream) {
	t.Helper()
	n, err := s.Read(make([]byte, 1))
	if reset, ok := errors.AsType[http2.StreamError](err); !ok || n != 0 || reset.Code != http2.ErrCodeInternal {
		t.Errorf("%s: read %d bytes and %v, want a reset", what, n, err)
	}
}

// A stream that is cut is reset, also while its tunnel has bytes that were not passed on.
func TestCutStreamsAreReset(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	target, c := echo(t), w.streams()
	ended := func(r *traffic.Route) { r.Status, r.Reason = session.Terminated, session.AgentRequest }
	closed := func(r *traffic.Route) { r.Cuts++ }
	for n, how := range []struct {
		busy bool
		cut  func(*traffic.Route)
	}{{false, ended}, {true, ended}, {false, closed}, {true, closed}} {
		var ids []string
		var cut []*stream
		for i := range 20 {
			id := w.add(100*n+i, 0)
			s := w.tunnel(c, basicValue(user(id, 0), password(id)), target)
			ids, cut = append(ids, id), append(cut, s)
			if how.busy { // the window of the stream is full, and the rest waits in the gateway
				go func() { _, _ = s.Write(make([]byte, 8<<20)) }()
				if _, err := io.ReadFull(s, make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, id := range ids {
			w.change(id, how.cut)
			w.Changed(id)
		}
		for _, s := range cut {
			if _, err := io.Copy(io.Discard, s); err == nil {
				t.Errorf("%d: a cut stream ended like a whole one", n)
			}
		}
	}
	waitFor(t, "the streams to end", func() bool { return w.Stats().Tunnels == 0 })

	resets := listen(t) // a target that resets its connection in the middle
	go serve(resets, func(c net.Conn) {
		_, _ = io.WriteString(c, "half an answer")
		_, _ = c.Read(make([]byte, 1))
		_ = c.(*net.TCPConn).SetLinger(0)
	})
	id := w.add(1000, 0)
	s := w.tunnel(c, basicValue(user(id, 0), password(id)), resets.Addr().String())
	if _, err := io.ReadFull(s, make([]byte, 14)); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write([]byte{1})
	wasReset(t, "of a target that reset its connection", s)
}

// A session that ends cuts its streams and no other's; a client that resets one frees its place.
func TestStreamsAreCut(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), certified)
	id, other, c := w.add(1, 0), w.add(2, 0), w.streams()
	target := echo(t)
	cut, kept := w.tunnel(c, basicValue(user(id, 0), password(id)), target), w.tunnel(c, basicValue(user(other, 0), password(other)), target)
	w.change(id, func(r *traffic.Route) { r.Status, r.Reason = session.Terminated, session.AgentRequest })
	w.Changed(id)
	wasReset(t, "of a session that ended", cut)
	if err := echoed(kept, []byte("kept")); err != nil {
		t.Error(err)
	}
	_ = kept.Close()
	waitFor(t, "the stream that was reset to end", func() bool { return w.Stats().Tunnels == 0 })
	limited := w.add(3, 100_000)
	s := w.tunnel(c, basicValue(user(limited, 0), password(limited)), newCounting(t).addr())
	go func() { _, _ = s.Write(order(0, 1<<30)) }()
	if n, err := io.Copy(io.Discard, s); err != nil || n != 100_000-16 {
		t.Errorf("at the limit: %d bytes, %v", n, err)
	}
}
