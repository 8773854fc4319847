// Package exitgate passes over exits that do not meet the rule of a session: those of this host, which it measures
// beforehand, and those of sellers, which it probes when they are asked for.
package exitgate

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// The bounds of what is measured before a call.
const (
	addressFor = 24 * time.Hour   // the address that the echo reports
	factsFor   = 10 * time.Minute // what the sources had; they may be other files now
	oldAfter   = time.Hour        // from then on an exit counts as one that was not measured
	atOnce     = 16
	within     = 20 * time.Second
	most       = 10_000 // exits that are remembered
)

// Gate measures exits before they are given to a session with a rule. Exits that it has not measured meet no rule. A
// nil Gate has measured none.
type Gate struct {
	// Limit bounds what is probed through sellers, by agent; nil: nothing does.
	Limit   Limit
	sellers sellers
	prober  ports.ExitProber
	facts   ports.ExitFacts
	clock   ports.Clock

	learning chan struct{} // one call measures at a time; the others find what it measured

	mu    sync.RWMutex
	known map[netip.Addr]entry
}

// entry is what is known of an exit.
type entry struct {
	exit.Measured           // without an address if the echo was not reached
	asked         time.Time // when the sources were asked
}

// New returns a gate that has measured nothing.
func New(prober ports.ExitProber, facts ports.ExitFacts, clock ports.Clock) *Gate {
	return &Gate{prober: prober, facts: facts, clock: clock, learning: make(chan struct{}, 1),
		known:   map[netip.Addr]entry{},
		sellers: sellers{slots: map[string]chan struct{}{}, flights: map[string]*flight{}}}
}

// Can returns the facts that the sources can have.
func (g *Gate) Can() exit.Fields {
	if g == nil {
		return exit.Fields{}
	}
	return g.facts.Can()
}

// Learn measures those of the exits that a session may get of which nothing recent is known, for 20 seconds at most.
// Without a rule it does nothing.
func (g *Gate) Learn(
	ctx context.Context, rule exit.Rule, pool ports.ExitPool, of session.Type, l session.Location,
) error {
	if g == nil || rule.Empty() {
		return nil
	}
	candidates := pool.Exits(l)
	if of == session.Static {
		candidates = pool.Sold(l)
	}
	if len(g.stale(candidates)) == 0 {
		return nil
	}
	select {
	case g.learning <- struct{}{}:
		defer func() { <-g.learning }()
	case <-ctx.Done():
		return ctx.Err()
	}
	bounded, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for _, a := range g.stale(candidates) { // another call may have measured them meanwhile
		if bounded.Err() != nil {
			break
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			g.measure(bounded, a)
		})
	}
	wg.Wait()
	return ctx.Err()
}

// stale lists the exits of which nothing recent is known.
func (g *Gate) stale(of []netip.Addr) (list []netip.Addr) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	now := g.clock.Now()
	for _, a := range of {
		if e, is := g.known[a]; !is || now.Sub(e.asked) >= factsFor {
			list = append(list, a)
		}
	}
	return list
}

// measure asks what is not known of an exit any more. One whose echo is not reached meets no rule for a while.
func (g *Gate) measure(ctx context.Context, a netip.Addr) {
	g.mu.RLock()
	e := g.known[a]
	g.mu.RUnlock()
	now := g.clock.Now()
	if !e.IP.IsValid() || now.Sub(e.At) >= addressFor {
		e = entry{}
		if seen, err := g.prober.ProbeExit(ctx, a); err == nil {
			e.IP, e.At = seen, now
		}
	}
	if ctx.Err() != nil {
		return
	}
	if e.asked = now; e.IP.IsValid() {
		e.Known = g.facts.Facts(ctx, e.IP)
	}
	g.keep(a, e)
}

// Filter holds exits to a rule in one unit of work, and remembers which were passed over. It does no IO.
type Filter struct {
	gate     *Gate
	rule     exit.Rule
	declared string
	tried    map[any]bool // by address, or by the turn of a seller's exit
	best     exit.Measured
	fails    string // the condition that the best one does not meet
}

// Filter returns the filter of a rule for exits that are sold as being in a country, which may be empty. It is nil
// for a rule that takes every exit, which every exit passes.
func (g *Gate) Filter(rule exit.Rule, declared string) *Filter {
	if rule.Empty() {
		return nil
	}
	return &Filter{gate: g, rule: rule, declared: declared, tried: map[any]bool{}}
}

// Passes reports whether an exit meets the rule.
func (c *Filter) Passes(a netip.Addr) bool {
	if c == nil {
		return true
	}
	var e entry
	if c.gate != nil {
		c.gate.mu.RLock()
		e = c.gate.known[a]
		c.gate.mu.RUnlock()
		if c.gate.clock.Now().Sub(e.asked) >= oldAfter {
			e = entry{}
		}
	}
	return c.meets(a, e.Measured)
}

// meets reports whether what was measured of an exit meets the rule. One without an address was not reached.
func (c *Filter) meets(of any, m exit.Measured) bool {
	if c == nil {
		return true
	}
	m.Declared = c.declared
	fails := "unreachable"
	if m.IP.IsValid() {
		if fails = c.rule.Fails(m); fails == "" {
			return true
		}
	}
	if !c.tried[of] {
		c.tried[of] = true
		c.consider(m, fails)
	}
	return false
}

// consider keeps the exit of the least risk. One whose risk is not known comes after those of which it is.
func (c *Filter) consider(m exit.Measured, fails string) {
	risk, known := m.Risk()
	least, before := c.best.Risk()
	if c.fails == "" || !c.best.IP.IsValid() && m.IP.IsValid() || known && (!before || risk < least) {
		c.best, c.fails = m, fails
	}
}

// Refusal returns exit.ErrNotMet if exits were passed over, and else the error.
func (c *Filter) Refusal(err error) error {
	if err == nil || c == nil || len(c.tried) == 0 {
		return err
	}
	best := map[string]any{"fails": c.fails, "country": nil, "network_type": "unknown", "asn": nil, "risk": nil,
		"agreed": nil}
	if m := c.best; m.IP.IsValid() {
		if m.Country != "" {
			best["country"] = m.Country
		}
		if m.Network != "" {
			best["network_type"] = m.Network
		}
		if m.ASN != 0 {
			best["asn"] = m.ASN
		}
		if risk, known := m.Risk(); known {
			best["risk"] = risk
		}
		if agreed, known := m.Agreed(); known {
			best["agreed"] = agreed
		}
	}
	return exit.ErrNotMet.With("tried", len(c.tried)).With("best", best)
}
