package route

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"agentproxy/adapters/gateway/lease"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// madeUp makes a worker of every name.
type madeUp struct{ made int64 }

func (m *madeUp) Worker(_ context.Context, id string, words worker.Parameters) (traffic.WorkerRoute, error) {
	m.made++
	w := worker.Worker{ID: m.made, SessionID: id, Name: words.Name, Exit: session.Exit{IP: netip.AddrFrom4([4]byte{127, 0, 0, 9})}}
	return traffic.WorkerRoute{Worker: w, Token: "s1234567"}, nil
}

func (*madeUp) ReportLost(context.Context, worker.Worker) error { return nil }

func (*madeUp) Removed(context.Context, string, []int64) ([]int64, error) { return nil, nil }

// known makes the cache know a worker that is not in use. It returns it pinned.
func (c *Cache) known(t testing.TB, e *Entry, name string) *Worker {
	t.Helper()
	words := worker.Parameters{Name: name}
	w := c.PinWorker(e, words)
	if _, err := c.WorkerRoute(t.Context(), w, words, false); err != nil {
		t.Fatal(err)
	}
	return w
}

func crewOf(most int) *Cache {
	leases := lease.NewRenewer(nil, lease.Config{Report: time.Second, IdleGive: time.Second}, lease.Counters{}, nil, nil)
	c := NewCache(nil, &madeUp{}, leases, 100, time.Second, time.Now)
	c.workers.most = most
	return c
}

// However many names there are, and however long a connection of the first lasts, few are kept.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	const most = 50
	c := crewOf(most)
	e := c.Add(sessionID(1), "p")
	first := c.known(t, e, "first")
	for i := range 10 * most {
		c.known(t, e, fmt.Sprintf("w%d", i)).Unpin()
		if c.Workers() > most {
			t.Fatalf("%d workers are kept after %d names, want %d", c.Workers(), i+2, most)
		}
	}
	if got := c.known(t, e, "first"); got != first {
		t.Error("a worker in use was dropped")
	}
	if last := c.known(t, e, fmt.Sprintf("w%d", 10*most-1)); last.route.Load() == nil {
		t.Error("the newest worker was dropped")
	}
}

// The exits of a place differ from one connection to the next, whatever becomes of the place between.
func TestAPlaceThatChangesGivesNoExitTwiceInARow(t *testing.T) {
	t.Parallel()
	var w Worker
	exits := func(n int) (r traffic.WorkerRoute) {
		for i := range n {
			r.Exits = append(r.Exits, session.Exit{IP: netip.AddrFrom4([4]byte{127, 0, 0, byte(1 + i)})})
		}
		return r
	}
	last := netip.Addr{}
	for i := range 400 {
		r := exits(2 + i%5)
		e := w.NextExit(&r)
		if e.IP == last {
			t.Fatalf("%s twice in a row of %d", e.IP, len(r.Exits))
		}
		last = e.IP
	}
	one := exits(1)
	for range 2 {
		if e := w.NextExit(&one); e != one.Exits[0] {
			t.Errorf("of one exit it gives %v", e)
		}
	}
	// A seller whose names of exits are few: the same comes for several numbers.
	few := traffic.WorkerRoute{Fresh: func(n uint64) (procurement.Endpoint, string, error) {
		return procurement.Endpoint{User: fmt.Sprint(n / 3 % 2)}, "t", nil
	}}
	before := ""
	for range 100 {
		e, _, err := w.NextUpstream(&few)
		if err != nil || e.User == before {
			t.Fatalf("%s twice in a row, %v", e.User, err)
		}
		before = e.User
	}
}

// perWorker bounds what a worker that is known and not in use takes, in bytes.
const perWorker = 1200

func TestTheMemoryOfWorkers(t *testing.T) {
	const many = 100_000
	c := crewOf(MaxWorkers)
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("w%d", i)
	}
	entries := make([]*Entry, many/worker.MaxPerSession)
	for i := range entries {
		entries[i] = c.Add(sessionID(i), "p")
	}
	used := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	for i, name := range names {
		c.known(t, entries[i%len(entries)], name).Unpin()
	}
	each := (used() - before) / many
	t.Logf("%d workers take %d bytes each", c.Workers(), each)
	if c.Workers() != many || each > perWorker {
		t.Errorf("%d workers take %d bytes each, at most %d are wanted", c.Workers(), each, perWorker)
	}
	runtime.KeepAlive(c)
}
