package gateway

import (
	"net/netip"
	"sync"
	"time"

	"agentproxy/adapters/gateway/monotime"
	"agentproxy/domain/egress"
	"agentproxy/domain/policy"
)

const (
	// deniedFor is how long an address stays denied after a denied name resolved to it.
	deniedFor = 10 * time.Minute
	// lookupInterval is how long a denied name that was looked up is not looked up again.
	lookupInterval = time.Minute
	// maxDenied bounds the addresses, and the names, that are stored.
	maxDenied = 1 << 16
	// maxLookups bounds the denied names that are looked up at once. Beyond it a name is
	// refused without.
	maxLookups = 64
)

// scope is whose rules denied a name: the operator's, those of a product or those of a
// session.
type scope struct {
	layer policy.Layer
	id    string // of the product or the session
}

// deniedNames caches the addresses of denied names, so that a client cannot connect to
// their addresses instead. An address counts as long as its name is denied.
type deniedNames struct {
	mu      sync.Mutex
	addrs   map[deniedAddr]deniedName
	lookups map[lookedUp]time.Duration // when, by monotime
	now     int                        // lookups under way
}

type deniedAddr struct {
	scope scope
	addr  netip.Addr
}

type deniedName struct {
	name  string
	until time.Duration // by monotime
}

type lookedUp struct {
	scope scope
	name  string
}

func newDeniedNames() *deniedNames {
	return &deniedNames{addrs: map[deniedAddr]deniedName{}, lookups: map[lookedUp]time.Duration{}}
}

// beginLookup reports whether a denied name is to be looked up. If so the caller calls endLookup.
func (d *deniedNames) beginLookup(in scope, name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := lookedUp{in, name}
	if at, ok := d.lookups[key]; ok && monotime.Now()-at < lookupInterval || d.now >= maxLookups {
		return false
	}
	d.now++
	makeRoom(d.lookups)
	d.lookups[key] = monotime.Now()
	return true
}

// endLookup undoes beginLookup.
func (d *deniedNames) endLookup() {
	d.mu.Lock()
	d.now--
	d.mu.Unlock()
}

// add stores an address of a denied name.
func (d *deniedNames) add(in scope, name string, addr netip.Addr) {
	d.mu.Lock()
	defer d.mu.Unlock()
	makeRoom(d.addrs)
	d.addrs[deniedAddr{in, egress.Unmap(addr)}] = deniedName{name, monotime.Now() + deniedFor}
}

// makeRoom removes an arbitrary entry of a full map.
func makeRoom[K comparable, V any](m map[K]V) {
	if len(m) < maxDenied {
		return
	}
	for key := range m {
		delete(m, key)
		return
	}
}

// denialOf returns the denial of an address that a denied name resolved to.
func (d *deniedNames) denialOf(addr netip.Addr, layers policy.Layers, product, session string) policy.Denial {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.addrs) == 0 {
		return policy.Denial{}
	}
	addr = egress.Unmap(addr)
	for _, in := range [...]scope{{layer: policy.Operator}, {policy.Product, product}, {policy.Session, session}} {
		found, ok := d.addrs[deniedAddr{in, addr}]
		if !ok || monotime.Now() >= found.until {
			continue
		}
		if rule := layers.Of(in.layer).DeniedBy(found.name); rule != "" {
			return policy.Denial{Layer: in.layer, Rule: rule, Part: policy.Address,
				Reported: in.layer == policy.Session && layers.Reports}
		}
	}
	return policy.Denial{}
}

// trim forgets what does not count any more. now is by monotime.
func (d *deniedNames) trim(now time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key, found := range d.addrs {
		if now >= found.until {
			delete(d.addrs, key)
		}
	}
	for key, at := range d.lookups {
		if now-at >= lookupInterval {
			delete(d.lookups, key)
		}
	}
}
