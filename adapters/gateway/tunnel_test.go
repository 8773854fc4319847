package gateway_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

func TestTunnelCarriesBothWays(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0, "127.0.0.2")
	c := w.connect(id, echo(t))
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	_ = c.CloseWrite()
	if got, err := io.ReadAll(c); err != nil || string(got) != "hello" {
		t.Errorf("read %q, %v", got, err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Up != 5 || u.Down != 5 || u.Connections != 1 {
		t.Errorf("usage %+v, want 5 up, 5 down, 1 connection", u)
	}
	seen := w.noted(1)
	if len(seen) != 1 || seen[0].Type != "tunnel" || seen[0].Bytes != 10 || seen[0].ExitIP != "127.0.0.2" || seen[0].Evidence != "" {
		t.Errorf("observed %+v", seen)
	}
}

func TestEarlyBytesBelongToTheTunnel(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	c := w.dial()
	target := echo(t)
	_, _ = io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: "+target+"\r\n"+basic(user(id, 0), password(id))+"\r\nearly")
	_ = c.CloseWrite()
	const established = "HTTP/1.1 200 Connection established\r\n\r\n"
	if got, err := io.ReadAll(c); err != nil || string(got) != established+"early" {
		t.Errorf("read %q, %v", got, err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Up != 5 || u.Down != 5 {
		t.Errorf("usage %+v, want 5 and 5", u)
	}
}

// Every tunnel's bytes are counted at both ends, whatever their number, and the
// sum is what the core has counted in the end.
func TestMetersToTheByte(t *testing.T) {
	t.Parallel()
	for _, pipes := range []int{0, -1} {
		w := begin(t, newCore(t), func(c *setup) { c.Pipes = pipes })
		id := w.add(1, 0)
		target := newCounting(t)
		var wg sync.WaitGroup
		for i := range 300 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 7))
				up, down := r.Int64N(1<<r.IntN(21)), r.Int64N(1<<r.IntN(23))
				c := w.connect(id, target.addr())
				defer c.Close()
				_, _ = c.Write(order(up, down))
				go func() { _, _ = io.CopyN(c, zeros{}, up) }()
				if n, err := io.CopyN(io.Discard, c, down); err != nil {
					t.Errorf("%d of %d: %v", n, down, err)
				}
				if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("after the last byte: %d, %v", n, err)
				}
			})
			if i%30 == 29 {
				wg.Wait()
			}
		}
		wg.Wait()
		u := w.settled(id)
		if u.Up != target.in.Load() || u.Down != target.out.Load() || u.Connections != 300 {
			t.Errorf("pipes %d: usage %+v, target saw %d up and %d down", pipes, u, target.in.Load(), target.out.Load())
		}
	}
}

func TestHalfClose(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)

	t.Run("the other direction goes on", func(t *testing.T) {
		l, pass := listen(t), elsewhere(t)
		go serve(l, func(c net.Conn) {
			got, _ := io.ReadAll(c)
			pass() // what would end the other direction too
			_, _ = c.Write(append(got, " and more"...))
		})
		c := w.connect(id, l.Addr().String())
		_, _ = io.WriteString(c, "this")
		_ = c.CloseWrite()
		if got, err := io.ReadAll(c); err != nil || string(got) != "this and more" {
			t.Errorf("read %q, %v", got, err)
		}
	})
	t.Run("the target may end first", func(t *testing.T) {
		l := listen(t)
		got := make(chan string, 1)
		go serve(l, func(c net.Conn) {
			_, _ = io.WriteString(c, "banner")
			_ = c.(*net.TCPConn).CloseWrite()
			b, _ := io.ReadAll(c)
			got <- string(b)
		})
		c := w.connect(id, l.Addr().String())
		if b, err := io.ReadAll(c); err != nil || string(b) != "banner" {
			t.Fatalf("read %q, %v", b, err)
		}
		_, _ = io.WriteString(c, "reply")
		_ = c.CloseWrite()
		if s := <-got; s != "reply" {
			t.Errorf("the target read %q", s)
		}
	})
	t.Run("a silent rest is cut", func(t *testing.T) {
		l, over := listen(t), make(chan struct{})
		defer close(over)
		go serve(l, func(c net.Conn) {
			_, _ = io.ReadAll(c)
			<-over
		})
		hasty := begin(t, w.fakeCore, func(c *setup) { c.Timing.HalfClosed = 200 * time.Millisecond })
		c := hasty.connect(id, l.Addr().String())
		_ = c.CloseWrite()
		if _, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("half closed and quiet, and not cut")
		}
	})
}

