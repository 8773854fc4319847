package gateway_test

import (
	"io"
	"testing"
	"time"
)

// A client that does not read holds the last bytes of its session. A new connection gets 503 then, and the client
// receives the reserved bytes once it reads again. The client is a stream of HTTP/2: its window ends where the client
// asks, while a kernel takes more of a connection by and by.
func TestStalledTunnelKeepsItsBytes(t *testing.T) {
	t.Parallel()
	w, registry := metered(t, newCore(t), func(s *setup) { certified(s); s.Timing.Admit = 50 * time.Millisecond })
	const limit, window = 64 << 20, 4 << 20 // the client's window is http2's
	id := w.add(1, limit)
	target := newCounting(t)
	auth, client := basic(user(id, 0), password(id)), w.streams()

	var idle *stream
	waitFor(t, "a lease in time", func() bool {
		idle = w.tunnel(client, basicValue(user(id, 0), password(id)), target.addr())
		return idle.res.StatusCode == 200
	})
	_, _ = idle.Write(order(0, 1<<30))
	moved := func() int64 {
		return int64(scrape(t, registry).value("agentproxy_gateway_bytes_total,direction=down"))
	}
	waitFor(t, "the window to be used", func() bool { return moved() > window-1<<20 })
	stalled(t, moved)
	rest := w.connectLater(id, target.addr())
	_, _ = rest.Write(order(0, 1<<30))
	var got int64
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, _ = io.Copy(io.Discard, rest)
	}()
	waitFor(t, "503 for a new connection", func() bool {
		c := w.dial()
		defer c.Close()
		status := w.connectAs(c, auth, target.addr())
		if status == 402 {
			t.Fatal("nothing is held")
		}
		return status == 503
	})
	if u := w.usage(id); u.Used() >= limit || u.Left() != 0 {
		t.Errorf("used %d, left %d of %d", u.Used(), u.Left(), u.Limit)
	}

	all, err := io.Copy(io.Discard, idle)
	if err != nil {
		t.Error("the stalled client saw", err)
	}
	<-ended
	if u := w.settled(id); u.Used() != limit || all+got != u.Down {
		t.Errorf("used %d of %d; delivered %d, charged %d", u.Used(), limit, all+got, u.Down)
	}
}
