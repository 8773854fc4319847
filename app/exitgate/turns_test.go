package exitgate_test

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/app/exitgate"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// seller answers probes for some hosts alone; for the others it hangs.
type seller struct {
	mu     sync.Mutex
	probes map[string]int
	most   map[string]int // at once
	now    map[string]int
}

func (s *seller) ProbeExit(context.Context, netip.Addr) (netip.Addr, error) {
	return netip.Addr{}, errors.New("no exit of this host")
}

func (s *seller) ProbeThrough(ctx context.Context, e procurement.Endpoint) (netip.Addr, error) {
	s.mu.Lock()
	s.probes[e.Host]++
	s.now[e.Host]++
	s.most[e.Host] = max(s.most[e.Host], s.now[e.Host])
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.now[e.Host]--
	}()
	if e.Host == "hanging" {
		<-ctx.Done()
		return netip.Addr{}, ctx.Err()
	}
	return netip.MustParseAddr("192.0.2." + e.User), nil
}

// even addresses are residential.
func (s *seller) Facts(_ context.Context, a netip.Addr) exit.Known {
	if a.As4()[3]%2 == 0 {
		return exit.Known{Network: exit.Residential, Listed: []string{}}
	}
	return exit.Known{Network: exit.Hosting, Listed: []string{}}
}
func (*seller) Any() bool        { return true }
func (*seller) Can() exit.Fields { return exit.Fields{Network: true, Listed: true} }

func newGate() (*exitgate.Gate, *seller) {
	s := &seller{probes: map[string]int{}, most: map[string]int{}, now: map[string]int{}}
	return exitgate.New(s, s, fake.NewClock()), s
}

var residential = exit.Rule{Networks: []exit.Network{exit.Residential}}

func turnsOf(host string, from int) exitgate.Turns {
	return exitgate.Turns{AgentID: "agt_1", Seller: host, Rule: residential, From: from,
		Endpoint: func(turn int) (procurement.Endpoint, error) {
			return procurement.Endpoint{Host: host, User: strconv.Itoa(turn)}, nil
		}}
}

// A seller that hangs is given up after 20 seconds, takes 16 places at most, and holds up no other seller.
func TestASellerThatHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGate()
		began := time.Now()
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := map[error]int{}
		for range 64 {
			wg.Go(func() {
				_, err := g.Choose(t.Context(), turnsOf("hanging", 0))
				mu.Lock()
				defer mu.Unlock()
				for _, want := range []error{exit.ErrNotMet, ports.ErrTimeout} {
					if errors.Is(err, want) {
						refused[want]++
					}
				}
			})
		}
		synctest.Wait()
		if turn, err := g.Choose(t.Context(), turnsOf("good", 3)); err != nil || turn != 4 || time.Since(began) != 0 {
			t.Errorf("the other seller: turn %d after %v, %v", turn, time.Since(began), err)
		}
		wg.Wait()
		if n := refused[exit.ErrNotMet]; n < 16 || n+refused[ports.ErrTimeout] != 64 || time.Since(began) != 20*time.Second {
			t.Errorf("refused %v after %v", refused, time.Since(began))
		}
		if s.most["hanging"] != 16 || s.probes["good"] != 2 {
			t.Errorf("probes %v, at once %v", s.probes, s.most)
		}
	})
}

// Calls at the same time for one exit have one choice, which outlives the call that began it.
func TestCallsForOneExitShareAChoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, s := newGate()
		shared := turnsOf("hanging", 0)
		shared.Key = "sess_1/w1"
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 50)
		for i := range errs {
			wg.Go(func() {
				ctx := t.Context()
				if i == 0 {
					ctx = first
				}
				_, errs[i] = g.Choose(ctx, shared)
			})
		}
		synctest.Wait()
		leave()
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) || s.probes["hanging"] != 1 {
			t.Errorf("%d probes; who left got %v", s.probes["hanging"], errs[0])
		}
		for _, err := range errs[1:] {
			if !errors.Is(err, exit.ErrNotMet) {
				t.Fatal(err)
			}
		}
	})
}

// Where a provider has its addresses, those alone are probed that may pass, and all are looked at.
func TestKnownAddressesAreNotTried(t *testing.T) {
	t.Parallel()
	g, s := newGate()
	list := turnsOf("good", 5)
	for _, n := range []string{"1", "3", "5", "8", "7"} {
		list.Seen = append(list.Seen, netip.MustParseAddr("192.0.2."+n))
	}
	list.Endpoint = func(turn int) (procurement.Endpoint, error) {
		return procurement.Endpoint{Host: "good", User: strconv.Itoa(int(list.Seen[turn%5].As4()[3]))}, nil
	}
	if turn, err := g.Choose(t.Context(), list); err != nil || turn != 8 || s.probes["good"] != 1 {
		t.Errorf("turn %d after %v: %v", turn, s.probes, err)
	}
	list.Avoid = list.Seen[3]
	if _, err := g.Choose(t.Context(), list); !errors.Is(err, exit.ErrNotMet) || s.probes["good"] != 1 {
		t.Errorf("without the only one that passes: %v after %v", err, s.probes)
	}
	list.Seen = []netip.Addr{}
	if _, err := g.Choose(t.Context(), list); err == nil || errors.Is(err, exit.ErrNotMet) {
		t.Errorf("without any: %v", err)
	}
}