func TestIdleTunnelIsCut(t *testing.T) {
	t.Parallel()
	target := echo(t)
	for idle := 200 * time.Millisecond; ; idle *= 2 {
		w := begin(t, newCore(t), func(c *setup) { c.Timing.Idle = idle })
		opened := time.Now()
		c := w.connect(w.add(1, 0), target)
		if err := inUse(c, opened, idle); errors.Is(err, errLate) && idle < patience {
			continue // this machine was busy for so long that the tunnel was not in use
		} else if err != nil {
			t.Fatal("cut while in use:", err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("read something")
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error("not cut")
		}
		return
	}
}

// errLate is the error of a tunnel that was quiet for too long.
var errLate = errors.New("nothing was moved for too long")

// inUse uses a tunnel, in which something moved after a time, for longer than it may be idle, and returns why that
// failed.
func inUse(c net.Conn, moved time.Time, idle time.Duration) error {
	for range 5 {
		began := time.Now() // before the gateway has that something moves
		if err := ping(c); err != nil && time.Since(moved) >= idle {
			return errLate
		} else if err != nil {
			return err
		}
		moved = began
		time.Sleep(idle / 2)
	}
	return nil
}

// A client that reads slowly holds a pipe, but gets everything.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	w, registry := metered(t, newCore(t), nil)
	id := w.add(1, 0)
	target := newCounting(t)
	c := w.connect(id, target.addr())
	const size = 32 << 20
	_, _ = c.Write(order(0, size))
	stalled(t, func() int64 { return int64(scrape(t, registry).value("agentproxy_gateway_bytes_total,direction=down")) })
	if n, err := io.CopyN(io.Discard, c, size); err != nil {
		t.Errorf("%d of %d: %v", n, size, err)
	}
	_ = c.Close()
	if u := w.settled(id); u.Down != size {
		t.Errorf("down %d, want %d", u.Down, size)
	}
}

func TestResets(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	t.Run("of the target", func(t *testing.T) {
		l := listen(t)
		go serve(l, func(c net.Conn) {
			_, _ = io.WriteString(c, "half an answer")
			_, _ = c.Read(make([]byte, 1))
			_ = c.(*net.TCPConn).SetLinger(0)
		})
		c := w.connect(id, l.Addr().String())
		if _, err := io.ReadFull(c, make([]byte, 14)); err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte{1})
		_, _ = io.ReadAll(c)
		_ = c.Close()
		waitFor(t, "the observation", func() bool { return len(w.observed()) == 1 })
		if o := w.observed()[0]; o.Evidence != "http_error" || o.Bytes != 15 || o.Type != "tunnel" {
			t.Errorf("observed %+v", o)
		}
	})
	t.Run("of the client", func(t *testing.T) {
		c := w.connect(id, newCounting(t).addr())
		_, _ = c.Write(order(0, 1<<30))
		_, _ = io.ReadFull(c, make([]byte, 1<<20))
		_ = c.SetLinger(0)
		_ = c.Close()
		waitFor(t, "the tunnel to end", func() bool { return w.Stats().Tunnels == 0 })
		w.settled(id)
	})
}

func TestTerminateCuts(t *testing.T) {
	t.Parallel()
	// Without the notification the idle tunnel would be checked after an hour.
	w := begin(t, newCore(t), func(c *setup) {
		c.Timing.Heartbeat, c.Timing.Report = time.Hour, time.Hour
	})
	id, quiet, other := w.add(1, 0), w.add(2, 0), w.add(3, 0)
	target := newCounting(t)
	busy, idle, foreign := w.connect(id, target.addr()), w.connect(quiet, echo(t)), w.connect(other, echo(t))
	_, _ = busy.Write(order(0, 1<<40))
	_, _ = io.ReadFull(busy, make([]byte, 1<<20))
	waitFor(t, "the idle lease to be given back", func() bool { u := w.usage(quiet); return u.Leased == 0 && u.Connections == 1 })
	for _, id := range []string{id, quiet} {
		w.change(id, func(r *traffic.Route) { r.Status, r.Reason = session.Terminated, session.AgentRequest })
		w.Changed(id)
	}
	for name, c := range map[string]*net.TCPConn{"busy": busy, "idle": idle} {
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the %s tunnel was not cut", name)
		}
	}
	if _, err := foreign.Write([]byte("x")); err != nil {
		t.Error("another session's tunnel was cut:", err)
	}
	if _, err := io.ReadFull(foreign, make([]byte, 1)); err != nil {
		t.Error("another session's tunnel was cut:", err)
	}
	if status := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target.addr()); status != 410 {
		t.Errorf("the next connection: %d, want 410", status)
	}
	w.settled(id)
}
