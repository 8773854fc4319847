package webhook

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// crowded is the error of an address that has had its requests: how long the next one has to wait.
type crowded time.Duration

func (crowded) Error() string { return "the address has had its requests of this hour" }

// visit is one request to a stranger, which is counted by the address that it goes to: who controls a name may give
// every host another one, and all of them the address of a third party.
type visit struct {
	s  *Sender
	at time.Time

	mu      sync.Mutex
	reached []string // what was counted
}

func (v *visit) dial(ctx context.Context, _, address string) (net.Conn, error) {
	return v.s.dialAdmitted(ctx, address, v.admit)
}

// admit counts a connection to an address, unless it has had its requests.
func (v *visit) admit(addr netip.Addr) error {
	target := network(addr)
	v.s.mu.Lock()
	wait := v.s.tries.Wait(target, v.at)
	if wait == 0 {
		v.s.tries.Take(target, v.at)
	}
	v.s.mu.Unlock()
	if wait > 0 {
		return crowded(wait)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reached = append(v.reached, target)
	return nil
}

// answered takes back what was counted: the receiver accepts the events.
func (v *visit) answered() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for _, target := range v.reached {
		v.s.tries.Answered(target)
	}
}

// network returns what counts as one address: of IPv6 the 64 bits that one host has.
func network(addr netip.Addr) string {
	if addr = addr.Unmap(); addr.Is6() {
		p, _ := addr.WithZone("").Prefix(64)
		return p.String()
	}
	return addr.String()
}
