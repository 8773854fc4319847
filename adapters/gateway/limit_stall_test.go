package gateway_test

import (
	"io"
	"testing"
	"time"
)

// A client that does not read holds the last bytes of its session. A new connection gets 503 then, and the client
// receives the reserved bytes once it reads again. A kernel that takes the rest after all, by a probe of the client's
// window, leaves nothing to hold: then it is tried again.
func TestStalledTunnelKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for range 10 {
		if stallsAtTheLimit(t) {
			return
		}
	}
	t.Fatal("no stalled tunnel held anything")
}

func stallsAtTheLimit(t *testing.T) (held bool) {
	t.Helper()
	w, registry := metered(t, newCore(t), func(c *setup) { c.Timing.Admit = 50 * time.Millisecond })
	const limit = 64 << 20
	id := w.add(1, limit)
	target := newCounting(t)
	moved := func() int64 {
		return int64(scrape(t, registry).value("agentproxy_gateway_bytes_total,direction=down"))
	}

	idle := w.connectLater(id, target.addr())
	_, _ = idle.Write(order(0, 1<<30))
	waitFor(t, "the first tunnel to begin", func() bool { return moved() > 0 })
	stalled(t, moved)
	rest := w.connectLater(id, target.addr())
	_, _ = rest.Write(order(0, 1<<30))
	var got int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, _ = io.Copy(io.Discard, rest)
	}()
	waitFor(t, "the second tunnel to take the rest", func() bool { return w.usage(id).Left() == 0 })
	stalled(t, moved)
	status := w.connectAs(w.dial(), basic(user(id, 0), password(id)), target.addr())
	if held = moved() < limit; held && status != 503 {
		t.Errorf("a new connection: %d, want 503", status)
	}

	all, err := io.Copy(io.Discard, idle)
	if err != nil {
		t.Error("the stalled client saw", err)
	}
	<-ended
	if u := w.settled(id); u.Used() != limit || all+got != u.Down {
		t.Errorf("used %d of %d; delivered %d, charged %d", u.Used(), limit, all+got, u.Down)
	}
	return held
}
