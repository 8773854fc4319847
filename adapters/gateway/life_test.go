package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/gateway"
	"agentproxy/domain/traffic"
)

// A timed rotation happens with the first new connection after it is due, once;
// open tunnels finish on the old exit.
func TestTimedRotation(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.5")
	l := listen(t)
	go serve(l, func(c net.Conn) {
		_, _ = io.WriteString(c, c.RemoteAddr().(*net.TCPAddr).IP.String())
		_, _ = io.Copy(c, c)
	})
	exit := func(c net.Conn) string {
		b := make([]byte, len("127.0.0.5"))
		_, _ = io.ReadFull(c, b)
		return string(b)
	}
	old := w.connect(id, l.Addr().String())
	if got := exit(old); got != "127.0.0.5" {
		t.Fatalf("before: %s", got)
	}
	w.change(id, func(r *traffic.Route) { r.NextAt = time.Now() })
	w.Changed(id)
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if got := exit(w.connect(id, l.Addr().String())); got != "127.0.0.6" {
				t.Errorf("after: %s", got)
			}
		})
	}
	wg.Wait()
	if w.rotated != 1 {
		t.Errorf("rotated %d times", w.rotated)
	}
	_, _ = old.Write([]byte("x"))
	if _, err := io.ReadFull(old, make([]byte, 1)); err != nil {
		t.Error("the old tunnel:", err)
	}
}

// A gateway that stops lets open tunnels finish, and cuts those that take too long.
func TestStopDrains(t *testing.T) {
	t.Parallel()
	b := newCore(t)
	id := b.add(1, 0)
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	w := begin(t, b, func(c *setup) { c.Timing.Drain = time.Hour })
	kept := w.client(id)
	if res, err := kept.Get(s.URL); err != nil {
		t.Fatal(err)
	} else {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	one, two := w.connect(id, echo(t)), w.connect(id, echo(t))
	stopped := make(chan struct{})
	go func() {
		_ = w.Stop(context.Background())
		close(stopped)
	}()
	waitFor(t, "the listener's end", func() bool {
		c, err := net.Dial("tcp", w.addr)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	})
	for _, c := range []net.Conn{one, two} {
		if err := ping(c); err != nil {
			t.Error("cut while draining:", err)
		}
		select {
		case <-stopped:
			t.Error("stopped before the last tunnel ended")
		default:
		}
		_ = c.Close()
	}
	<-stopped
	if u := b.usage(id); u.Leased != 0 || u.Connections != 3 {
		t.Errorf("after the stop: %+v", u)
	}
	hasty := begin(t, b, nil)
	long := hasty.connect(id, echo(t))
	_ = hasty.Stop(context.Background())
	if _, err := long.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the long tunnel is still open")
	}
}

func TestStopWithoutConnectionsIsQuick(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) {
		c.Timing.Drain, c.Timing.Header, c.Timing.Keep = time.Hour, time.Hour, time.Hour
	})
	w.dial() // sends nothing
	idle := w.dial()
	id := w.add(1, 0)
	s := newSite(t, func(http.ResponseWriter, *http.Request) {})
	fmt.Fprintf(idle, "GET %s/ HTTP/1.1\r\nHost: x\r\n%s\r\n", s.URL, basic(user(id, 0), password(id)))
	response(t, idle)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _ = w.Stop(ctx); ctx.Err() != nil {
		t.Error("it waited for those that send nothing")
	}
}

func TestStartReportsATakenPort(t *testing.T) {
	t.Parallel()
	l := listen(t)
	g := gateway.New(gateway.Config{Addr: l.Addr().String()}, deps(newCore(t)))
	if err := g.Start(context.Background()); err == nil {
		t.Error("started on a taken port")
	}
	_ = g.Stop(context.Background())
}

func TestProbe(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, `{"success":true,"data":{"ip":%q},"error":null}`, host)
	})
	b := newCore(t)
	w := begin(t, b, func(c *setup) { c.EchoURL, c.AddressPolicy = s.URL+"/v1/ip", nil })
	id := b.add(1, 0, "127.0.0.8")
	route, _ := b.Route(t.Context(), id)
	got, err := w.Probe(t.Context(), route)
	if err != nil || got.ExitIP != "127.0.0.8" || got.Latency <= 0 {
		t.Errorf("%+v, %v", got, err)
	}
	s.Close()
	if _, err := w.Probe(t.Context(), route); err == nil {
		t.Error("no error without an echo")
	}
}

// One look-up serves many connections, and a change makes one more.
func TestRoutesAreCached(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	target := echo(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _ = w.connect(id, target).Close() })
	}
	wg.Wait()
	if w.routes != 1 {
		t.Errorf("%d look-ups, want 1", w.routes)
	}
	w.outage(true)
	if got := w.connectAs(w.dial(), basic(user(w.add(2, 0), 0), password("sess_00000000000000000002")), target); got != 503 {
		t.Errorf("without the core: %d, want 503", got)
	}
	w.outage(false) // so that stopping can return the leases
}
