package gateway_test

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/domain/traffic"
)

// download asks a counting target for bytes and reads to the end. It returns what
// came, and fails the test on anything but a clean end.
func download(t *testing.T, c *net.TCPConn, size int64) int64 {
	_, _ = c.Write(order(0, size))
	n, err := io.Copy(io.Discard, c)
	if err != nil {
		t.Errorf("after %d bytes: %v", n, err)
	}
	_ = c.Close()
	return n
}

// Twenty tunnels want more than there is. What they get is the limit, no byte
// more and none less, and each ends without a reset.
func TestLimitIsNeverExceeded(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int{1, 2} {
		b := newCore(t)
		const limit = 10_000_000
		id := b.add(1, limit)
		target := newCounting(t)
		var ws []*world
		for range replicas {
			ws = append(ws, begin(t, b, nil))
		}
		var delivered atomic.Int64
		var wg sync.WaitGroup
		var tunnels []*net.TCPConn
		for i := range 20 {
			tunnels = append(tunnels, ws[i%replicas].connect(id, target.addr()))
		}
		for _, c := range tunnels {
			wg.Go(func() { delivered.Add(download(t, c, 1_000_000)) })
		}
		wg.Wait()
		u := b.settled(id)
		if u.Used() != limit {
			t.Errorf("%d replicas: used %d of %d", replicas, u.Used(), limit)
		}
		if got := delivered.Load(); got != u.Down {
			t.Errorf("%d replicas: delivered %d, charged %d", replicas, got, u.Down)
		}
		for _, w := range ws {
			c := w.dial()
			if status := w.connectAs(c, basic(user(id, 0), password(id)), target.addr()); status != 402 {
				t.Errorf("the next connection: %d, want 402", status)
			}
		}
	}
}

// At the limit a client that still sends is drained, not reset.
func TestLimitHalfCloses(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), lingers)
	id := w.add(1, 100_000)
	c := w.connect(id, newCounting(t).addr())
	_, _ = c.Write(order(1<<30, 1<<30))
	go func() {
		for err := error(nil); err == nil; _, err = c.Write(make([]byte, 1<<10)) {
		}
	}()
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error("the client saw", err)
	}
	if u := w.usage(id); u.Used() != u.Limit {
		t.Errorf("used %d of %d", u.Used(), u.Limit)
	}
	_ = c.Close()
	waitFor(t, "the tunnel's end", func() bool { return w.Stats().Connections == 0 })
	if o := w.observed()[0]; o.Code != "TRAFFIC_EXHAUSTED" || o.Evidence != "" {
		t.Errorf("observed %+v", o)
	}
}

// While another replica holds the rest a new connection waits for it, and is
// refused with 503 if it does not become free.
func TestWaitsForAnotherReplica(t *testing.T) {
	t.Parallel()
	b := newCore(t)
	id := b.add(1, 1<<20)
	w := begin(t, b, func(c *setup) { c.Timing.Admit = 100 * time.Millisecond })
	_, _ = b.Renew(t.Context(), "other", []traffic.LeaseRequest{{SessionID: id, Lease: "theirs", Want: 256 << 10}})
	for b.usage(id).Left() > 0 {
		_, _ = b.Renew(t.Context(), "other", []traffic.LeaseRequest{{SessionID: id, Lease: "theirs", Want: 1 << 20}})
	}
	target := echo(t)
	if status := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target); status != 503 {
		t.Errorf("status %d, want 503", status)
	}
	patient := begin(t, b, nil)
	c, status := patient.dial(), make(chan int)
	go func() { status <- patient.connectAs(c, basic(user(id, 0), password(id)), target) }()
	waitFor(t, "the connection to wait for the core's answers", func() bool { return patient.Stats().LeaseWaits > 2 })
	_, _ = b.Renew(t.Context(), "other", []traffic.LeaseRequest{{SessionID: id, Lease: "theirs", Close: true}})
	if got := <-status; got != 200 {
		t.Errorf("after the rest became free: %d, want 200", got)
	}
}

