package traffic_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentproxy/domain/traffic"
)

// Whatever is repeated, lost or overtaken, workers never have more than the session, and a request that
// is counted is counted by worker once.
func TestWorkersAreCountedWithTheirSession(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(0)
		l.request(traffic.LeaseRequest{SessionID: "s", Lease: "l", Want: traffic.MaxLease})
		counted := map[int64]traffic.WorkerUse{}
		var requests []traffic.LeaseRequest
		now := traffic.LeaseRequest{SessionID: "s", Lease: "l", Want: traffic.MaxLease}
		by := map[int64]traffic.WorkerUse{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			id := rapid.Int64Range(0, 3).Draw(t, "worker") // 0: the session's own
			up, down := rapid.Int64Range(0, 1000).Draw(t, "up"), rapid.Int64Range(0, 1000).Draw(t, "down")
			now.Up, now.Down, now.Connections = now.Up+up, now.Down+down, now.Connections+1
			if id > 0 {
				w := by[id]
				by[id] = traffic.WorkerUse{ID: id, Up: w.Up + up, Down: w.Down + down, Connections: w.Connections + 1}
			}
			request := now
			for _, w := range by {
				request.Workers = append(request.Workers, w)
			}
			requests = append(requests, request)
			d, _ := l.request(requests[rapid.IntRange(0, len(requests)-1).Draw(t, "ask")])
			for _, w := range d.Workers {
				c := counted[w.ID]
				counted[w.ID] = traffic.WorkerUse{ID: w.ID, Up: c.Up + w.Up, Down: c.Down + w.Down, Connections: c.Connections + w.Connections}
			}
		}
		d, _ := l.request(requests[len(requests)-1])
		for _, w := range d.Workers {
			c := counted[w.ID]
			counted[w.ID] = traffic.WorkerUse{ID: w.ID, Up: c.Up + w.Up, Down: c.Down + w.Down, Connections: c.Connections + w.Connections}
		}
		if diff := cmp.Diff(by, counted); diff != "" {
			t.Fatalf("moved and counted differ:\n%s", diff)
		}
	})
}

func TestWorkersAreNotCountedBeyondTheSession(t *testing.T) {
	t.Parallel()
	for _, a := range []traffic.LeaseRequest{
		{Up: 5, Workers: []traffic.WorkerUse{{ID: 1, Up: 6}}},
		{Up: 5, Down: 5, Workers: []traffic.WorkerUse{{ID: 1, Up: 3, Down: 3}, {ID: 2, Up: 3}}},
		{Connections: 1, Workers: []traffic.WorkerUse{{ID: 1, Connections: 2}}},
		{Up: 2000, Workers: []traffic.WorkerUse{{ID: 1, Up: 2000}}}, // beyond the grant
	} {
		d, l, _ := traffic.Renew(traffic.Usage{}, traffic.Lease{Granted: 1000}, a, noon)
		if d.Workers != nil || l.Workers != nil {
			t.Errorf("%+v: %+v", a, d.Workers)
		}
	}
}

// A lease has no counters of workers that its gateway forgot, and a request from before, which comes late,
// brings none back.
func TestForgottenWorkersLeaveTheLease(t *testing.T) {
	t.Parallel()
	l := newLedger(0)
	l.request(traffic.LeaseRequest{SessionID: "s", Lease: "l", Want: traffic.MaxLease})
	old := traffic.LeaseRequest{SessionID: "s", Lease: "l", Up: 30, Want: traffic.MaxLease, Workers: []traffic.WorkerUse{{ID: 1, Up: 10}, {ID: 2, Up: 20}}}
	l.request(old)
	d, _ := l.request(traffic.LeaseRequest{SessionID: "s", Lease: "l", Up: 45, Want: traffic.MaxLease, Forget: []int64{1}, Workers: []traffic.WorkerUse{{ID: 2, Up: 25}}})
	if diff := cmp.Diff([]traffic.WorkerUse{{ID: 2, Up: 5}}, d.Workers); diff != "" {
		t.Error(diff)
	}
	if d, _ := l.request(old); d.Workers != nil {
		t.Errorf("counted again: %+v", d.Workers)
	}
	if diff := cmp.Diff([]traffic.WorkerUse{{ID: 2, Up: 25}}, l.leases["l"].Workers); diff != "" {
		t.Error(diff)
	}
}
