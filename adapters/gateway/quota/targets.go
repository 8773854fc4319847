package quota

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"agentproxy/domain/egress"
	"agentproxy/domain/ratelimit"
)

// maxTargets bounds the memory of Targets to about ten megabytes. Beyond it the target that was
// used least lately is forgotten, of a few that are looked at.
const (
	maxTargets     = 1 << 17
	evictionSample = 8
)

// The parts of a limit to one target that an agent has at all names of one address together, and
// at all addresses of one network. Names of one address are as good as one for an attack, so on
// trial they share the limit itself. Shops, sites and content networks have thousands of names at
// an address, and their addresses side by side: a paying agent that is at its 2,000 distinct
// targets a minute, all of them at one address, makes a connection to each (4 x 600) and is not
// refused. A network is counted in coarser parts, because neighbours of an attacked host are
// mostly others' and each address has its own limit: on trial 240 a minute instead of 256 x 60.
const (
	addressPart, trialAddressPart = 4, 1
	networkPart, trialNetworkPart = 8, 4
)

// Target is what counts as one target, as Targets.Of has it.
type Target uint64

// Targets counts the new connections of each agent to each target. An entry is kept for a
// minute after its last use at most.
type Targets struct {
	seed maphash.Seed
	max  int
	mu   sync.Mutex
	used map[uint64]ratelimit.State // by agent and target
}

// NewTargets returns an empty counter.
func NewTargets() *Targets {
	return &Targets{seed: maphash.MakeSeed(), max: maxTargets, used: map[uint64]ratelimit.State{}}
}

// Of returns what counts as one target: the registrable domain of a name by the public suffix
// list, an IPv4 address, or the /64 of an IPv6 address.
func (ts *Targets) Of(host string) Target {
	name, addr := target(host)
	if addr.IsValid() {
		return ts.at(addr)
	}
	return Target(maphash.String(ts.seed, name))
}

// at returns the Target that a network is.
func (ts *Targets) at(p netip.Prefix) Target {
	b := p.Addr().As16()
	return Target(maphash.Bytes(ts.seed, append(b[:], byte(p.Bits()))))
}

// Take counts a new connection of an agent to a target. If the agent made perMinute of them in
// the last minute it returns how long to wait, else 0.
func (ts *Targets) Take(agent string, t Target, perMinute int, now time.Time) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	key := ts.key(agent, t)
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return ts.takeLocked(key, perMinute, now)
}

// TakeAddress counts a new connection of an agent to an address by itself and by its network, an
// IPv4 /24 or an IPv6 /64, in parts of perMinute. named is set for the address of a name; one that
// is the target itself was counted by Take.
func (ts *Targets) TakeAddress(agent string, addr netip.Addr, named, trial bool, perMinute int,
	now time.Time) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	addr = addr.Unmap().WithZone("")
	byAddress, byNetwork, bits := addressPart, networkPart, 24
	if trial {
		byAddress, byNetwork = trialAddressPart, trialNetworkPart
	}
	if addr.Is6() {
		bits = 64
	}
	address := ts.key(agent, ts.at(netip.PrefixFrom(addr, addr.BitLen())))
	network := ts.key(agent, ts.at(netip.PrefixFrom(addr, bits).Masked()))
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if named {
		if wait := ts.takeLocked(address, perMinute*byAddress, now); wait > 0 {
			return wait
		}
	}
	if !named && bits == 64 {
		return 0 // it was counted as this network
	}
	return ts.takeLocked(network, perMinute*byNetwork, now)
}

// key returns what identifies an agent's use of a target.
func (ts *Targets) key(agent string, t Target) uint64 {
	var h maphash.Hash
	var b [8]byte
	h.SetSeed(ts.seed)
	binary.NativeEndian.PutUint64(b[:], uint64(t))
	_, _ = h.Write(b[:])
	_, _ = h.WriteString(agent)
	return h.Sum64()
}

// takeLocked is Take under the lock.
func (ts *Targets) takeLocked(key uint64, perMinute int, now time.Time) time.Duration {
	before, known := ts.used[key]
	if !known && len(ts.used) >= ts.max {
		ts.forgetOne()
	}
	after, d := ratelimit.Limit{PerMinute: perMinute}.Take(before, now, 1)
	ts.used[key] = after
	return d.RetryAfter
}

// forgetOne removes one entry: of some, the one that is free again first.
func (ts *Targets) forgetOne() {
	var least uint64
	var at time.Time
	n := 0
	for key, s := range ts.used {
		if n == 0 || s.TAT.Before(at) {
			least, at = key, s.TAT
		}
		if n++; n == evictionSample {
			break
		}
	}
	delete(ts.used, least)
}

// Trim forgets the targets whose whole limit is available again.
func (ts *Targets) Trim(now time.Time) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	for key, s := range ts.used {
		if !s.TAT.After(now) {
			delete(ts.used, key)
		}
	}
}

// Len returns the number of targets that are counted.
func (ts *Targets) Len() int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	return len(ts.used)
}

// target returns the registrable domain of a name by the public suffix list, or the network that
// counts as one target if the host is an address.
func target(host string) (name string, network netip.Prefix) {
	if addr, err := egress.ParseHost(host); err == nil && addr.IsValid() {
		if addr = addr.Unmap().WithZone(""); addr.Is6() {
			return "", netip.PrefixFrom(addr, 64).Masked()
		}
		return "", netip.PrefixFrom(addr, 32)
	}
	name = strings.ToLower(strings.TrimSuffix(host, "."))
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return domain, network
	}
	return name, network // a public suffix itself, or a name without a dot
}
