package workers_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/exitgate"
	"agentproxy/app/sessions"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/ratelimit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/test/apptest"
)

// network sees each exit as itself. Of each half of the exits the first passing ones are in no list.
type network struct {
	passing atomic.Int64
	probes  atomic.Int64
	through atomic.Int64 // probes through a seller
	seen    bool         // the seller is a list
	hook    func(context.Context) error
	none    atomic.Bool // there are no sources any more
	limit   func(agentID string) ratelimit.Decision
}

func (g *network) passes(a netip.Addr) bool {
	b := a.As4()
	return (int64(b[2])*256+int64(b[3]))/2 < g.passing.Load()
}

func (g *network) ProbeExit(_ context.Context, a netip.Addr) (netip.Addr, error) {
	g.probes.Add(1)
	return a, nil
}

// ProbeThrough sees an address for each user name of a seller. A hundredth of them is in passing.
func (g *network) ProbeThrough(ctx context.Context, e procurement.Endpoint) (netip.Addr, error) {
	g.through.Add(1)
	if g.hook != nil {
		if err := g.hook(ctx); err != nil {
			return netip.Addr{}, err
		}
	}
	if g.seen {
		return lineExit(e.Host), nil
	}
	return addressOf(e), nil
}

// addressOf returns the address behind a user name of a seller.
func addressOf(e procurement.Endpoint) netip.Addr {
	h := fnv.New32a()
	h.Write([]byte(e.User))
	n := h.Sum32() % 100
	return netip.AddrFrom4([4]byte{10, 9, byte(n * 2 >> 8), byte(n * 2)})
}

func (g *network) Facts(_ context.Context, a netip.Addr) exit.Known {
	if g.passes(a) {
		return exit.Known{Network: exit.Residential, Listed: []string{}}
	}
	return exit.Known{Network: exit.Hosting, ASN: 64500, Listed: []string{"list"}}
}
func (*network) Any() bool { return true }
func (g *network) Can() exit.Fields {
	if g.none.Load() {
		return exit.Fields{}
	}
	return exit.Fields{Network: true, ASN: true, Listed: true}
}

// gate gives use cases a gate of their own, as a replica has one.
func (g *network) gate(w *apptest.World, u apptest.UseCases) apptest.UseCases {
	gate := exitgate.New(g, g, w.Clock)
	gate.Limit = g.limit
	u.Driver.Gate, u.Workers.Gate = gate, gate
	return u
}

func passing(n int64) *network {
	g := new(network)
	g.passing.Store(n)
	return g
}

var clean = exit.Rule{MaxRisk: new(10)}

// buyWith buys a session with a rule.
func buyWith(t *testing.T, u apptest.UseCases, agent, product string, rule exit.Rule) (sessions.View, error) {
	t.Helper()
	d, err := u.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(product), Require: rule})
	return d.View, err
}

func named(from, to int) (names []string) {
	for i := from; i <= to; i++ {
		names = append(names, fmt.Sprintf("w%d", i))
	}
	return names
}

// 1,000 workers with a rule, made and moved by two replicas, have the 30 exits alone that pass of 200, and all of them.
func TestWorkersOfARuleHaveTheExitsThatPass(t *testing.T) {
	t.Parallel()
	for _, open := range []func(testing.TB) *apptest.World{apptest.New, apptest.OpenPostgres} {
		w := open(t)
		g := passing(30)
		one := g.gate(w, w.UseCases)
		w.Reconnect(w.Catalog) // another replica
		two := g.gate(w, w.UseCases)
		agent := w.Register()
		s, err := buyWith(t, one, agent, apptest.Local, exit.Rule{})
		apptest.OK(t, err)
		_, _, err = one.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(1, 500), Require: &clean})
		apptest.OK(t, err)
		// The rule is the session's from then on.
		_, _, err = two.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(501, 900)})
		apptest.OK(t, err)
		apptest.Concurrently(100, func(i int) { // by their first use, at the gateways
			u := []apptest.UseCases{one, two}[i%2]
			_, err := u.Workers.Worker(context.Background(), s.ID, worker.Parameters{Name: fmt.Sprintf("w%d", 901+i)})
			if err != nil {
				t.Error(err)
			}
		})
		for i := range 20 {
			_, _, err = two.Workers.Rotate(t.Context(), workers.Rotate{AgentID: agent, SessionID: s.ID, Name: fmt.Sprintf("w%d", 1+i)})
			apptest.OK(t, err)
			d, err := one.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID})
			apptest.OK(t, err)
			if e := d.View.Exits[0].IP; !g.passes(e) {
				t.Errorf("the session rotated to %v", e)
			}
		}
		used := map[string]int{}
		for _, a := range w.Column(`SELECT exit_ip FROM workers`) {
			used[a]++
			if !g.passes(netip.MustParseAddr(a)) {
				t.Fatalf("a worker has the exit %s", a)
			}
		}
		if len(used) != 30 || len(w.Column(`SELECT name FROM workers`)) != 1000 {
			t.Errorf("%d exits are used", len(used))
		}
		if n := g.probes.Load(); n != 400 {
			t.Errorf("%d probes by two replicas for 200 exits", n)
		}
		r, err := two.Workers.Worker(t.Context(), s.ID, worker.Parameters{})
		apptest.OK(t, err)
		apptest.Equal(t, "exits of a name that rotates", len(r.Exits), 30)
	}
}

