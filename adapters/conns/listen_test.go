package conns_test

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/conns"
)

// broken is a listener that fails a number of times before it closes.
type broken struct {
	net.Listener
	left int
}

func (b *broken) Accept() (net.Conn, error) {
	if b.left--; b.left >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return nil, net.ErrClosed
}

// lines counts what is logged.
type lines struct{ n int }

func (l *lines) Write(p []byte) (int, error) {
	l.n += strings.Count(string(p), "level=WARN")
	return len(p), nil
}

func TestRunningOutOfDescriptorsIsCountedAndLoggedOnceASecond(t *testing.T) {
	t.Parallel()
	table := conns.New(conns.Config{Name: "api"})
	var log lines
	l := table.Listen(&broken{left: 3}, slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Fatal(err)
	}
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(table)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	failures := 0.0
	for _, f := range families {
		if f.GetName() == "agentproxy_accept_failures_total" {
			failures = f.Metric[0].Counter.GetValue()
		}
	}
	if failures != 3 {
		t.Errorf("%v failures are counted, want 3", failures)
	}
	if log.n != 1 {
		t.Errorf("%d warnings", log.n)
	}
	now := time.Now()
	if table.AcceptFailed(now) || !table.AcceptFailed(now.Add(time.Second)) || table.AcceptFailed(now.Add(time.Second)) {
		t.Error("it is not logged once a second")
	}
}

// An HTTP server closes connections that wait, and answers those that ask.
func TestServerWithIdleStrangers(t *testing.T) {
	t.Parallel()
	const limit = 8
	table := conns.New(conns.Config{Limit: limit})
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := conns.Of(r.Context())
		if r.Header.Get("X-Key") != "" {
			c.Trust()
		}
		c.Work()
		if c.ShouldClose() {
			w.Header().Set("Connection", "close")
		}
		_, _ = io.WriteString(w, "here")
	})}
	conns.Attach(s)
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(table.Listen(raw, slog.New(slog.DiscardHandler))) }()
	defer func() { _ = s.Close(); <-ended }() // Shutdown would wait 5 s for the silent

	ask := func(c net.Conn, header string) (string, error) {
		_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
		_, _ = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\n%s\r\n", header)
		b := make([]byte, 1024)
		n, err := c.Read(b)
		return string(b[:n]), err
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	customer := dial()
	if got, err := ask(customer, "X-Key: k\r\n"); !strings.HasSuffix(got, "here") {
		t.Fatalf("%q, %v", got, err)
	}
	closed := false
	for range 5 * limit {
		c := dial()
		got, err := ask(c, "")
		if !strings.HasSuffix(got, "here") {
			t.Fatalf("%q, %v", got, err)
		}
		closed = closed || strings.Contains(got, "Connection: close")
	}
	for range 5 * limit {
		dial() // silent
	}
	if got, err := ask(customer, "X-Key: k\r\n"); !strings.HasSuffix(got, "here") {
		t.Errorf("a customer among strangers: %q, %v", got, err)
	}
	if !closed {
		t.Error("no answer near the bound ended its connection")
	}
}

func TestHosts(t *testing.T) {
	t.Parallel()
	local := conns.Hosts{Addr: netip.MustParseAddr("127.0.0.1"), Names: []string{"API.example.com:8443"}}
	outside := conns.Hosts{Addr: netip.MustParseAddr("192.0.2.7"), Names: []string{"replica-1"}}
	for _, c := range []struct {
		hosts conns.Hosts
		host  string
		want  bool
	}{
		{local, "", true}, {local, "127.0.0.1:8080", true}, {local, "localhost", true}, {local, "LOCALHOST.:8080", true},
		{local, "[::1]:8080", true}, {local, "::1", true}, {local, "api.example.com", true}, {local, "api.example.com.:1", true},
		{local, "rebind.attacker.example", false}, {local, "localhost.attacker.example", false}, {local, "192.0.2.7", false},
		{local, "127.0.0.1.nip.io:8080", false}, {local, "0.0.0.0:8080", false},
		{local, "127.0.0.1:22172.evil.example", false}, {local, "localhost:evil.example", false}, {local, "localhost:", true},
		{local, "127.0.0.1:65536", false}, {local, "127.0.0.1:+80", false}, {local, "[::1]:80.evil.example", false},
		{local, "[::1%25evil.example]:80", false}, {local, "api.example.com:8443.evil.example", false},
		{outside, "192.0.2.7:8082", true}, {outside, "replica-1:8082", true}, {outside, "localhost:8082", false},
		{outside, "127.0.0.1", false}, {outside, "replica-2", false},
		{conns.Hosts{Addr: netip.IPv4Unspecified()}, "localhost:1", true},
		{conns.Hosts{Addr: netip.IPv4Unspecified()}, "127.0.0.1:1", true},
		{conns.Hosts{Addr: netip.IPv4Unspecified()}, "198.51.100.200:1", false},
	} {
		if got := c.hosts.Allow(c.host); got != c.want {
			t.Errorf("Host %q at %s: %v, want %v", c.host, c.hosts.Addr, got, c.want)
		}
	}
}

func TestDescriptorsAreDivided(t *testing.T) {
	t.Parallel()
	if got := conns.Divide(0); got != (conns.Budget{}) {
		t.Errorf("an unknown number: %+v", got)
	}
	for _, n := range []int{256, 1024, 4096, 20_000, 65_536, 1 << 20} {
		b := conns.Divide(n)
		used := b.API + b.Admin + 2*b.Gateway + 2*b.Pipes
		left := n/64 + min(n/8, 128)
		if n < 1024 {
			left = n / 16
		}
		if b.API <= 0 || b.Admin <= 0 || b.Gateway <= 0 || used > n-left {
			t.Errorf("%d descriptors: %+v takes %d", n, b, used)
		}
		// Listeners may exceed their limits by 32 each while evicted connections end.
		if over := used + min((b.API+b.Admin+b.Gateway)/16+3, 96); over >= n {
			t.Errorf("%d descriptors: %d with those that end", n, over)
		}
	}
	if b := conns.Divide(20_000); b.Gateway < 9000 {
		t.Errorf("20,000 descriptors hold %d tunnels", b.Gateway)
	}
	if n := conns.Descriptors(); n < 64 {
		t.Errorf("the limit of this process is %d", n)
	}
}
