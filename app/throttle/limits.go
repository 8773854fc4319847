// Package throttle decides whether a caller may call now, by limits of this process
// or of all processes together.
package throttle

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"agentproxy/app/cache"
	"agentproxy/domain/account"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// Config is how often something may be called; 0 is unlimited.
type Config struct {
	RegistrationsPerMinute int // of one client address
	// NetworkRegistrations and AllRegistrations are those a minute of one network (account.Network), and of all
	// together: who has a whole network has many addresses.
	NetworkRegistrations, AllRegistrations int
	// WrongKeysPerMinute and WrongCodesPerMinute are the look-ups of API keys and of referral codes
	// that may fail, of one client address and on each replica.
	WrongKeysPerMinute  int
	WrongCodesPerMinute int
}

// checksPerMinute is how many checks of exits an agent may make.
const checksPerMinute = 10

// trialsPerMinute is how many calls the accounts on trial of one network may make together: more accounts are to
// be no more calls.
const trialsPerMinute = 1200

// callbacksPerMinute is how many calls for a provider an address may make. Each is a hint that may have
// orders read there, also one that is repeated with its signature.
const callbacksPerMinute = 120

// Limits decides whether a caller may call now. Its memory is bounded: a caller is
// dropped after a minute without a call, when its whole limit is free again.
type Limits struct {
	cfg           Config
	shared        ports.RateLimits
	agents        *limiter
	trials        *limiter // calls of accounts on trial by network
	checks        *limiter
	registrations *limiter
	networks      *limiter // registrations by network, and in all
	wrongKeys     *limiter
	wrongCodes    *limiter
	callbacks     *limiter
	Stored        *Stored // what agents may have stored; nil: as much as they like
}

// New returns the limits: of all processes together, or of this process
// alone if shared is nil.
func New(cfg Config, clock ports.Clock, shared ports.RateLimits, log *slog.Logger) *Limits {
	l := &Limits{cfg: cfg, shared: shared}
	var store *sharedLimits
	if shared != nil {
		store = &sharedLimits{store: shared, clock: clock, log: log}
	}
	l.agents = newLimiter(clock, store, "agent:")
	l.trials = newLimiter(clock, store, "trials:")
	l.checks = newLimiter(clock, store, "check:")
	l.registrations = newLimiter(clock, store, "registration:")
	l.networks = newLimiter(clock, store, "registrations:")
	l.wrongKeys = newLimiter(clock, nil, "")
	l.wrongCodes = newLimiter(clock, nil, "")
	l.callbacks = newLimiter(clock, nil, "")
	return l
}

// Take counts one call of an agent with a limit; 0 is unlimited.
func (l *Limits) Take(agentID string, perMinute int) ratelimit.Decision {
	return l.agents.takeTokens(agentID, ratelimit.Limit{PerMinute: perMinute})
}

// TakeMore counts what a call costs beyond the first of its agent: all of it, or nothing if it is refused.
func (l *Limits) TakeMore(agentID string, perMinute, cost int) ratelimit.Decision {
	return l.agents.takeMany(agentID, ratelimit.Limit{PerMinute: perMinute}, cost, whole)
}

// Debit counts what a call cost that is done: as much as is left, if it is less.
func (l *Limits) Debit(agentID string, perMinute, cost int) ratelimit.Decision {
	return l.agents.takeMany(agentID, ratelimit.Limit{PerMinute: perMinute}, cost, part)
}

// TakeTrials counts the cost of a call of an account on trial from a network (account.Network), which all of
// its trials share; an empty one is not known and not limited.
func (l *Limits) TakeTrials(network string, cost int) ratelimit.Decision {
	if network == "" {
		return ratelimit.Decision{Allowed: true}
	}
	return l.trials.takeMany(network, ratelimit.Limit{PerMinute: trialsPerMinute}, cost, whole)
}

// DebitTrials counts what a call of an account on trial cost that is done: as much as is left, if it is less.
func (l *Limits) DebitTrials(network string, cost int) {
	if network != "" {
		l.trials.takeMany(network, ratelimit.Limit{PerMinute: trialsPerMinute}, cost, part)
	}
}

// TakeRegistration counts one registration from a client address; of IPv6 the
// network of 64 bits counts, because one host has all of it. It counts by the network around it and in all too,
// and of refers to what was too many: an address, a network, or all.
func (l *Limits) TakeRegistration(addr netip.Addr) (d ratelimit.Decision, of string) {
	d = l.registrations.takeTokens(client(addr), ratelimit.Limit{PerMinute: l.cfg.RegistrationsPerMinute})
	if !d.Allowed {
		return d, "from this address"
	}
	network := l.networks.takeTokens(account.Network(addr), ratelimit.Limit{PerMinute: l.cfg.NetworkRegistrations})
	if !network.Allowed {
		return network, "from this network"
	}
	if all := l.networks.takeTokens("all", ratelimit.Limit{PerMinute: l.cfg.AllRegistrations}); !all.Allowed {
		return all, "at the moment"
	}
	return d, ""
}

// TakeCallback counts one call for a provider from a client address, on each replica.
func (l *Limits) TakeCallback(provider string, addr netip.Addr) ratelimit.Decision {
	return l.callbacks.takeTokens(provider+" "+client(addr), ratelimit.Limit{PerMinute: callbacksPerMinute})
}

