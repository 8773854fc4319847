package workers_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// use asks for a worker as a gateway does.
func use(w *apptest.World, id, words string) (traffic.WorkerRoute, error) {
	x, err := worker.Parse(words)
	apptest.OK(w.T, err)
	return w.Workers.Worker(w.T.Context(), id, x)
}

func mustUse(w *apptest.World, id, words string) worker.Worker {
	w.T.Helper()
	r, err := use(w, id, words)
	apptest.OK(w.T, err)
	return r.Worker
}

func stored(w *apptest.World, id string) (list []worker.Worker) {
	w.T.Helper()
	apptest.OK(w.T, w.Store.View(w.T.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		list, err = tx.Workers().Of(ctx, id)
		return err
	}))
	return list
}

func TestTheFirstUseMakesTheWorker(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	v := w.Buy(w.Register(), apptest.Local)
	first := mustUse(w, v.ID, "-country-de-session-w07-ttl-10m-strict")
	if first.Location.Country != "DE" || first.TTL != 10*time.Minute || !first.Strict || !first.Exit.IP.IsValid() ||
		first.Exit == v.Exits[0] {
		t.Errorf("%+v", first)
	}
	again := mustUse(w, v.ID, "-session-w07")
	apptest.Equal(t, "the second use", again, first)
	w.Wire(apptest.Options{}, w.Clock, w.IDs) // a restart
	apptest.Equal(t, "after a restart", mustUse(w, v.ID, "-session-w07"), first)
	if other := mustUse(w, v.ID, "-session-W07"); other.Exit == first.Exit || other.ID == first.ID {
		t.Errorf("another name has %+v", other)
	}
	for _, words := range []string{"-country-us-session-w07", "-session-w07-ttl-11m", "-country-de-city-berlin-session-w07"} {
		if _, err := use(w, v.ID, words); !errors.Is(err, worker.ErrDiffers) {
			t.Errorf("%s: %v", words, err)
		}
	}
	apptest.Equal(t, "workers", len(stored(w, v.ID)), 2)
}

// A fleet that starts: every worker has an exit of its own as long as there are enough, and replicas
// that see a name first at the same time agree.
func TestAFleetHasDistinctExits(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	v := w.Buy(w.Register(), apptest.Local)
	const fleet = 100
	var mu sync.Mutex
	got := map[string][]netip.Addr{}
	apptest.Concurrently(2*fleet, func(i int) {
		name := fmt.Sprintf("w%d", i%fleet)
		r, err := w.Workers.Worker(t.Context(), v.ID, worker.Parameters{Name: name})
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Error(err)
			return
		}
		got[name] = append(got[name], r.Worker.Exit.IP)
	})
	distinct := map[netip.Addr]bool{v.Exits[0].IP: true}
	for name, exits := range got {
		if len(exits) != 2 || exits[0] != exits[1] {
			t.Errorf("%s: %v", name, exits)
		}
		distinct[exits[0]] = true
	}
	apptest.Equal(t, "exits of the fleet and its session", len(distinct), fleet+1)
}

func TestAThousandWorkersAreTheMost(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	v := w.Buy(w.Register(), apptest.Local)
	var refused sync.Map
	apptest.Concurrently(worker.MaxPerSession+3, func(i int) {
		if _, err := w.Workers.Worker(t.Context(), v.ID, worker.Parameters{Name: fmt.Sprintf("w%d", i)}); err != nil {
			refused.Store(i, err)
		}
	})
	n := 0
	refused.Range(func(_, err any) bool {
		n++
		apptest.ErrorIs(t, err.(error), worker.ErrLimit)
		return true
	})
	apptest.Equal(t, "refused", n, 3)
	apptest.Equal(t, "workers", len(stored(w, v.ID)), worker.MaxPerSession)
	used := map[netip.Addr]int{}
	for _, x := range stored(w, v.ID) {
		used[x.Exit.IP]++
	}
	for a, n := range used { // 200 exits
		if n > 6 {
			t.Errorf("%s is used by %d of 1000 workers", a, n)
		}
	}
}

func TestAPlaceThatWasNotBoughtIsRefused(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	anywhere := w.Buy(agent, apptest.Local)
	f := apptest.Form(apptest.Local)
	f.Location = session.Location{Country: "US", City: "New-York"}
	d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
	apptest.OK(t, err)
	newYork := d.View
	for _, tc := range []struct{ id, words, named string }{
		{newYork.ID, "-country-de-session-a", "country-de"},
		{newYork.ID, "-country-de", "country-de"},
		{newYork.ID, "-country-us-city-boston-rotate", "city-boston"},
		{anywhere.ID, "-country-zz-session-a", "country-zz"},
		{w.Buy(agent, apptest.Static).ID, "-session-a", "static"},
		{w.Buy(w.RegisterFunded(100), apptest.Remote).ID, "-session-a", "supports no workers"},
	} {
		_, err := use(w, tc.id, tc.words)
		if !errors.Is(err, worker.ErrParameter) || !strings.Contains(err.Error(), tc.named) {
			t.Errorf("%s: %v", tc.words, err)
		}
	}
	got := mustUse(w, newYork.ID, "-country-us-city-newyork-session-a")
	apptest.Equal(t, "the place", got.Location, session.Location{Country: "US", City: "New-York"})
	apptest.Equal(t, "the place without a word", mustUse(w, newYork.ID, "-session-b").Location, got.Location)
	r, err := use(w, newYork.ID, "-rotate")
	apptest.OK(t, err)
	apptest.Equal(t, "exits of the place", len(r.Exits), 200)
}

