package gateway

import (
	"net/netip"
	"sync"
	"time"
)

// maxGuessers bounds the table of addresses. Beyond it an older entry makes room:
// whoever controls so many addresses is not held by this limit anyway.
const maxGuessers = 1 << 16

// guesses counts wrong credentials by client address and minute. It slows
// nobody who has a right one, because it is asked only after a wrong one.
type guesses struct {
	limit int
	mu    sync.Mutex
	since time.Duration
	count map[netip.Addr]int
}

func newGuesses(limit int) *guesses {
	return &guesses{limit: limit, count: map[netip.Addr]int{}}
}

// wrong counts one and reports whether the address is past its limit.
func (g *guesses) wrong(addr netip.Addr) bool {
	if g.limit <= 0 {
		return false
	}
	if addr = addr.Unmap(); addr.Is6() { // one customer has a /64, not an address
		p, _ := addr.WithZone("").Prefix(64)
		addr = p.Addr()
	}
	now := mono()
	g.mu.Lock()
	defer g.mu.Unlock()
	if now-g.since >= time.Minute {
		g.since = now
		clear(g.count)
	}
	n, known := g.count[addr]
	if !known && len(g.count) >= maxGuessers {
		for old := range g.count {
			delete(g.count, old)
			break
		}
	}
	g.count[addr] = n + 1
	return n >= g.limit
}
