package gateway_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/test/freeport"
)

// site is an HTTP target that records its requests.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	requests []*http.Request
	conns    atomic.Int64
}

func newSite(t testing.TB, f http.HandlerFunc) *site {
	s := &site{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Clone(r.Context()))
		s.mu.Unlock()
		f(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			s.conns.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s
}

func (s *site) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.requests)
}

func TestForward(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.2")
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/chunked":
			for range 3 {
				_, _ = io.WriteString(w, "part,")
				w.(http.Flusher).Flush()
			}
		case "/teapot":
			w.WriteHeader(http.StatusTeapot)
		case "/big":
			_, _ = io.CopyN(w, zeros{}, 5<<20)
		default:
			fmt.Fprintf(w, "%s %s %d from %s", r.Method, r.URL, len(body), strings.Split(r.RemoteAddr, ":")[0])
		}
	})
	c := w.client(id)
	for _, r := range []struct {
		method, path, body, want string
		status                   int
	}{
		{"GET", "/a?b=c", "", "GET /a?b=c 0 from 127.0.0.2", 200},
		{"POST", "/p", "some text", "POST /p 9 from 127.0.0.2", 200},
		{"PUT", "/p", strings.Repeat("x", 300_000), "PUT /p 300000 from 127.0.0.2", 200},
		{"HEAD", "/h", "", "", 200},
		{"GET", "/chunked", "", "part,part,part,", 200},
		{"GET", "/teapot", "", "", 418},
		{"GET", "/big", "", strings.Repeat("\x00", 5<<20), 200},
	} {
		t.Run(r.method+r.path, func(t *testing.T) {
			req, _ := http.NewRequestWithContext(t.Context(), r.method, s.URL+r.path, strings.NewReader(r.body))
			if len(r.body) > 100_000 {
				req.ContentLength = -1 // chunked
			}
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			got, err := io.ReadAll(res.Body)
			if err != nil || string(got) != r.want || res.StatusCode != r.status {
				t.Errorf("%d, %.60q, %v", res.StatusCode, got, err)
			}
		})
	}
	for _, r := range s.requests {
		for _, h := range []string{"Proxy-Authorization", "Proxy-Connection", "Via", "X-Forwarded-For", "Forwarded"} {
			if r.Header.Get(h) != "" {
				t.Errorf("the target saw %s: %q", h, r.Header.Get(h))
			}
		}
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections to the target, want 1 kept", n)
	}
	seen := w.noted(7)
	if len(seen) != 7 || seen[0].Evidence != "success" || seen[5].Evidence != "http_error" || seen[5].StatusCode != 418 {
		t.Errorf("observed %+v", seen)
	}
}

// The bytes of request and response on the client's wire, without the line of
// the credential, are what is charged.
func TestForwardMetersTheClientsWire(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, "answer")
	})
	auth := basic(user(id, 0), password(id))
	var up, down int64
	c := w.dial()
	r := bufio.NewReader(c)
	for _, request := range []string{
		"GET %s/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"POST %s/ HTTP/1.1\r\nHost: x\r\n" + auth + "Content-Length: 5\r\n\r\n12345",
		"POST %s/chunked HTTP/1.1\r\nHost: x\r\n" + auth + "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
		"HEAD %s/ HTTP/1.1\r\nHost: x\r\n" + auth + "\r\n",
		"GET %s/ HTTP/1.1\r\nHost: x\r\n" + auth + "Connection: close\r\n\r\n",
	} {
		request = fmt.Sprintf(request, s.URL)
		up += int64(len(request) - len(auth))
		_, _ = io.WriteString(c, request)
		var wire bytes.Buffer
		res, err := http.ReadResponse(bufio.NewReader(io.TeeReader(oneByte{r}, &wire)), &http.Request{Method: request[:strings.IndexByte(request, ' ')]})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		down += int64(wire.Len())
	}
	if rest, err := io.ReadAll(r); len(rest) > 0 || err != nil {
		t.Errorf("after the last answer: %q, %v", rest, err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Up != up || u.Down != down || u.Connections != 1 {
		t.Errorf("charged %d up, %d down; on the wire %d and %d", u.Up, u.Down, up, down)
	}
}

// oneByte keeps a reader from reading ahead.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// A request that reached no target is free.
func TestRefusedRequestsAreFree(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	for _, target := range []string{"10.0.0.1", "127.0.0.1:1"} {
		c := w.dial()
		_, _ = io.WriteString(c, "GET http://"+target+"/ HTTP/1.1\r\nHost: x\r\n"+basic(user(id, 0), password(id))+"\r\n")
		response(t, c)
	}
	if u := w.settled(id); u.Used() != 0 {
		t.Errorf("charged %d", u.Used())
	}
}

func TestExpectContinue(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/no" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	head := func(path string) string {
		return "POST " + s.URL + path + " HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) +
			"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n"
	}
	c := w.dial()
	_, _ = io.WriteString(c, head("/yes"))
	line, err := bufio.NewReader(oneByte{c}).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "HTTP/1.1 100") {
		t.Fatalf("%q, %v", line, err)
	}
	_, _ = io.ReadFull(c, make([]byte, 2))
	_, _ = io.WriteString(c, "body")
	if res, body := response(t, c); res.StatusCode != 200 || body != "body" {
		t.Errorf("%d %q", res.StatusCode, body)
	}

	// A body that was never sent must not be waited for.
	c = w.dial()
	_, _ = io.WriteString(c, head("/no"))
	if res, _ := response(t, c); res.StatusCode != 403 || !res.Close {
		t.Errorf("%d, close %v", res.StatusCode, res.Close)
	}
}

