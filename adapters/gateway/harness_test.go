package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentproxy/adapters/gateway"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/domain/egress"
	"agentproxy/domain/traffic"
)

// TestMain runs many tests at the same time: they wait for time bounds of the gateway and compute little.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var key = []byte("a key of the tests")

var discard = slog.New(slog.DiscardHandler)

// open lets everything on loopback be a target.
var open = egress.Policy{Loopback: true}

// setup is everything that a test may change before the gateway starts.
type setup struct {
	gateway.Config
	gateway.Deps
}

// world is a gateway with its core.
type world struct {
	*fakeCore
	*gateway.Gateway
	t    testing.TB
	addr string
}

// patience is longer than any machine takes for what must happen.
const patience = 2 * time.Minute

// begin starts a gateway that returns leases and ends lingering early, and has patience
// wherever a slow machine would make it refuse or cut what a test opens.
func begin(t testing.TB, b *fakeCore, edit func(*setup)) *world {
	t.Helper()
	s := setup{gateway.Config{Addr: "127.0.0.1:0", Key: key,
		Resolve: map[string]dial.Resolution{"": dial.Name}}, deps(b)}
	s.Timing = gateway.Timing{Header: patience, Resolve: patience, Connect: patience, HalfClosed: patience,
		Keep: patience, Upstream: patience, Spare: patience, Admit: patience, Call: patience, StopAfter: patience}
	s.Timing.IdleGive = 50 * time.Millisecond
	s.Timing.Linger = 10 * time.Millisecond
	s.Timing.Drain = 50 * time.Millisecond
	if edit != nil {
		edit(&s)
	}
	if isInside(t) {
		certified(&s)
	}
	g := gateway.New(s.Config, s.Deps)
	if err := g.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Stop(context.Background()) })
	w := &world{fakeCore: b, Gateway: g, t: t, addr: g.Addr().String()}
	if isInside(t) {
		w.addr = throughTLS(t, g)
	}
	return w
}

// lingers makes a gateway read on after a refusal, for tests whose clients may still
// be sending then.
func lingers(s *setup) { s.Timing.Linger = patience }

// deps are the dependencies of a gateway whose targets are on loopback.
func deps(b *fakeCore) gateway.Deps {
	return gateway.Deps{Routes: b, Workers: b, Leases: b, Observer: b, AddressPolicy: open, Log: discard}
}

func user(id string, n int) string { return traffic.User{SessionID: id, Number: n}.String() }

func password(id string) string { return traffic.Password(key, id) }

func basic(user, password string) string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password)) + "\r\n"
}

func (w *world) dial() *net.TCPConn {
	w.t.Helper()
	c, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c.(*net.TCPConn)
}

// connect opens a tunnel by CONNECT.
func (w *world) connect(id, target string) *net.TCPConn {
	w.t.Helper()
	c := w.dial()
	if status := w.connectAs(c, basic(user(id, 0), password(id)), target); status != 200 {
		w.t.Fatalf("CONNECT %s: %d", target, status)
	}
	return c
}

// connectLater is like connect for a gateway that admits for a short time: one of a machine with much to do may have
// no lease in time.
func (w *world) connectLater(id, target string) (c *net.TCPConn) {
	w.t.Helper()
	waitFor(w.t, "a lease in time", func() bool {
		c = w.dial()
		return w.connectAs(c, basic(user(id, 0), password(id)), target) == 200
	})
	return c
}

// connectAs sends CONNECT with a header line and returns the status. The head is
// read byte by byte, so nothing of the tunnel is lost.
func (w *world) connectAs(c net.Conn, auth, target string) int {
	w.t.Helper()
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, target, auth)
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b[0]) {
		if _, err := c.Read(b); err != nil {
			w.t.Fatalf("after %q: %v", head, err)
		}
	}
	var status int
	if _, err := fmt.Sscanf(string(head), "HTTP/1.1 %d", &status); err != nil {
		w.t.Fatalf("%q: %v", head, err)
	}
	return status
}

// ping sends a byte through a tunnel to an echo and waits for it.
func ping(c net.Conn) error {
	_ = c.SetDeadline(time.Now().Add(patience)) // what its dial set may have passed
	_, err := c.Write([]byte{1})
	if err == nil {
		_, err = io.ReadFull(c, make([]byte, 1))
	}
	return err
}

// elsewhere returns a function that passes bytes through a tunnel of another gateway, there and back: what can move in
// this process moves meanwhile, however slow the machine is.
func elsewhere(t testing.TB) (pass func()) {
	t.Helper()
	w := begin(t, newCore(t), nil)
	c := w.connect(w.add(1, 0), echo(t))
	return func() {
		t.Helper()
		for range 200 {
			if err := ping(c); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stalled waits until a number stays what it is while bytes pass elsewhere.
func stalled(t testing.TB, number func() int64) {
	t.Helper()
	pass := elsewhere(t)
	for before := int64(-1); before != number(); pass() {
		before = number()
	}
}

// client is an ordinary HTTP client that uses the gateway.
func (w *world) client(id string) *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: w.addr,
		User: url.UserPassword(user(id, 0), password(id))})}
	w.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience}
}

// counting is a target that counts what it reads and writes. The client sends
// two numbers: how much it will send after them and how much it expects back.
type counting struct {
	l        net.Listener
	in, out  atomic.Int64
	accepted atomic.Int64
}

func newCounting(t testing.TB) *counting {
	s := &counting{l: listen(t)}
	go serve(s.l, func(c net.Conn) {
		s.accepted.Add(1)
		var head [16]byte
		if n, err := io.ReadFull(c, head[:]); err != nil {
			s.in.Add(int64(n))
			return
		}
		s.in.Add(16)
		up, down := int64(binary.BigEndian.Uint64(head[:])), int64(binary.BigEndian.Uint64(head[8:]))
		done := make(chan struct{})
		go func() {
			defer close(done)
			n, _ := io.CopyN(io.Discard, c, up)
			s.in.Add(n)
		}()
		n, _ := io.CopyN(c, zeros{}, down)
		s.out.Add(n)
		<-done
	})
	return s
}

func (s *counting) addr() string { return s.l.Addr().String() }

// order is the head of an exchange with a counting target.
func order(up, down int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(up)), uint64(down))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// serve runs f on each connection and closes it.
func serve(l net.Listener, f func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			_ = c.SetDeadline(time.Now().Add(patience))
			f(c)
		}()
	}
}

// echo is a target that sends back what it gets.
func echo(t testing.TB) string {
	l := listen(t)
	go serve(l, func(c net.Conn) { _, _ = io.Copy(c, c) })
	return l.Addr().String()
}

// response reads one answer.
func response(t testing.TB, c net.Conn) (*http.Response, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// resolver answers from a table.
type resolver map[string][]string

func (r resolver) LookupNetIP(ctx context.Context, _, host string) ([]netip.Addr, error) {
	if name, ok := strings.CutSuffix(host, "."); ok && strings.Contains(name, ".") {
		host = name // of /etc/hosts the C library finds localhost without a final dot alone
	}
	if host == "slow.test" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var out []netip.Addr
	for _, a := range r[strings.ToLower(host)] {
		out = append(out, netip.MustParseAddr(a))
	}
	if out == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return out, nil
}
