package wire

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/redis"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

func accountsConfig(s configfile.Settings, exits *embedded.Provider) accounts.Config {
	return accounts.Config{TrialBalance: s.TrialBalance, TrialDays: s.TrialDays, TrialDailyTotal: s.TrialDailyTotal,
		TrialPerNetwork: s.TrialPerNetwork, FundedFrom: s.FundedFrom, Registration: s.Registration,
		KeepOriginDays: s.ClientAddressDays,
		Exits:          accounts.Exits{Sold: exits.Has, Other: otherExits(s)}, Dev: s.Dev, PerMinute: s.RateLimit,
		Bounds: accounts.Bounds{Sessions: s.SessionLimit, Connections: s.AgentConnections,
			TrialConnections: s.TrialConnections, ConnectionRate: s.ConnectionRate,
			TrialConnectionRate: s.TrialConnectionRate, TrialPorts: s.TrialPorts}}
}

// otherExits returns a function that reports whether traffic of agents may leave from an address besides
// those that the embedded provider sells: where that sells loopback addresses, the host's own are used for
// all other targets; behind NAT it is the public one; an upstream proxy of the operator may leave from the
// address that it listens on. A loopback address is none: local clients and reverse proxies have those.
func otherExits(s configfile.Settings) func(netip.Addr) bool {
	local, known := localAddresses(), map[netip.Addr]bool{}
	add := func(host string) {
		if addr, err := netip.ParseAddr(host); err == nil {
			known[addr.Unmap()] = true
		}
	}
	add(s.PublicHost)
	if u, err := url.Parse(s.PublicURL); err == nil {
		add(u.Hostname())
	}
	for _, p := range s.Catalog.Providers {
		for _, text := range p.Options {
			if host, _, err := net.SplitHostPort(text); err == nil {
				text = host
			}
			add(text)
		}
	}
	return func(a netip.Addr) bool {
		return !a.IsLoopback() && (known[a] || local != nil && local(a))
	}
}

// Look-ups that may fail in a minute, of one client address and on each replica, outside development mode.
const (
	wrongKeysPerMinute  = 300
	wrongCodesPerMinute = 10
)

// Registrations in a minute of one network, and of all, where those of an address are limited.
const (
	networkRegistrations = 60
	allRegistrations     = 600
)

// sharedLimits returns where replicas share their rate limits: on the configured server, else in
// PostgreSQL, else nowhere.
func sharedLimits(lc fx.Lifecycle, s configfile.Settings, st *storage.Store, in counterIn) (ports.RateLimits, error) {
	if s.RateLimitURL == "" {
		return countLimits(st.RateLimits(), in.Registry)
	}
	limits, err := redis.NewRateLimits(string(s.RateLimitURL))
	if err != nil {
		return nil, fmt.Errorf("AGENTPROXY_RATELIMIT_URL: %w", err)
	}
	lc.Append(fx.StopHook(limits.Close))
	return countLimits(limits, in.Registry)
}

// newLimits returns the limits with the budgets of what agents have stored. The tier of an agent is read from the
// store itself, not from the one that counts.
func newLimits(
	s configfile.Settings, st *storage.Store, clock ports.Clock, shared ports.RateLimits, log *slog.Logger,
) *throttle.Limits {
	l := throttle.New(limitConfig(s), clock, shared, log)
	c := throttle.StoredConfig{Funded: ratelimit.Daily(s.StoredPerDay),
		Trial: ratelimit.Daily(s.TrialStoredPerDay), FundedFrom: s.FundedFrom}
	if !s.Dev {
		c.Scarce = st.Scarce
	}
	l.Stored = throttle.NewStored(c, st, clock, l, log)
	return l
}

func limitConfig(s configfile.Settings) throttle.Config {
	c := throttle.Config{RegistrationsPerMinute: s.RegisterLimit}
	if !s.Dev {
		c.WrongKeysPerMinute, c.WrongCodesPerMinute = wrongKeysPerMinute, wrongCodesPerMinute
	}
	if !s.Dev && s.RegisterLimit > 0 {
		c.NetworkRegistrations, c.AllRegistrations = networkRegistrations, allRegistrations
	}
	return c
}