func TestUpgrade(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	l := listen(t)
	go serve(l, func(c net.Conn) {
		r := bufio.NewReader(c)
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst")
		_, _ = io.Copy(c, r)
	})
	c := w.dial()
	_, _ = io.WriteString(c, "GET http://"+l.Addr().String()+"/ HTTP/1.1\r\nHost: x\r\n"+basic(user(id, 0), password(id))+
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly")
	res, err := http.ReadResponse(bufio.NewReader(oneByte{c}), nil)
	if err != nil || res.StatusCode != 101 {
		t.Fatal(res, err)
	}
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "firstearly" {
		t.Errorf("%q, %v", got, err)
	}
}

// A kept connection that the target has closed meanwhile is replaced without the
// client noticing, when the request can be sent twice.
func TestStaleUpstream(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "ok") })
	c, pass := w.client(id), elsewhere(t)
	for i := range 3 {
		res, err := c.Get(s.URL)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("request %d: %v, %v", i, res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		s.CloseClientConnections()
		pass()
	}
}

func TestUpstreamsAreNotShared(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	one, two := w.add(1, 0), w.add(2, 0)
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })
	from := func(id string) string {
		res, err := w.client(id).Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, _ := io.ReadAll(res.Body)
		return string(b)
	}
	// The client has the whole answer a moment before the gateway keeps the
	// connection, so the next request may be too early for it.
	seen := map[string]bool{}
	waitFor(t, "a connection of one session to be kept", func() bool {
		a := from(one)
		kept := seen[a]
		seen[a] = true
		return kept
	})
	if seen[from(two)] {
		t.Error("two sessions shared a connection")
	}
}

func TestTargetFailures(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	hasty := begin(t, w.fakeCore, func(c *setup) { c.Timing.Answer = 300 * time.Millisecond })
	id := w.add(1, 0)
	silent, garbage, hangup := listen(t), listen(t), listen(t)
	over := make(chan struct{})
	defer close(over)
	go serve(silent, func(net.Conn) { <-over })
	go serve(garbage, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\r\n"); _, _ = io.Copy(io.Discard, c) })
	go serve(hangup, func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<10)) })
	for _, c := range []struct {
		name     string
		by       *world
		addr     string
		status   int
		evidence string
	}{
		{"silent", hasty, silent.Addr().String(), 504, "timeout"},
		{"garbage", w, garbage.Addr().String(), 502, "http_error"},
		{"hangup", w, hangup.Addr().String(), 502, "http_error"},
		{"closed", w, freeport.Address(t), 502, "http_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := c.by.dial()
			_, _ = io.WriteString(conn, "GET http://"+c.addr+"/ HTTP/1.1\r\nHost: x\r\n"+basic(user(id, 0), password(id))+"\r\n")
			res, body := response(t, conn)
			if res.StatusCode != c.status || !strings.Contains(body, "how_to_fix") || res.Header.Get("Proxy-Status") == "" {
				t.Errorf("%d %v %s", res.StatusCode, res.Header, body)
			}
			seen := w.observed()
			if o := seen[len(seen)-1]; o.Type != "failed" || string(o.Evidence) != c.evidence || o.Code == "" {
				t.Errorf("observed %+v", o)
			}
		})
	}
}
