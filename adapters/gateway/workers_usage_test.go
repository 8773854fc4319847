package gateway_test

import (
	"io"
	"net"
	"testing"
)

// exchange sends an order to a counting target, reads some of the answer and returns how much came.
func exchange(t *testing.T, c net.Conn, up, down, read int64) int64 {
	t.Helper()
	_, _ = c.Write(order(up, down))
	_, _ = io.CopyN(c, zeros{}, up)
	n, _ := io.CopyN(io.Discard, c, read)
	return n
}

func TestAWorkerStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), newCounting(t)
	const limit = 300_000
	w.crew(id, loopbacks, map[string]int64{"capped": limit})
	_, other := w.as(id, "-session-free", target.addr())
	got := int64(0)
	for range 2 { // the second tunnel gets what the first left
		status, c := w.as(id, "-session-capped", target.addr())
		if status != 200 {
			t.Fatal(status)
		}
		want := int64(200_000)
		got += exchange(t, c, 0, want, want)
		_ = c.Close()
	}
	w.noted(2)
	if status, _ := w.as(id, "-session-capped", target.addr()); status != 402 {
		t.Errorf("a tunnel beyond the limit: %d", status)
	}
	if n := exchange(t, other, 0, 500_000, 500_000); n != 500_000 {
		t.Errorf("the other worker got %d bytes", n)
	}
	_ = other.Close()
	w.settled(id)
	// The orders are the worker's too.
	if u := w.workerUsage(id, "capped"); u.Bytes() != limit || got != limit-32 {
		t.Errorf("counted are %+v of %d, received %d", u, limit, got)
	}
	codes := map[string]bool{}
	for _, o := range w.observed() {
		codes[o.Worker+" "+o.Code] = true
	}
	if !codes["capped WORKER_TRAFFIC_EXHAUSTED"] {
		t.Errorf("observed %v", codes)
	}
}