func TestTheTimeOfAWorkersExit(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	v := w.Buy(w.Register(), apptest.Local)
	first := mustUse(w, v.ID, "-session-a-ttl-10s")
	w.Clock.Advance(10*time.Second - time.Microsecond)
	apptest.Equal(t, "the exit within its time", mustUse(w, v.ID, "-session-a").Exit, first.Exit)
	w.Clock.Advance(time.Microsecond)
	second := mustUse(w, v.ID, "-session-a")
	if second.Exit == first.Exit || !second.AssignedAt.Equal(w.Clock.Now()) || second.Turn != 1 || second.Rotations != 0 {
		t.Errorf("after its time: %+v", second)
	}
}

func TestALostExit(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	loose, strict := mustUse(w, v.ID, "-session-loose"), mustUse(w, v.ID, "-session-strict-strict")
	w.RestartWithout(loose.Exit.IP)
	moved := mustUse(w, v.ID, "-session-loose")
	if moved.Exit == loose.Exit || moved.Lost {
		t.Errorf("%+v", moved)
	}
	list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 1})
	apptest.OK(t, err)
	e := list.Items[0]
	if e.Type != "exit_lost" || e.Worker != "loose" || !strings.Contains(e.Message, loose.Exit.IP.String()) ||
		!strings.Contains(e.Message, moved.Exit.IP.String()) {
		t.Errorf("the feed has %+v", e)
	}
	w.RestartWithout(strict.Exit.IP)
	for range 2 {
		_, err := use(w, v.ID, "-session-strict")
		apptest.ErrorIs(t, err, worker.ErrExitLost)
	}
	for _, x := range stored(w, v.ID) {
		if x.Name == "strict" && (x.Status() != worker.ExitLost || x.Exit != strict.Exit) {
			t.Errorf("%+v", x)
		}
	}
	list, err = w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 10})
	apptest.OK(t, err)
	n := 0
	for _, e := range list.Items {
		if e.Type == "exit_lost" {
			n++
		}
	}
	apptest.Equal(t, "events of lost exits", n, 2)
}

// What a removed address was lost for stays decided by the host: one that can be bound is no lost one.
func TestAnExitThatCanBeBoundIsNotLost(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	v := w.Buy(w.Register(), apptest.Local)
	x := mustUse(w, v.ID, "-session-a-strict")
	apptest.OK(t, w.Workers.ReportLost(t.Context(), x))
	apptest.Equal(t, "the worker", mustUse(w, v.ID, "-session-a"), x)
	w.Unbind(x.Exit.IP)
	apptest.ErrorIs(t, w.Workers.ReportLost(t.Context(), x), worker.ErrExitLost)
	_, err := use(w, v.ID, "-session-a")
	apptest.ErrorIs(t, err, worker.ErrExitLost)
}

func TestWhatIsGone(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	v := w.Buy(w.Register(), apptest.Local)
	x := mustUse(w, v.ID, "-session-a")
	gone, err := w.Workers.Removed(t.Context(), v.ID, []int64{x.ID, x.ID + 1})
	apptest.OK(t, err)
	if len(gone) != 1 || gone[0] != x.ID+1 {
		t.Errorf("gone: %v", gone)
	}
}

// What workers used adds up with what the session used, whatever is repeated and however a lease ends.
func TestWorkersAreCountedInTheUnitOfTheSession(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	agent := w.Register()
	v := w.Buy(agent, apptest.Local)
	a, b := mustUse(w, v.ID, "-session-a"), mustUse(w, v.ID, "-session-b")
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Want: 1 << 20})
	ask := traffic.LeaseRequest{SessionID: v.ID, Lease: "l", Up: 100, Down: 1000, Connections: 3, Want: 1 << 20, Report: []int64{a.ID, 1 << 40},
		Workers: []traffic.WorkerUse{{ID: b.ID, Down: 600, Connections: 1}, {ID: a.ID, Up: 60, Down: 300, Connections: 1}}}
	w.Store.FailUpdates(1)
	_, err := w.Traffic.Renew(t.Context(), "replica", []traffic.LeaseRequest{ask})
	apptest.ErrorIs(t, err, apptest.ErrStore)
	for range 3 {
		g := w.RenewLease(ask)
		if len(g.Bytes) != 1 || g.Bytes[a.ID] != 360 {
			t.Errorf("answered %v", g.Bytes)
		}
	}
	// Another replica, which crashes after its last report.
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "m", Want: 1 << 20})
	w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "m", Up: 7, Want: 1 << 20, Workers: []traffic.WorkerUse{{ID: a.ID, Up: 7}}})
	w.Clock.Advance(time.Hour)
	apptest.OK(t, w.Tasks.Reclaim(t.Context()))
	g := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "m", Up: 9, Workers: []traffic.WorkerUse{{ID: a.ID, Up: 9}}})
	apptest.Equal(t, "the outcome", g.Outcome, traffic.Lost)
	u := w.Read(agent, v.ID).Usage
	list := stored(w, v.ID)
	if u.Up != 107 || u.Down != 1000 || u.Connections != 3 {
		t.Errorf("the session used %+v", u)
	}
	apptest.Equal(t, "a used", list[0].Usage, worker.Usage{Up: 67, Down: 300, Connections: 1})
	apptest.Equal(t, "b used", list[1].Usage, worker.Usage{Down: 600, Connections: 1})
	if list[0].LastUsedAt.IsZero() {
		t.Error("its last use is unknown")
	}
}
