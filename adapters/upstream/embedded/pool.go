package embedded

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"agentproxy/domain/session"
)

// Config lists the addresses to sell.
type Config struct {
	// Exits are addresses of this host. If there are none, nothing is sold but where Everywhere is set:
	// there the loopback addresses from 127.0.0.2 to 127.0.3.254 are. New addresses are appended, because the
	// position of an address decides which half of the pool it belongs to.
	Exits []Exit
	// Everywhere sells each address as being in every country, as in development mode; the
	// places that exits declare do not count.
	Everywhere bool
	// Usable reports whether an address can be bound. If nil, binding is tried.
	Usable func(netip.Addr) bool
}

// The range of loopback addresses that is sold if none are configured.
var (
	firstLoopback = netip.AddrFrom4([4]byte{127, 0, 0, 2})
	lastLoopback  = netip.AddrFrom4([4]byte{127, 0, 3, 254})
)

// Exit is an address and the place that the operator declares for it. Without a country the address
// is sold only where an agent asks for none.
type Exit struct {
	Addr  netip.Addr
	Place session.Location
}

// pool has the usable addresses. No address is in both halves, because a static one
// belongs to one session.
type pool struct {
	dynamic []Exit
	static  []Exit
}

// probe sorts the usable addresses into the halves of a pool. Every second one of
// the list is for static sessions, counted before unusable ones are left out, so an
// address never changes halves when another one is appended or fails. Where loopback
// has one address only (macOS), that one is the pool.
func (c Config) probe(log *slog.Logger) (pool, error) {
	exits, usable := unique(c.Exits), c.Usable
	loopback := len(exits) == 0
	if loopback && !c.Everywhere {
		return pool{}, nil // a target outside would see the host's one address in place of each
	}
	if loopback {
		for ip := firstLoopback; ip.Compare(lastLoopback) <= 0; ip = ip.Next() {
			exits = append(exits, Exit{Addr: ip})
		}
	}
	if usable == nil {
		usable = bindable
	}
	if loopback && usable(firstLoopback) && usable(lastLoopback) {
		usable = func(netip.Addr) bool { return true } // as on Linux, where the interface has the whole network
	}
	var p pool
	var failed []netip.Addr
	for i, exit := range exits {
		switch {
		case !usable(exit.Addr):
			failed = append(failed, exit.Addr)
		case i%2 == 0:
			p.dynamic = append(p.dynamic, exit)
		default:
			p.static = append(p.static, exit)
		}
	}
	if len(failed) > 0 {
		log.Warn("some exit addresses cannot be bound and are left out",
			"left_out", len(failed), "usable", len(exits)-len(failed), "first", failed[0].String())
	}
	if len(failed) < len(exits) {
		return p, nil
	}
	if !loopback {
		return pool{}, fmt.Errorf("none of the %d addresses in AGENTPROXY_EXITS can be bound on this host, the first is %s",
			len(exits), failed[0])
	}
	return pool{dynamic: []Exit{{Addr: netip.AddrFrom4([4]byte{127, 0, 0, 1})}}}, nil
}

// unique returns the exits with their addresses unmapped and without repetitions, which would sell
// one twice.
func unique(list []Exit) []Exit {
	seen := make(map[netip.Addr]bool, len(list))
	var out []Exit
	for _, exit := range list {
		if exit.Addr = exit.Addr.Unmap(); !seen[exit.Addr] {
			seen[exit.Addr] = true
			out = append(out, exit)
		}
	}
	return out
}

// bindable reports whether an address can be bound. It opens a UDP socket, which
// sends nothing and leaves no port in TIME_WAIT: 1,000 addresses take about 20 ms.
func bindable(ip netip.Addr) bool {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
