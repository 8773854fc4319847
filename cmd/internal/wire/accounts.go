package wire

import (
	"net"
	"net/netip"
	"net/url"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/accounts"
	"agentproxy/app/ratelimit"
)

func accountsConfig(s configfile.Settings, exits *embedded.Provider) accounts.Config {
	return accounts.Config{TrialBalance: s.TrialBalance, TrialDays: s.TrialDays, TrialDailyTotal: s.TrialDailyTotal,
		TrialPerNetwork: s.TrialPerNetwork, Registration: s.Registration, KeepOriginDays: s.ClientAddressDays,
		Exits: accounts.Exits{Sold: exits.Has, Other: otherExits(s)}, Dev: s.Dev, PerMinute: s.RateLimit}
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

func limitConfig(s configfile.Settings) ratelimit.Config {
	c := ratelimit.Config{RegistrationsPerMinute: s.RegisterLimit}
	if !s.Dev {
		c.WrongKeysPerMinute, c.WrongCodesPerMinute = wrongKeysPerMinute, wrongCodesPerMinute
	}
	return c
}
