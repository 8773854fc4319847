package workers_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentproxy/adapters/upstream/kind"
	"agentproxy/adapters/upstream/list"
	"agentproxy/app/sessions"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// laterStore is the store of a world that is opened later.
type laterStore struct{ ports.Store }

// lists has an operator's list, sold as addresses and as traffic. The exit of the line N is 10.0.0.N.
func lists(t *testing.T, lines int) *apptest.World {
	var text strings.Builder
	for i := range lines {
		fmt.Fprintf(&text, "198.51.100.%d:8080 DE\n", i)
	}
	file := filepath.Join(t.TempDir(), "list.txt")
	apptest.OK(t, os.WriteFile(file, []byte(text.String()), 0o600))
	store := &laterStore{}
	var w *apptest.World
	var o apptest.Options
	for _, as := range []session.Type{session.Static, session.Dynamic} {
		p, err := list.New(list.Config{File: file, Pool: list.Pool{SoldAs: string(as)},
			Common: kind.Common{Name: "own-" + string(as), Env: kind.Env{Store: store}},
			Probe: func(_ context.Context, l list.Line) (list.Probe, error) {
				return list.Probe{Exit: lineExit(l.Host)}, nil
			}})
		apptest.OK(t, err)
		o.Providers = append(o.Providers, p)
		o.Products = append(o.Products, apptest.SharedProduct(string(as)[:3]+"_own", as, procurement.Source{Provider: "own-" + string(as)}))
	}
	w = apptest.Open(t, o)
	store.Store = w.Store
	return w
}

func lineExit(host string) netip.Addr {
	b := netip.MustParseAddr(host).As4()
	return netip.AddrFrom4([4]byte{10, 0, 0, b[3]})
}

// Static sessions of a list with a rule have the addresses that pass and no other, and when these are sold the others
// are refused: nothing is charged.
func TestAListSellsTheLinesThatPass(t *testing.T) {
	t.Parallel()
	w := lists(t, 80)
	g := passing(20) // of each half, so 40 of the 80
	g.seen = true
	one := g.gate(w, w.UseCases)
	w.Reconnect(w.Catalog)
	two := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(1000)
	before := w.Balance(agent)
	var mu sync.Mutex
	var sold []sessions.View
	apptest.Concurrently(64, func(i int) {
		s, err := buyWith(t, []apptest.UseCases{one, two}[i%2], agent, "sta_own", clean)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			sold = append(sold, s)
		} else if !errors.Is(err, exit.ErrNotMet) {
			t.Error(err)
		}
	})
	used := map[netip.Addr]bool{}
	for _, s := range sold {
		used[s.Exits[0].IP] = true
		if !g.passes(s.Exits[0].IP) {
			t.Errorf("%s has %v", s.ID, s.Exits[0].IP)
		}
	}
	if len(sold) != 40 || len(used) != 40 {
		t.Errorf("%d sessions with %d addresses", len(sold), len(used))
	}
	paid := before - w.Balance(agent)
	apptest.Equal(t, "paid", paid, 40*sold[0].Cost.Charged)
	rows := len(w.Column(`SELECT id FROM sessions`))
	_, err := buyWith(t, one, agent, "sta_own", clean) // nothing is made where none is left
	apptest.ErrorIs(t, err, exit.ErrNotMet)
	apptest.Equal(t, "sessions", len(w.Column(`SELECT id FROM sessions`)), rows)
	s, err := buyWith(t, one, agent, "sta_own", exit.Rule{})
	apptest.OK(t, err)
	apptest.Equal(t, "a session without a rule has one of the others", g.passes(s.Exits[0].IP), false)
}

// The traffic of a list with a rule passes through the lines that pass: at first, and after each rotation.
func TestTrafficOfAListHasLinesThatPass(t *testing.T) {
	t.Parallel()
	w := lists(t, 100)
	g := passing(2) // 10.0.0.0 to 10.0.0.3
	g.seen = true
	u := g.gate(w, w.UseCases)
	agent := w.RegisterFunded(1000)
	s, err := buyWith(t, u, agent, "dyn_own", clean)
	apptest.OK(t, err)
	seen := map[netip.Addr]bool{}
	for range 8 {
		r, err := u.Traffic.Route(t.Context(), s.ID)
		apptest.OK(t, err)
		a := lineExit(r.Upstreams[0].Host)
		if seen[a] = true; !g.passes(a) {
			t.Fatalf("it leaves by %v", a)
		}
		_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID})
		apptest.OK(t, err)
	}
	apptest.Equal(t, "lines", len(seen), 4)
	apptest.Equal(t, "probes", g.through.Load(), 8)
	g.passing.Store(0)
	w.Clock.Advance(24 * 60 * 60 * 1e9)
	_, err = u.Sessions.Rotate(t.Context(), sessions.Rotate{AgentID: agent, SessionID: s.ID})
	apptest.ErrorIs(t, err, exit.ErrNotMet)
}
