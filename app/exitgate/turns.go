package exitgate

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// sellerAtOnce bounds the probes through one seller: one that hangs holds up no other.
const sellerAtOnce = 16

// Turns are the exits of a seller that follow one another, by their turns: each turn has another token.
type Turns struct {
	AgentID  string // whose call it is
	Seller   string // the name of the provider
	Rule     exit.Rule
	Declared string // the country that the exits are sold as; may be empty
	From     int    // the first turn that may be given
	// Endpoint returns the proxy of a turn.
	Endpoint func(turn int) (procurement.Endpoint, error)
	// Seen are the addresses of all exits, by turn, where the provider has them; after the last the first follows.
	// Then those alone are probed whose address meets the rule, and all may be looked at.
	Seen []netip.Addr
	// Avoid is an address among them that is not to be given.
	Avoid netip.Addr
	// Key, if it is not empty, names what the exit is for: of calls at the same time one probes for all.
	Key string
}

// flight is a choice that is under way.
type flight struct {
	done chan struct{}
	turn int
	err  error
}

// sellers is what the gate keeps of choices.
type sellers struct {
	mu      sync.Mutex
	slots   map[string]chan struct{} // by seller
	flights map[string]*flight       // by key
}

// Choose probes exits of a seller one after the other, Rule.Tries of them at most and for 20 seconds, and returns the
// turn of the first that meets the rule. It returns exit.ErrNotMet if none does, and account.ErrRateLimited if too
// many were probed for the agent.
func (g *Gate) Choose(ctx context.Context, t Turns) (int, error) {
	if g == nil {
		return 0, exit.ErrNotMet
	}
	if t.Key == "" {
		return g.choose(ctx, t)
	}
	g.sellers.mu.Lock()
	f, found := g.sellers.flights[t.Key]
	if !found {
		f = &flight{done: make(chan struct{})}
		g.sellers.flights[t.Key] = f
		go func() {
			f.turn, f.err = g.choose(context.WithoutCancel(ctx), t)
			g.sellers.mu.Lock()
			defer g.sellers.mu.Unlock()
			delete(g.sellers.flights, t.Key)
			close(f.done)
		}()
	}
	g.sellers.mu.Unlock()
	select {
	case <-f.done:
		return f.turn, f.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// choose is Choose for one call.
func (g *Gate) choose(ctx context.Context, t Turns) (int, error) {
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	filter := g.Filter(t.Rule, t.Declared)
	left := t.Rule.Tries()
	for turn := t.From; left > 0 && bounded.Err() == nil; turn++ {
		if n := len(t.Seen); n > 0 {
			if turn-t.From == n {
				break
			}
			if a := t.Seen[turn%n]; a == t.Avoid || !filter.meets(a, g.measuredOf(bounded, a)) {
				continue
			}
		} else if t.Seen != nil {
			break
		}
		if err := g.mayProbe(t.AgentID); err != nil {
			return 0, err
		}
		left--
		e, err := t.Endpoint(turn)
		if err != nil {
			return 0, err
		}
		m, err := g.through(bounded, t.Seller, e)
		switch {
		case err != nil && ctx.Err() != nil:
			return 0, ctx.Err()
		case errors.Is(err, errBusy):
			return 0, ports.ErrTimeout
		}
		if filter.meets(turn, m) {
			return turn, nil
		}
	}
	return 0, filter.Refusal(catalog.ErrOutOfStock)
}

// mayProbe counts a probe through a seller for an agent.
func (g *Gate) mayProbe(agentID string) error {
	if g.Limit == nil {
		return nil
	}
	if d := g.Limit(agentID); !d.Allowed {
		return account.ErrRateLimited.Msgf("too many exits were measured for require; wait for the seconds in " +
			"Retry-After").After(d.RetryAfter)
	}
	return nil
}

// errBusy reports that the seller is asked for too many exits already.
var errBusy = errors.New("too many probes of this seller are under way")

// through measures what is behind a proxy of a seller. It has no address if the echo was not reached.
func (g *Gate) through(ctx context.Context, seller string, e procurement.Endpoint) (m exit.Measured, err error) {
	g.sellers.mu.Lock()
	slots := g.sellers.slots[seller]
	if slots == nil {
		slots = make(chan struct{}, sellerAtOnce)
		g.sellers.slots[seller] = slots
	}
	g.sellers.mu.Unlock()
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return m, errBusy
	}
	seen, err := g.prober.ProbeThrough(ctx, e)
	if err != nil {
		return m, err
	}
	return exit.Measured{IP: seen, At: g.clock.Now(), Known: g.facts.Facts(ctx, seen)}, nil
}

// measuredOf returns the facts of an address that a provider has as that of an exit, at most ten minutes old.
func (g *Gate) measuredOf(ctx context.Context, a netip.Addr) exit.Measured {
	g.mu.RLock()
	e, is := g.known[a]
	g.mu.RUnlock()
	now := g.clock.Now()
	if is && e.IP == a && now.Sub(e.asked) < factsFor {
		return e.Measured
	}
	e = entry{Measured: exit.Measured{IP: a, At: now, Known: g.facts.Facts(ctx, a)}, asked: now}
	if ctx.Err() != nil {
		return exit.Measured{}
	}
	g.keep(a, e)
	return e.Measured
}

// LearnSeen asks the sources about exits whose addresses their provider has, for 20 seconds at most.
func (g *Gate) LearnSeen(ctx context.Context, rule exit.Rule, of []netip.Addr) error {
	if g == nil || rule.Empty() {
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, a := range g.stale(of) {
		if bounded.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			g.measuredOf(bounded, a)
		})
	}
	wg.Wait()
	return ctx.Err()
}

// keep remembers what is known of an exit.
func (g *Gate) keep(a netip.Addr, e entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= most {
		clear(g.known)
	}
	g.known[a] = e
}

// Wait returns how long a call that needs an exit of a seller may take.
const Wait = within + 5*time.Second

// Limit decides whether one more exit of a seller may be probed for an agent.
type Limit func(agentID string) ratelimit.Decision
