// Package ratelimit decides whether a caller may call now, by limits of this process
// or of all processes together.
package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// Config is how often something may be called; 0 is unlimited.
type Config struct {
	RegistrationsPerMinute int // of one client address
	// WrongKeysPerMinute and WrongCodesPerMinute are the look-ups of API keys and of referral codes
	// that may fail, of one client address and on each replica.
	WrongKeysPerMinute  int
	WrongCodesPerMinute int
}

// checksPerMinute is how many checks of exits an agent may make.
const checksPerMinute = 10

// callbacksPerMinute is how many calls for a provider an address may make. Each is a hint that may have
// orders read there, also one that is repeated with its signature.
const callbacksPerMinute = 120

// Limits decides whether a caller may call now. Its memory is bounded: a caller is
// dropped after a minute without a call, when its whole limit is free again.
type Limits struct {
	cfg           Config
	shared        ports.RateLimits
	agents        *limiter[string]
	checks        *limiter[string]
	registrations *limiter[netip.Addr]
	wrongKeys     *limiter[netip.Addr]
	wrongCodes    *limiter[netip.Addr]
	callbacks     *limiter[string]
}

// New returns the limits: of all processes together, or of this process
// alone if shared is nil.
func New(cfg Config, clock ports.Clock, shared ports.RateLimits, log *slog.Logger) *Limits {
	l := &Limits{cfg: cfg, shared: shared}
	var store *sharedLimits
	if shared != nil {
		store = &sharedLimits{store: shared, clock: clock, log: log}
	}
	l.agents = newLimiter(clock, store, func(id string) string { return "agent:" + id })
	l.checks = newLimiter(clock, store, func(id string) string { return "check:" + id })
	l.registrations = newLimiter(clock, store, func(a netip.Addr) string { return "registration:" + a.String() })
	l.wrongKeys = newLimiter[netip.Addr](clock, nil, nil)
	l.wrongCodes = newLimiter[netip.Addr](clock, nil, nil)
	l.callbacks = newLimiter[string](clock, nil, nil)
	return l
}

// Take counts one call of an agent with a limit; 0 is unlimited.
func (l *Limits) Take(agentID string, perMinute int) ratelimit.Decision {
	return l.agents.take(agentID, ratelimit.Limit{PerMinute: perMinute})
}

// TakeRegistration counts one registration from a client address; of IPv6 the
// network of 64 bits counts, because one host has all of it.
func (l *Limits) TakeRegistration(addr netip.Addr) ratelimit.Decision {
	return l.registrations.take(client(addr), ratelimit.Limit{PerMinute: l.cfg.RegistrationsPerMinute})
}

// TakeCallback counts one call for a provider from a client address, on each replica.
func (l *Limits) TakeCallback(provider string, addr netip.Addr) ratelimit.Decision {
	return l.callbacks.take(provider+" "+client(addr).String(), ratelimit.Limit{PerMinute: callbacksPerMinute})
}

// client returns what an address is counted as.
func client(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); addr.Is6() {
		if net, err := addr.Prefix(64); err == nil {
			addr = net.Addr()
		}
	}
	return addr
}

// Failures counts what a client address tried and did not find.
type Failures struct {
	limiter *limiter[netip.Addr]
	limit   ratelimit.Limit
}

// WrongKeys returns the count of API keys that are not known.
func (l *Limits) WrongKeys() Failures {
	return Failures{l.wrongKeys, ratelimit.Limit{PerMinute: l.cfg.WrongKeysPerMinute}}
}

// WrongCodes returns the count of referral codes that are not known.
func (l *Limits) WrongCodes() Failures {
	return Failures{l.wrongCodes, ratelimit.Limit{PerMinute: l.cfg.WrongCodesPerMinute}}
}

// Left reports whether an address may try once more, without counting it.
func (f Failures) Left(addr netip.Addr) ratelimit.Decision {
	if f.limit.PerMinute <= 0 {
		return ratelimit.Decision{Allowed: true}
	}
	state, _ := f.limiter.alone.GetIfPresent(client(addr))
	_, d := f.limit.Take(state, f.limiter.clock.Now(), 1)
	return d
}

// Record counts one that was not found.
func (f Failures) Record(addr netip.Addr) {
	if f.limit.PerMinute > 0 {
		f.limiter.take(client(addr), f.limit)
	}
}

// TakeCheck counts one check of an agent.
func (l *Limits) TakeCheck(agentID string) ratelimit.Decision {
	return l.checks.take(agentID, ratelimit.Limit{PerMinute: checksPerMinute})
}

// Purge removes states that shared limits no longer need.
func (l *Limits) Purge(ctx context.Context) error {
	for l.shared != nil {
		n, err := l.shared.Purge(ctx, purgeLimit)
		if err != nil {
			return fmt.Errorf("purge rate limits: %w", err)
		}
		if n < purgeLimit {
			break
		}
	}
	return nil
}

// purgeLimit is how many states one call of Purge removes.
const purgeLimit = 500

// limiter limits callers of one kind.
type limiter[K comparable] struct {
	clock  ports.Clock
	alone  cache.Cache[K, ratelimit.State]
	store  *sharedLimits // nil if the limits are not shared
	shares cache.Cache[K, *share]
	name   func(K) string // of a shared state
}

const limitedCallers = 100_000

func newLimiter[K comparable](clock ports.Clock, store *sharedLimits, name func(K) string) *limiter[K] {
	l := &limiter[K]{clock: clock, store: store, name: name}
	if store == nil {
		l.alone = cache.New(cache.Bounds[K, ratelimit.State]{Most: limitedCallers, Written: 2 * time.Minute})
	} else {
		l.shares = cache.New(cache.Bounds[K, *share]{Most: limitedCallers, Accessed: 2 * time.Minute})
	}
	return l
}

func (l *limiter[K]) take(key K, limit ratelimit.Limit) (d ratelimit.Decision) {
	if l.store != nil {
		return l.takeShared(key, limit)
	}
	now := l.clock.Now()
	l.alone.Update(key, func(s ratelimit.State) ratelimit.State {
		s, d = limit.Take(s, now, 1)
		return s
	})
	return d
}

func (l *limiter[K]) takeShared(key K, limit ratelimit.Limit) ratelimit.Decision {
	if limit.PerMinute <= 0 {
		return ratelimit.Decision{Allowed: true}
	}
	s, ok := l.shares.GetIfPresent(key)
	if !ok {
		s, _ = l.shares.SetIfAbsent(key, newShare(l.name(key)))
	}
	return s.take(l.store, limit)
}
