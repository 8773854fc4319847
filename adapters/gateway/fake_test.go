package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
)

// fakeCore implements the interfaces of gateway.Deps. It accounts by the rule of the
// core, traffic.Renew, and fails the test if the gateway violates an invariant:
// counters never decrease, no lease uses more than it was granted, and no session
// more than its limit.
type fakeCore struct {
	t testing.TB

	mu           sync.Mutex
	sessions     map[string]*account
	observations []traffic.Observation
	down         bool          // every call fails
	late         bool          // Renew takes effect, and then fails
	lossy        bool          // so does every third Renew: the gateway may ask for nothing first after a failure
	delay        time.Duration // of every Renew
	routes       int           // calls of Route
	renewals     int
	used         int // calls of Worker
	lostExits    int // that were reported
	mostWorkers  int // of a session; 0 for any number
	nextWorker   int64
	rotated      int
}

type account struct {
	route  traffic.Route
	usage  traffic.Usage
	leases map[string]traffic.Lease
	lost   map[string]bool
	// workers are those of the session by name, exits the addresses that they get.
	workers map[string]worker.Worker
	exits   []netip.Addr
	hop     *procurement.Endpoint // of every worker
}

func newCore(t testing.TB) *fakeCore { return &fakeCore{t: t, sessions: map[string]*account{}} }

// errDown is the error of an unreachable store.
var errDown = errors.New("the store is down")

// add makes an active dynamic session with a limit in bytes, 0 for none.
func (b *fakeCore) add(n int, limit int64, exits ...string) string {
	id := fmt.Sprintf("sess_%020d", n)
	route := traffic.Route{SessionID: id, Type: session.Dynamic, Status: session.Active}
	for _, e := range exits {
		route.Exits = append(route.Exits, session.Exit{IP: netip.MustParseAddr(e)})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sessions[id] = &account{route: route, usage: traffic.Usage{Limit: limit},
		leases: map[string]traffic.Lease{}, lost: map[string]bool{}, workers: map[string]worker.Worker{}}
	return id
}

// change edits a session's route.
func (b *fakeCore) change(id string, edit func(*traffic.Route)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	edit(&b.sessions[id].route)
}

// outage makes every call fail, or work again.
func (b *fakeCore) outage(down bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.down = down
}

// reclaim loses every lease of a session, as the core does after 15 seconds, and reports whether there was one.
func (b *fakeCore) reclaim(id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.sessions[id]
	held := len(a.leases) > 0
	for lease, l := range a.leases {
		a.usage.Leased -= l.Unused()
		a.lost[lease] = true
		delete(a.leases, lease)
	}
	return held
}

// usage returns what was reported to the core.
func (b *fakeCore) usage(id string) traffic.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[id].usage
}

// settled waits until no lease of a session is open.
func (b *fakeCore) settled(id string) traffic.Usage {
	b.t.Helper()
	waitFor(b.t, "leases to be given back", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return len(b.sessions[id].leases) == 0
	})
	return b.usage(id)
}

// observed lists what was observed, without the given types.
func (b *fakeCore) observed(without ...string) []traffic.Observation {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []traffic.Observation
next:
	for _, o := range b.observations {
		for _, w := range without {
			if o.Type == w {
				continue next
			}
		}
		out = append(out, o)
	}
	return out
}

func (b *fakeCore) Route(_ context.Context, id string) (traffic.Route, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.routes++
	if b.down {
		return traffic.Route{}, errDown
	}
	a, ok := b.sessions[id]
	if !ok {
		return traffic.Route{}, &domain.Error{Kind: domain.NotFound, Code: "SESSION_NOT_FOUND"}
	}
	return a.route, nil
}

func (b *fakeCore) RotateDue(ctx context.Context, id string) (traffic.Route, error) {
	b.mu.Lock()
	a := b.sessions[id]
	if b.down || a == nil {
		b.mu.Unlock()
		return traffic.Route{}, errDown
	}
	if n := &a.route; !n.NextAt.IsZero() && !time.Now().Before(n.NextAt) {
		b.rotated++
		n.Rotation++
		n.NextAt = time.Now().Add(time.Hour)
		n.Exits = []session.Exit{{IP: n.Exits[0].IP.Next()}}
	}
	b.mu.Unlock()
	return b.Route(ctx, id)
}

func (b *fakeCore) Renew(ctx context.Context, replica string, asks []traffic.LeaseRequest) ([]traffic.Grant, error) {
	b.mu.Lock()
	delay := b.delay
	b.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renewals++
	if b.down {
		return nil, errDown
	}
	grants := make([]traffic.Grant, 0, len(asks))
	for _, ask := range asks {
		grants = append(grants, b.renew(ask))
	}
	if b.late || b.lossy && b.renewals%3 == 0 {
		return nil, errDown
	}
	return grants, nil
}

// Report implements lease.Core: no lease of the tests is calm.
func (b *fakeCore) Report(context.Context, string, []traffic.ReportPart) error {
	b.t.Error("a lease that is not calm is reported")
	return nil
}

// renewed returns how many calls of Renew there were.
func (b *fakeCore) renewed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.renewals
}

func (b *fakeCore) renew(ask traffic.LeaseRequest) traffic.Grant {
	a := b.sessions[ask.SessionID]
	g := traffic.Grant{SessionID: ask.SessionID, Lease: ask.Lease}
	l, known := a.leases[ask.Lease]
	switch {
	case a.lost[ask.Lease]:
		g.Outcome = traffic.Lost
		return g
	case !known && ask.Close:
		return g // closed before; the answer was lost
	case a.route.Status.Over() && !known:
		g.Outcome = traffic.Over
		return g
	}
	if ask.Up < l.Up || ask.Down < l.Down || ask.Connections < l.Connections {
		b.t.Errorf("counters went back: %+v after %+v", ask, l)
	}
	if ask.Up+ask.Down > l.Granted {
		b.t.Errorf("lease %s used %d of %d", ask.Lease, ask.Up+ask.Down, l.Granted)
	}
	u := a.usage
	if u.Limit == 0 {
		u.Limit = 1 << 60
	}
	d, l, g := traffic.Renew(u, l, ask, time.Now())
	a.usage.Up += d.Up
	a.usage.Down += d.Down
	a.usage.Connections += d.Connections
	a.usage.Leased += d.Leased
	g.Bytes = a.count(d.Workers)
	if a.usage.Limit > 0 && a.usage.Used()+a.usage.Leased > a.usage.Limit {
		b.t.Errorf("used %d and leased %d of %d", a.usage.Used(), a.usage.Leased, a.usage.Limit)
	}
	if ask.Close {
		delete(a.leases, ask.Lease)
		return g
	}
	a.leases[ask.Lease] = l
	if a.usage.Exhausted() {
		if a.route.UsedUp = a.route.Type == session.Static; a.route.UsedUp {
			return g
		}
		a.route.Status, a.route.Reason = session.Expired, session.TrafficExhausted
	}
	if a.route.Status.Over() && g.Outcome != traffic.Exhausted {
		g.Outcome = traffic.Over
	}
	return g
}

func (b *fakeCore) Observe(o traffic.Observation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.observations = append(b.observations, o)
}

// noted waits for n observations: a tunnel's comes after its last byte.
func (b *fakeCore) noted(n int) []traffic.Observation {
	b.t.Helper()
	waitFor(b.t, fmt.Sprintf("%d observations", n), func() bool { return len(b.observed()) >= n })
	return b.observed()
}

// waitFor polls for something that must come true.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
