package gateway_test

import (
	"io"
	"net"
	"testing"

	"agentproxy/domain/worker"
)

// exchange sends an order to a counting target, reads some of the answer and returns how much came.
func exchange(t *testing.T, c net.Conn, up, down, read int64) int64 {
	t.Helper()
	_, _ = c.Write(order(up, down))
	_, _ = io.CopyN(c, zeros{}, up)
	n, _ := io.CopyN(io.Discard, c, read)
	return n
}

// What workers and the session itself moved adds up with what the session is charged, although answers
// of the core are lost meanwhile.
func TestWorkersAddUpToTheSession(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), newCounting(t).addr()
	w.addWorkers(id, loopbacks, nil)
	lose := func(late bool) {
		w.mu.Lock()
		w.late = late
		w.mu.Unlock()
	}
	want := map[string]worker.Usage{}
	for round, words := range []string{"-session-a", "", "-session-b", "-session-a", "-rotate", "-session-b"} {
		lose(false)
		status, c := w.as(id, words, target)
		if status != 200 {
			t.Fatal(status)
		}
		up, down := int64(1000+round), int64(30_000+round)
		got := exchange(t, c, up, down, down/2)
		lose(true)
		rest, _ := io.CopyN(io.Discard, c, down-got)
		if got+rest != down {
			t.Fatalf("%d of %d bytes", got+rest, down)
		}
		_ = c.Close()
		u := want[words]
		want[words] = worker.Usage{Up: u.Up + up + 16, Down: u.Down + down, Connections: u.Connections + 1}
	}
	lose(false)
	w.noted(6)
	all := w.settled(id)
	var sum worker.Usage
	for words, u := range want {
		sum = worker.Usage{Up: sum.Up + u.Up, Down: sum.Down + u.Down, Connections: sum.Connections + u.Connections}
		if name, ok := map[string]string{"-session-a": "a", "-session-b": "b"}[words]; ok && w.workerUsage(id, name) != u {
			t.Errorf("%s used %+v, counted are %+v", name, u, w.workerUsage(id, name))
		}
	}
	if got := (worker.Usage{Up: all.Up, Down: all.Down, Connections: all.Connections}); got != sum {
		t.Errorf("the session used %+v, counted are %+v", sum, got)
	}
}

func TestAWorkerStopsAtItsLimit(t *testing.T) {
	t.Parallel()
	w := begin(t, newCore(t), nil)
	id, target := w.add(1, 0, "127.0.0.2"), newCounting(t)
	const limit = 300_000
	w.addWorkers(id, loopbacks, map[string]int64{"capped": limit})
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

// A worker's limit is one for all replicas: what another one reported is not given out again, and
// every byte that is delivered is counted.
func TestALimitIsSharedByReplicas(t *testing.T) {
	t.Parallel()
	const limit = 300_000
	core := newCore(t)
	first, second := begin(t, core, nil), begin(t, core, nil)
	id, target := core.add(1, 0, "127.0.0.2"), newCounting(t)
	core.addWorkers(id, loopbacks, map[string]int64{"capped": limit})
	status, early := second.as(id, "-session-capped", target.addr())
	if status != 200 {
		t.Fatal(status)
	}
	status, c := first.as(id, "-session-capped", target.addr())
	if status != 200 {
		t.Fatal(status)
	}
	got := exchange(t, c, 0, 200_000, 200_000)
	_ = c.Close()
	waitFor(t, "the first gateway's report, and the second's rest to be given back", func() bool {
		core.mu.Lock()
		defer core.mu.Unlock()
		for _, l := range core.sessions[id].leases {
			if l.Unused() > 0 {
				return false
			}
		}
		return core.sessions[id].workers["capped"].Usage.Down == 200_000
	})
	got += exchange(t, early, 0, 200_000, 200_000)
	_ = early.Close()
	core.noted(2)
	core.settled(id)
	if used := core.workerUsage(id, "capped"); used.Bytes() != limit || got != limit-32 {
		t.Errorf("counted are %+v of %d, received %d", used, limit, got)
	}
	for _, w := range []*world{first, second} {
		w.Changed(id) // as after any commit; else the first gateway gets it with its next lease
		if status, _ := w.as(id, "-session-capped", target.addr()); status != 402 {
			t.Errorf("a tunnel beyond the limit: %d", status)
		}
	}
}
