package gateway_test

import (
	"io"
	"testing"
	"time"
)

// A client that does not read holds the last bytes of its session. Connections that
// wait for them do not make the gateway retry in a loop, a new connection gets 503,
// and the client receives the reserved bytes once it reads again.
func TestStalledTunnelCausesNoRetryLoop(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), func(c *setup) { c.Timing.Admit = 500 * time.Millisecond })
	const limit = 64 << 20
	id := w.add(1, limit)
	target := newCounting(t)

	stalled := w.connect(id, target.addr())
	_, _ = stalled.Write(order(0, 1<<30))
	used := int64(-1)
	waitFor(t, "the first tunnel to stall", func() bool {
		before := used
		time.Sleep(50 * time.Millisecond)
		used = w.usage(id).Used()
		return used > 0 && used == before
	})
	rest := w.connect(id, target.addr())
	_, _ = rest.Write(order(0, 1<<30))
	var got int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, _ = io.Copy(io.Discard, rest)
	}()
	waitFor(t, "the second tunnel to take the rest", func() bool {
		before := used
		time.Sleep(50 * time.Millisecond)
		used = w.usage(id).Used()
		return used > before/2 && used == before && w.usage(id).Left() == 0
	})
	if used == limit {
		t.Fatal("the stalled tunnel holds nothing")
	}

	began := time.Now()
	before := w.renewed()
	if status := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target.addr()); status != 503 {
		t.Errorf("a new connection: %d, want 503", status)
	}
	n := w.renewed() - before
	if took := time.Since(began); n > 2*int(took/(6*time.Millisecond))+2 { // an eighth of IdleGive is between two
		t.Errorf("%d renewals while a connection waited, in %v", n, took)
	}

	all, err := io.Copy(io.Discard, stalled)
	if err != nil {
		t.Error("the stalled client saw", err)
	}
	<-ended
	if u := w.settled(id); u.Used() != limit || all+got != u.Down {
		t.Errorf("used %d of %d; delivered %d, charged %d", u.Used(), limit, all+got, u.Down)
	}
}
