package route

import (
	"net/netip"
	"sync"
	"time"

	"agentproxy/adapters/gateway/monotime"
)

// maxAddresses bounds the table of addresses. Beyond it an arbitrary entry is
// replaced: a client with more addresses evades the limit in any case.
const maxAddresses = 1 << 16

// AuthFailures counts wrong credentials by client address and minute. It does not
// affect clients with a right credential, because it is consulted only after a
// wrong one.
type AuthFailures struct {
	limit int
	mu    sync.Mutex
	since time.Duration
	count map[netip.Addr]int
}

// NewAuthFailures returns a counter that allows limit failures a minute and
// address; 0 is unlimited.
func NewAuthFailures(limit int) *AuthFailures {
	return &AuthFailures{limit: limit, count: map[netip.Addr]int{}}
}

// Record counts a failure and reports whether the address is past its limit. The
// addresses of an IPv6 /64 count as one, because a customer has all of them.
func (f *AuthFailures) Record(addr netip.Addr) bool {
	if f.limit <= 0 {
		return false
	}
	if addr = addr.Unmap(); addr.Is6() {
		p, _ := addr.WithZone("").Prefix(64)
		addr = p.Addr()
	}
	now := monotime.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now-f.since >= time.Minute {
		f.since = now
		clear(f.count)
	}
	n, known := f.count[addr]
	if !known && len(f.count) >= maxAddresses {
		for old := range f.count {
			delete(f.count, old)
			break
		}
	}
	f.count[addr] = n + 1
	return n >= f.limit
}
