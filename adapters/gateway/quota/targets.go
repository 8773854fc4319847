package quota

import (
	"hash/maphash"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/publicsuffix"

	"agentproxy/domain/egress"
	"agentproxy/domain/ratelimit"
)

// maxTargets bounds the memory of Targets to a few megabytes. Beyond it the target that was
// used least lately is forgotten, of a few that are looked at.
const (
	maxTargets     = 1 << 16
	evictionSample = 8
)

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

// Take counts a new connection of an agent to a host. If the agent made perMinute of them in
// the last minute it returns how long to wait, else 0.
func (ts *Targets) Take(agent, host string, perMinute int, now time.Time) time.Duration {
	if perMinute <= 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(ts.seed)
	_, _ = h.WriteString(agent)
	_ = h.WriteByte(0)
	_, _ = h.WriteString(Registrable(host))
	key := h.Sum64()
	ts.mu.Lock()
	defer ts.mu.Unlock()
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

// Registrable returns what counts as one target: the registrable domain of a name by the
// public suffix list, an IPv4 address, or the /64 of an IPv6 address.
func Registrable(host string) string {
	if addr, err := egress.ParseHost(host); err == nil && addr.IsValid() {
		if addr = addr.Unmap().WithZone(""); addr.Is6() {
			return netip.PrefixFrom(addr, 64).Masked().String()
		}
		return addr.String()
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if domain, err := publicsuffix.EffectiveTLDPlusOne(name); err == nil {
		return domain
	}
	return name // a public suffix itself, or a name without a dot
}
