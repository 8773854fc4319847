package worker_test

import (
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/worker"
)

var at = time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC)

func TestAWordThatAsksForAnotherWorkerIsNamed(t *testing.T) {
	t.Parallel()
	w := worker.Worker{Settings: worker.Settings{TTL: time.Minute, Strict: true,
		Location: session.Location{Country: "US", City: "New-York"}}}
	loose := worker.Worker{}
	for _, tc := range []struct {
		w    worker.Worker
		x    worker.Parameters
		want string
	}{
		{w, worker.Parameters{}, ""},
		{w, worker.Parameters{Country: "US", City: "newyork", TTL: time.Minute, Strict: true}, ""},
		{w, worker.Parameters{City: "new_york"}, ""},
		{w, worker.Parameters{Country: "DE"}, "country"},
		{w, worker.Parameters{Country: "US", City: "boston"}, "city"},
		{w, worker.Parameters{TTL: time.Hour}, "ttl"},
		{loose, worker.Parameters{Strict: true}, "strict"},
		{loose, worker.Parameters{TTL: time.Minute}, "ttl"},
	} {
		if got := tc.w.Differs(tc.x); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.x, got, tc.want)
		}
	}
}

func TestTheTimeOfAnExitBeginsWithItsAssignment(t *testing.T) {
	t.Parallel()
	w := worker.Worker{Settings: worker.Settings{TTL: time.Minute}, AssignedAt: at}
	if w.Due(at.Add(time.Minute-1)) || !w.Due(at.Add(time.Minute)) {
		t.Error("the exit is not due after its time")
	}
	w = w.Move(session.Exit{}, at.Add(2*time.Minute))
	if w.Due(at.Add(3*time.Minute-1)) || w.Turn != 1 {
		t.Errorf("%+v", w)
	}
	if (worker.Worker{AssignedAt: at}).Due(at.AddDate(1, 0, 0)) {
		t.Error("an exit without a time is due")
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		w    worker.Worker
		want worker.Status
	}{
		{worker.Worker{}, worker.Active},
		{worker.Worker{Lost: true}, worker.ExitLost},
		{worker.Worker{Lost: true, Settings: worker.Settings{MaxBytes: 3}, Usage: worker.Usage{Up: 1, Down: 2}}, worker.Exhausted},
		{worker.Worker{Settings: worker.Settings{MaxBytes: 4}, Usage: worker.Usage{Up: 1, Down: 2}}, worker.Active},
	} {
		if got := tc.w.Status(); got != tc.want {
			t.Errorf("%+v: %s", tc.w, got)
		}
	}
}

func TestPickTakesTheLeastUsedExit(t *testing.T) {
	t.Parallel()
	var exits []netip.Addr
	for i := range 50 {
		exits = append(exits, netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}))
	}
	used := map[netip.Addr]int{}
	for i := range 100 {
		exit, ok := worker.Pick(exits, used, netip.Addr{}, "sess_1/w")
		if !ok {
			t.Fatal("no exit")
		}
		if used[exit]++; used[exit] > 1+i/50 {
			t.Fatalf("%s is used %d times by %d workers", exit, used[exit], i+1)
		}
	}
	first, _ := worker.Pick(exits, nil, netip.Addr{}, "a")
	if again, _ := worker.Pick(exits, nil, netip.Addr{}, "a"); again != first {
		t.Error("the same seed gives two exits")
	}
	if other, ok := worker.Pick(exits, nil, first, "a"); !ok || other == first {
		t.Error("the exit to avoid is picked")
	}
	if _, ok := worker.Pick(exits[:1], map[netip.Addr]int{exits[0]: -1}, netip.Addr{}, "a"); ok {
		t.Error("an excluded exit is picked")
	}
	if _, ok := worker.Pick(nil, nil, netip.Addr{}, "a"); ok {
		t.Error("none of no exits is picked")
	}
}
