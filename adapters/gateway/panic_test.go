package gateway_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain/traffic"
	"agentproxy/test/syncbuffer"
)

// faulty panics for one port.
type faulty struct{ port uint16 }

func (f faulty) Check(a netip.AddrPort) error {
	if a.Port() == f.port {
		panic("a fault of the test")
	}
	return open.Check(a)
}

// faultyObserver panics when a tunnel has ended.
type faultyObserver struct{ *fakeCore }

func (f faultyObserver) Observe(o traffic.Observation) {
	f.fakeCore.Observe(o)
	if o.Type == "tunnel" {
		panic("a fault of the test")
	}
}

// A panic in serving a connection ends it alone. It is counted and logged once, and
// leaves no place taken.
func TestAPanicEndsOneConnection(t *testing.T) {
	t.Parallel()
	logged := &syncbuffer.Buffer{}
	core := newCore(t)
	w, r := metered(t, core, func(c *setup) {
		c.AddressPolicy, c.Observer = faulty{7}, faultyObserver{core}
		c.Log = slog.New(slog.NewTextHandler(logged, nil))
	})
	id := w.add(1, 0)
	target := echo(t)
	other := w.connect(id, target)
	for _, request := range []string{"CONNECT 127.0.0.1:7 HTTP/1.1\r\n", "GET http://127.0.0.1:7/ HTTP/1.1\r\nHost: x\r\n"} {
		c := w.dial()
		fmt.Fprintf(c, "%s%s\r\n", request, basic(user(id, 0), password(id)))
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("answered %q", b)
		}
	}
	if _, err := io.WriteString(other, "still"); err != nil {
		t.Error(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(other, got); err != nil || !bytes.Equal(got, []byte("still")) {
		t.Errorf("%q, %v", got, err)
	}
	_ = other.Close()
	w.settled(id)
	waitFor(t, "connections to end", func() bool { return w.Stats().Connections == 0 })
	if n := scrape(t, r)["agentproxy_gateway_panics_total"].Counter.GetValue(); n != 3 {
		t.Errorf("%v panics counted, want 3", n)
	}
	if n := strings.Count(logged.String(), "panic while serving"); n != 3 {
		t.Errorf("%d panics logged, want 3:\n%s", n, logged)
	}
}

// Connections that are kept between plain requests count as tunnels of their session.
func TestKeptClientConnectionsCount(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Tunnels = 4 })
	id := w.add(1, 0)
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	request := "GET " + s.URL + "/ HTTP/1.1\r\nHost: x\r\n" + basic(user(id, 0), password(id)) + "\r\n"
	ask := func(c io.ReadWriter) (int, error) {
		_, _ = io.WriteString(c, request)
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	for n := range 4 {
		c := w.dial()
		for range 2 { // a kept connection has its place already
			if status, err := ask(c); status != 200 {
				t.Fatalf("connection %d: %d, %v", n, status, err)
			}
		}
		if n == 3 {
			if status, err := ask(w.dial()); status != 429 {
				t.Errorf("one connection too many: %d, %v", status, err)
			}
			w.settled(id) // kept connections hold no lease
			_ = c.Close()
		}
	}
	waitFor(t, "the place of a closed connection", func() bool {
		status, err := ask(w.dial())
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return status == 200
	})
}
