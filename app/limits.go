package app

import (
	"net/netip"
	"time"

	"github.com/maypok86/otter/v2"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// LimitConfig is how often something may be asked for. 0 is unlimited.
type LimitConfig struct {
	RegistrationsPerMinute int // of one client address
}

// checksPerMinute is how many checks through their exits an agent may ask for.
const checksPerMinute = 10

// Limits says whether a caller may call now. The state is in memory, of this
// process, and bounded: who has not called for a minute is forgotten, which
// changes nothing, because by then the whole limit is free again.
type Limits struct {
	cfg           LimitConfig
	clock         ports.Clock
	agents        *otter.Cache[string, ratelimit.State]
	checks        *otter.Cache[string, ratelimit.State]
	registrations *otter.Cache[netip.Addr, ratelimit.State]
}

// NewLimits makes the limits.
func NewLimits(cfg LimitConfig, clock ports.Clock) *Limits {
	return &Limits{cfg: cfg, clock: clock, agents: states[string](), checks: states[string](),
		registrations: states[netip.Addr]()}
}

const limitedCallers = 100_000

func states[K comparable]() *otter.Cache[K, ratelimit.State] {
	return otter.Must(&otter.Options[K, ratelimit.State]{MaximumSize: limitedCallers,
		ExpiryCalculator: otter.ExpiryWriting[K, ratelimit.State](2 * time.Minute)})
}

// Take counts one call of an agent.
func (l *Limits) Take(c Caller) ratelimit.Decision {
	return take(l.agents, c.AgentID, ratelimit.Limit{PerMinute: c.PerMinute}, l.clock.Now())
}

// TakeRegistration counts one registration from a client address; of IPv6 the
// network of 64 bits counts, because one host has all of it.
func (l *Limits) TakeRegistration(addr netip.Addr) ratelimit.Decision {
	if addr = addr.Unmap(); addr.Is6() {
		if net, err := addr.Prefix(64); err == nil {
			addr = net.Addr()
		}
	}
	return take(l.registrations, addr, ratelimit.Limit{PerMinute: l.cfg.RegistrationsPerMinute}, l.clock.Now())
}

// TakeCheck counts one check of an agent.
func (l *Limits) TakeCheck(agentID string) ratelimit.Decision {
	return take(l.checks, agentID, ratelimit.Limit{PerMinute: checksPerMinute}, l.clock.Now())
}

func take[K comparable](c *otter.Cache[K, ratelimit.State], key K, limit ratelimit.Limit, now time.Time) (d ratelimit.Decision) {
	c.Compute(key, func(old ratelimit.State, _ bool) (ratelimit.State, otter.ComputeOp) {
		old, d = limit.Take(old, now, 1)
		return old, otter.WriteOp
	})
	return d
}
