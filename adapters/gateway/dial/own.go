package dial

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
)

// Public is where clients reach this service: by names, and by the addresses that they
// resolve to, which may be those of a router or a load balancer in front of it. Nothing of
// it may be a target, or a client could nest its connections, and use the service from the
// service's own addresses. A nil Public is empty.
type Public struct {
	targets []hostport.Target
	mu      sync.Mutex
	seen    map[netip.AddrPort]time.Duration // when an address was resolved last, by monotime
}

// seenFor is how long an address counts after a name resolved to it last: names with many
// addresses answer with some of them.
const seenFor = time.Hour

// NewPublic returns a Public of names and addresses with their ports.
func NewPublic(targets []hostport.Target) *Public {
	p := &Public{seen: map[netip.AddrPort]time.Duration{}}
	for _, t := range targets {
		if addr, err := netip.ParseAddr(t.Host); err == nil {
			p.seen[netip.AddrPortFrom(addr.Unmap(), t.Port)] = 1<<63 - 1
			continue
		}
		p.targets = append(p.targets, hostport.Target{Host: canonical(t.Host), Port: t.Port})
	}
	return p
}

// canonical returns a name in lower case without the final dot.
func canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// named reports whether a target is one of the names.
func (p *Public) named(t hostport.Target) bool {
	if p == nil {
		return false
	}
	for _, own := range p.targets {
		if own.Port == t.Port && own.Host == canonical(t.Host) {
			return true
		}
	}
	return false
}

// at reports whether one of the names has an address.
func (p *Public) at(addr netip.AddrPort) bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	until, ok := p.seen[netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())]
	return ok && monotime.Now() < until
}

// Refresh resolves the names again. It keeps the last addresses of a name that cannot be resolved.
func (p *Public) Refresh(ctx context.Context, r Resolver, timeout time.Duration) {
	for _, t := range p.targets {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		answers, err := r.LookupNetIP(ctx, "ip", t.Host)
		cancel()
		if err != nil {
			continue
		}
		p.mu.Lock()
		for _, a := range answers {
			p.seen[netip.AddrPortFrom(a.Unmap(), t.Port)] = monotime.Now() + seenFor
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for addr, until := range p.seen {
		if monotime.Now() >= until {
			delete(p.seen, addr)
		}
	}
}

// itself is the refusal of a target that is this service.
var itself = refusal.TargetForbidden.Because("the target is this service itself")
