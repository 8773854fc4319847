package upstream

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
)

// Config says which addresses the embedded provider sells.
type Config struct {
	// Exits are addresses of this host. None: the loopback addresses from
	// 127.0.0.2 to 127.0.3.254. Append new ones: the place of an address
	// decides which half it belongs to.
	Exits []netip.Addr
	// Usable reports whether an address can be bound; nil: it is tried.
	Usable func(netip.Addr) bool
}

// The loopback addresses that are sold on a laptop.
var (
	firstLoopback = netip.AddrFrom4([4]byte{127, 0, 0, 2})
	lastLoopback  = netip.AddrFrom4([4]byte{127, 0, 3, 254})
)

// pool is the addresses that can be used. No address is in both halves, because
// a static one is a session's alone.
type pool struct {
	dynamic []netip.Addr
	static  []netip.Addr
}

// probe tries the addresses. Every second one of the list is for static
// sessions, counted before the unusable are left out: so an address never
// changes sides when another one is added or fails. Where loopback has one
// address only (macOS), that is the pool.
func (c Config) probe(log *slog.Logger) (pool, error) {
	exits, usable := unique(c.Exits), c.Usable
	loopback := len(exits) == 0
	if loopback {
		for ip := firstLoopback; ip.Compare(lastLoopback) <= 0; ip = ip.Next() {
			exits = append(exits, ip)
		}
	}
	if usable == nil {
		usable = bindable
	}
	var p pool
	var failed []netip.Addr
	for i, ip := range exits {
		switch {
		case !usable(ip):
			failed = append(failed, ip)
		case i%2 == 0:
			p.dynamic = append(p.dynamic, ip)
		default:
			p.static = append(p.static, ip)
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
		return pool{}, fmt.Errorf("none of the %d addresses in AGENTPROXY_EXITS can be bound on this host, the first is %s", len(exits), failed[0])
	}
	return pool{dynamic: []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}}, nil
}

// unique unmaps the addresses and drops repeats, which would sell one twice.
func unique(list []netip.Addr) []netip.Addr {
	seen := make(map[netip.Addr]bool, len(list))
	var out []netip.Addr
	for _, ip := range list {
		if ip = ip.Unmap(); !seen[ip] {
			seen[ip] = true
			out = append(out, ip)
		}
	}
	return out
}

// bindable opens a UDP socket on the address and closes it: nothing is sent, no
// port lingers, and a thousand take some 20 ms.
func bindable(ip netip.Addr) bool {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ip, 0)))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
