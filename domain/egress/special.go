package egress

import "net/netip"

// specialPurpose lists what is not public although it can look global: the IANA
// special-purpose registries (RFC 6890), multicast, the reserved rest, and the
// host address of one cloud. netip's own predicates miss half of it.
var specialPurpose = prefixes(
	"0.0.0.0/8",        // this network
	"10.0.0.0/8",       // private
	"100.64.0.0/10",    // shared, carrier-grade NAT; one cloud's metadata
	"127.0.0.0/8",      // loopback
	"168.63.129.16/32", // Azure's host agent
	"169.254.0.0/16",   // link-local; most clouds' metadata
	"172.16.0.0/12",    // private
	"192.0.0.0/24",     // IETF protocols
	"192.0.2.0/24",     // documentation
	"192.88.99.0/24",   // 6to4 relays
	"192.168.0.0/16",   // private
	"198.18.0.0/15",    // benchmarks
	"198.51.100.0/24",  // documentation
	"203.0.113.0/24",   // documentation
	"224.0.0.0/4",      // multicast
	"240.0.0.0/4",      // reserved, broadcast

	"::/96",           // unspecified, loopback, IPv4-compatible
	"::ffff:0:0:0/96", // IPv4-translated (RFC 2765)
	"64:ff9b::/96",    // NAT64; checked by what it carries before this list
	"64:ff9b:1::/48",  // local NAT64
	"100::/64",        // discard
	"2001::/23",       // IETF protocols, Teredo and ORCHID among them
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
	"5f00::/16",       // segment routing
	"fc00::/7",        // unique local
	"fe80::/10",       // link-local
	"fec0::/10",       // site-local
	"ff00::/8",        // multicast
)

// tunnels carry an IPv4 address to somewhere we cannot check, so no allowed
// network opens them.
var tunnels = prefixes(
	"64:ff9b:1::/48", // local NAT64
	"2001::/32",      // Teredo
	"2002::/16",      // 6to4
)

// nat64 is the well-known prefix of translators (RFC 6052): the last four bytes
// are the IPv4 address that a connection ends at.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func never(addr netip.Addr) bool { return contains(tunnels, addr) }

// inner returns the IPv4 address in the last four bytes of an IPv6 address.
func inner(addr netip.Addr) netip.Addr {
	b := addr.As16()
	return netip.AddrFrom4([4]byte(b[12:]))
}

func prefixes(networks ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(networks))
	for i, network := range networks {
		list[i] = netip.MustParsePrefix(network)
	}
	return list
}

// Unmap returns the address that a connection to addr ends at: the IPv4 address in a mapped
// address or in one of the well-known prefix of translators, else addr itself.
func Unmap(addr netip.Addr) netip.Addr {
	if addr = addr.Unmap(); nat64.Contains(addr) {
		return inner(addr)
	}
	return addr
}