// client returns what an address is counted as.
func client(addr netip.Addr) string {
	if addr = addr.Unmap(); addr.Is6() {
		if net, err := addr.Prefix(64); err == nil {
			addr = net.Addr()
		}
	}
	return addr.String()
}

// Failures counts what a client address tried and did not find.
type Failures struct {
	limiter *limiter // not shared
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
	if c, ok := f.limiter.callers.GetIfPresent(client(addr)); ok {
		return c.(*alone).left(f.limiter, f.limit)
	}
	return new(alone).left(f.limiter, f.limit)
}

// Record counts one that was not found.
func (f Failures) Record(addr netip.Addr) {
	f.limiter.takeTokens(client(addr), f.limit)
}

// TakeCheck counts one check of an agent.
func (l *Limits) TakeCheck(agentID string) ratelimit.Decision {
	return l.checks.takeTokens(agentID, ratelimit.Limit{PerMinute: checksPerMinute})
}

// exitsPerMinute is how many exits of sellers are probed for an agent whose calls have a rule. Each moves about 1 kB,
// which the seller charges to the operator.
const exitsPerMinute = 60

// TakeExit counts one exit of a seller that is probed for an agent.
func (l *Limits) TakeExit(agentID string) ratelimit.Decision {
	return l.checks.takeTokens("exit "+agentID, ratelimit.Limit{PerMinute: exitsPerMinute})
}

// rotationsPerMinute is how often an agent may replace its API secret. Each is an event for its webhook, which no
// budget of stored bytes may refuse: who lost the secret replaces it at once.
const rotationsPerMinute = 10

// TakeRotation counts one replacement of the API secret of an agent, unless its calls are unlimited (perMinute is 0).
func (l *Limits) TakeRotation(agentID string, perMinute int) ratelimit.Decision {
	if perMinute <= 0 {
		return ratelimit.Decision{Allowed: true}
	}
	return l.checks.takeTokens("secret "+agentID, ratelimit.Limit{PerMinute: rotationsPerMinute})
}

// passwordsPerMinute is how many proxy passwords of its sessions an agent may replace. Each is an event of the
// session's log, which no budget of stored bytes may refuse either.
const passwordsPerMinute = 60

// TakePassword counts one replacement of a proxy password, unless the agent's calls are unlimited.
func (l *Limits) TakePassword(agentID string, perMinute int) ratelimit.Decision {
	if perMinute <= 0 {
		return ratelimit.Decision{Allowed: true}
	}
	return l.checks.takeTokens("password "+agentID, ratelimit.Limit{PerMinute: passwordsPerMinute})
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
type limiter struct {
	clock   ports.Clock
	store   *sharedLimits // nil if the limits are not shared
	prefix  string        // of the names of shared states
	callers cache.Cache[string, caller]
}

// caller is what is kept of a caller: an *alone, or a *share if the limits are shared.
type caller interface {
	// takeTokens decides what costs n, at least 1 and at most the limit.
	takeTokens(l *limiter, limit ratelimit.Limit, n int, how taking) ratelimit.Decision
}

// taking is what happens where less is left than is asked for.
type taking int

const (
	whole taking = iota // nothing is taken
	part                // what is left is taken
)

const (
	limitedCallers = 100_000
	callersAfter   = 2 * time.Minute // without a call, when the whole limit is free again
)

func newLimiter(clock ports.Clock, store *sharedLimits, prefix string) *limiter {
	return &limiter{clock: clock, store: store, prefix: prefix,
		callers: cache.New(cache.Bounds[string, caller]{Most: limitedCallers, Accessed: callersAfter})}
}

func (l *limiter) takeTokens(key string, limit ratelimit.Limit) ratelimit.Decision {
	return l.takeMany(key, limit, 1, whole)
}

// takeMany takes n, or the whole limit if n is more.
func (l *limiter) takeMany(key string, limit ratelimit.Limit, n int, how taking) ratelimit.Decision {
	if limit.PerMinute <= 0 {
		return ratelimit.Decision{Allowed: true}
	}
	c, ok := l.callers.GetIfPresent(key)
	if !ok {
		c, _ = l.callers.SetIfAbsent(key, l.newCaller(key))
	}
	return c.takeTokens(l, limit, max(min(n, limit.PerMinute), 1), how)
}

func (l *limiter) newCaller(key string) caller {
	if l.store != nil {
		return newShare(l.prefix + key)
	}
	return new(alone)
}

// alone is a caller whose limit holds in this process.
type alone struct {
	mu    sync.Mutex
	state ratelimit.State
}

func (a *alone) takeTokens(l *limiter, limit ratelimit.Limit, n int, how taking) (d ratelimit.Decision) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := l.clock.Now()
	if how == part {
		_, left := limit.Take(a.state, now, 0)
		n = max(min(n, left.Remaining), 1)
	}
	a.state, d = limit.Take(a.state, now, n)
	return d
}

// left returns the decision on a call that is not counted.
func (a *alone) left(l *limiter, limit ratelimit.Limit) ratelimit.Decision {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, d := limit.Take(a.state, l.clock.Now(), 1)
	return d
}