// When no exit passes, nothing is made, changed or charged, the old exit stays, and the refusal has no credential.
func TestNothingIsMadeWhenNoExitPasses(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	g := passing(0)
	u := g.gate(w, w.UseCases)
	agent := w.Register()
	before := w.Balance(agent)
	for _, product := range []string{apptest.Local, apptest.Static} {
		_, err := buyWith(t, u, agent, product, clean)
		apptest.ErrorIs(t, err, exit.ErrNotMet)
		var e *domain.Error
		if errors.As(err, &e); fmt.Sprint(e.Details["tried"]) != "200" || fmt.Sprint(e.Details["best"]) !=
			"map[agreed:<nil> asn:64500 country:<nil> fails:max_risk network_type:hosting risk:60]" {
			t.Errorf("%s: details %v", product, e.Details)
		}
	}
	apptest.Equal(t, "balance", w.Balance(agent), before)
	apptest.Equal(t, "sessions", len(w.Column(`SELECT id FROM sessions`)), 0)

	g.passing.Store(1)
	w.Clock.Advance(time.Hour) // what was measured is old
	s, err := buyWith(t, u, agent, apptest.Local, clean)
	apptest.OK(t, err)
	apptest.Equal(t, "exit", s.Exits[0].IP.String(), "10.0.0.0")
	_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	none := exit.Rule{Networks: []exit.Network{exit.Mobile}}
	_, _, err = u.Workers.Create(t.Context(), workers.Create{AgentID: agent, SessionID: s.ID, Names: named(1, 3), Require: &none})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	apptest.Equal(t, "workers", len(w.Column(`SELECT name FROM workers`)), 0)
	now := w.Read(agent, s.ID)
	if now.Exits[0] != s.Exits[0] || now.Rotation.Count != 0 || len(now.Require.Networks) != 0 || *now.Require.MaxRisk != 10 {
		t.Errorf("a refused call changed the session: %+v", now.Session)
	}
	_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID, Require: new(exit.Rule{})})
	apptest.OK(t, err)
	if now := w.Read(agent, s.ID); !now.Require.Empty() || now.Rotation.Count != 1 {
		t.Errorf("a rule that was ended: %+v", now.Require)
	}
}

// A timed rotation keeps to the rule on a replica that has measured nothing, and keeps the exit when none passes.
func TestTimedRotationsKeepToTheRule(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	g := passing(2)
	u := g.gate(w, w.UseCases)
	agent := w.Register()
	s := w.BuyTimed(agent, apptest.Local, time.Minute)
	_, err := u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID, Require: &clean})
	apptest.OK(t, err)
	w.Reconnect(w.Catalog)
	u = g.gate(w, w.UseCases)
	last := w.Read(agent, s.ID).Exits[0]
	for range 3 {
		w.Clock.Advance(time.Minute)
		r, err := u.Traffic.RotateDue(t.Context(), s.ID)
		apptest.OK(t, err)
		if r.Exits[0] == last || !g.passes(r.Exits[0].IP) {
			t.Errorf("rotated from %v to %v", last, r.Exits[0])
		}
		last = r.Exits[0]
	}
	g.passing.Store(0)
	w.Clock.Advance(2 * time.Hour)
	r, err := u.Traffic.RotateDue(t.Context(), s.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "exit when none passes", r.Exits[0], last)
	if !r.NextAt.After(w.Clock.Now()) {
		t.Errorf("the next rotation is due at %v", r.NextAt)
	}
}

// A seller's exits are chosen by the seller: a rule that cannot be kept is refused, and what nothing measures too.
func TestRulesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	u := passing(200).gate(w, w.UseCases)
	agent := w.Register()
	_, err := buyWith(t, u, agent, "dyn_sync", clean)
	apptest.Equal(t, "field", apptest.InvalidFields(err), "require")
	_, err = buyWith(t, u, agent, apptest.Local, exit.Rule{Agreed: true})
	apptest.Equal(t, "field", apptest.InvalidFields(err), "require.agreed")
	f := apptest.Form(apptest.Local)
	f.ProvisioningMode = session.Existing
	_, err = u.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, Require: clean})
	apptest.Equal(t, "field", apptest.InvalidFields(err), "require")
	s, err := buyWith(t, u, agent, "dyn_sync", exit.Rule{})
	apptest.OK(t, err)
	_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID, Require: &clean})
	if got := apptest.InvalidFields(err); got != "require" {
		t.Errorf("a rotation of a seller's session with a rule: %q", got)
	}
	if now := w.Read(agent, s.ID); !strings.HasPrefix(now.ID, session.IDPrefix) || !now.Require.Empty() || now.Rotation.Count != 0 {
		t.Errorf("a refused rotation changed the session: %+v", now.Session)
	}
}