// Without the core the gateway relays what it was granted.
func TestAnOutageStopsNoTunnelAtOnce(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Heartbeat, c.Timing.IdleGive = 10*time.Millisecond, patience })
	id := w.add(1, 0)
	c := w.connect(id, echo(t))
	if err := ping(c); err != nil {
		t.Fatal(err)
	}
	w.outage(true)
	failed := w.renewed()
	for w.renewed() < failed+3 {
		if err := ping(c); err != nil {
			t.Fatal("during the outage:", err)
		}
	}
	w.outage(false) // else the gateway's end waits for the core
}

// An outage of the core stops relaying when the lease expires. Nothing is lost or charged
// twice when the core is back.
func TestOutage(t *testing.T) {
	t.Parallel()
	w := expiring(t)
	id := w.add(1, 0)
	l := listen(t)
	var got atomic.Int64
	go serve(l, func(c net.Conn) {
		for b := make([]byte, 1); ; {
			if _, err := c.Read(b); err != nil {
				return
			}
			got.Add(1)
			_, _ = c.Write(b)
		}
	})
	target := l.Addr().String()
	c := w.connectLater(id, target)
	if err := ping(c); err != nil {
		t.Fatal(err)
	}
	w.outage(true)
	w.expired(id, target)
	waits := w.Stats().LeaseWaits
	_, _ = c.Write([]byte{1})
	waitFor(t, "the byte to arrive at the gateway", func() bool { return w.Stats().LeaseWaits > waits || got.Load() > 1 })
	if n := got.Load(); n != 1 {
		t.Errorf("the target got %d bytes, want 1: the second was sent on an expired lease", n)
	}
	w.outage(false)
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil { // the one that was held back
		t.Fatal("not resumed:", err)
	}
	_ = c.Close()
	waitFor(t, "the report", func() bool { return w.usage(id).Down == 2 && w.usage(id).Up == 2 })
}

// expiring begins a gateway whose leases expire soon, which keeps them until then.
func expiring(t *testing.T) *world {
	return begin(t, newCore(t), func(c *setup) {
		c.Timing.StopAfter, c.Timing.Heartbeat, c.Timing.IdleGive = 200*time.Millisecond, 50*time.Millisecond, patience
		c.Timing.Admit = 50 * time.Millisecond
	})
}

// expired waits in an outage until a session's lease has expired: until then a new connection is served.
func (w *world) expired(id, target string) {
	w.t.Helper()
	waitFor(w.t, "the lease to expire", func() bool {
		c := w.dial()
		defer c.Close()
		return w.connectAs(c, basic(user(id, 0), password(id)), target) == 503
	})
}

// A renewal that took effect and whose answer was lost counts nothing twice.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	target := newCounting(t)
	var tunnels []*net.TCPConn
	for range 8 {
		tunnels = append(tunnels, w.connect(id, target.addr()))
	}
	w.mu.Lock()
	w.lossy = true
	w.mu.Unlock()
	var delivered atomic.Int64
	var down sync.WaitGroup
	for _, c := range tunnels {
		down.Go(func() { delivered.Add(download(t, c, 5_000_000)) })
	}
	down.Wait()
	w.mu.Lock()
	w.lossy = false
	w.mu.Unlock()
	if u := w.settled(id); u.Down != delivered.Load() || u.Down != 40_000_000 {
		t.Errorf("charged %d, delivered %d", u.Down, delivered.Load())
	}
}

// A lease that was taken back takes its unreported use with it; the tunnel goes
// on with a new one.
func TestLostLease(t *testing.T) {
	t.Parallel()
	w, registry := metered(t, newCore(t), func(c *setup) {
		c.Timing.IdleGive, c.Timing.Report, c.Timing.Heartbeat = patience, time.Millisecond, time.Millisecond
	})
	id := w.add(1, 0)
	c := w.connect(id, echo(t))
	for n := range 20 {
		if _, err := c.Write(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "a lease", func() bool { return w.reclaim(id) })
		waitFor(t, "the lost lease to be counted", func() bool {
			return scrape(t, registry).value("agentproxy_gateway_leases_lost_total") == float64(n+1)
		})
	}
	_ = c.Close()
	if u := w.settled(id); u.Used() > 40_000 || u.Leased != 0 {
		t.Errorf("usage %+v after 40,000 bytes", u)
	}
}

// An idle tunnel gives its lease back and keeps it alive; use is reported soon.
func TestIdleGivesBack(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) {
		c.Timing.Report = 100 * time.Millisecond
		c.Timing.Heartbeat = 100 * time.Millisecond
	})
	id := w.add(1, 1<<30)
	c := w.connect(id, echo(t))
	_, _ = c.Write([]byte("abc"))
	_, _ = io.ReadFull(c, make([]byte, 3))
	waitFor(t, "the rest to be given back", func() bool { u := w.usage(id); return u.Leased == 0 && u.Used() == 6 })
	calm := begin(t, newCore(t), func(c *setup) { c.Timing.Report, c.Timing.Heartbeat = 100*time.Millisecond, time.Hour })
	other := calm.add(1, 1<<30)
	_ = calm.connect(other, echo(t))
	waitFor(t, "all to be given back, and the connection to be reported", func() bool {
		u := calm.usage(other)
		return u.Leased == 0 && u.Connections == 1
	})
	before, still := w.renewed(), calm.renewed()
	waitFor(t, "four heartbeats", func() bool { return w.renewed() >= before+4 })
	if n := calm.renewed() - still; n > 0 {
		t.Errorf("%d renewals without a heartbeat", n)
	}
	_, _ = c.Write([]byte("d"))
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Error("the tunnel did not wake up:", err)
	}
}

func TestTunnelLimit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id := w.add(1, 0)
	target := echo(t)
	var all []*net.TCPConn
	for range 256 {
		all = append(all, w.connect(id, target))
	}
	c := w.dial()
	if status := w.connectAs(c, basic(user(id, 0), password(id)), target); status != 429 {
		t.Errorf("the 257th: %d, want 429", status)
	}
	_ = all[0].Close()
	waitFor(t, "a place", func() bool {
		return w.connectAs(w.dial(), basic(user(id, 0), password(id)), target) == 200
	})
}

// Slow renewals, failing ones, answers that are lost, two replicas and a limit:
// what was delivered is what was charged, and never above the limit.
func TestChaos(t *testing.T) {
	t.Parallel()
	b := newCore(t)
	const limit = 30_000_000
	id := b.add(1, limit)
	target := newCounting(t)
	ws := []*world{begin(t, b, nil), begin(t, b, nil)}
	stop := make(chan struct{})
	var trouble sync.WaitGroup
	trouble.Go(func() {
		r := rand.New(rand.NewPCG(1, 2))
		for {
			b.mu.Lock()
			b.down, b.late, b.delay = r.IntN(5) == 0, r.IntN(4) == 0, time.Duration(r.IntN(10))*time.Millisecond
			b.mu.Unlock()
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond):
			}
		}
	})
	var delivered atomic.Int64
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			c := ws[i%2].dial()
			if ws[i%2].connectAs(c, basic(user(id, 0), password(id)), target.addr()) != 200 {
				return // the traffic may be used up, or the core away
			}
			delivered.Add(download(t, c, 2_000_000))
		})
	}
	wg.Wait()
	close(stop)
	trouble.Wait()
	b.mu.Lock()
	b.down, b.late, b.delay = false, false, 0
	b.mu.Unlock()
	if u := b.settled(id); u.Down != delivered.Load() || u.Used() > limit {
		t.Errorf("charged %d, delivered %d, used %d of %d", u.Down, delivered.Load(), u.Used(), limit)
	}
}
