package doctor

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"agentproxy/adapters/configfile"
)

// Clients is what the exit log has of the clients of the gateway lately.
type Clients struct {
	Connections int
	Agents      map[string]bool
	Addresses   map[netip.Addr]bool
}

// mostSeen bounds how many agents and addresses Clients keeps: two decide.
const mostSeen = 1000

// Add counts a connection.
func (c *Clients) Add(agent string, addr netip.Addr) {
	if c.Agents == nil {
		c.Agents, c.Addresses = map[string]bool{}, map[netip.Addr]bool{}
	}
	c.Connections++
	if len(c.Agents) < mostSeen {
		c.Agents[agent] = true
	}
	if len(c.Addresses) < mostSeen {
		c.Addresses[addr.Unmap()] = true
	}
}

// fewConnections is below which the addresses of clients show nothing.
const fewConnections = 20

// Balancers checks whether the gateway sees its clients, or a balancer in front of it.
func Balancers(s configfile.Settings, c Clients) (f Findings) {
	const check, do = "gateway_clients", "Let the balancer of the gateway send the PROXY protocol, and set " +
		"AGENTPROXY_PROXY_PROTOCOL=true; or let it keep addresses (externalTrafficPolicy: Local in Kubernetes)."
	const why = "allowed_ips, limits of an address and the exit log then go by the balancer's address: who used an " +
		"exit is answered with it."
	own := slices.ContainsFunc(sorted(c.Addresses), func(a netip.Addr) bool { return !trusted(s, a) })
	switch {
	case c.Connections >= fewConnections && len(c.Addresses) == 1 && len(c.Agents) > 1:
		f.add(Error, check, fmt.Sprintf("The last %d connections of %d agents all came from %s.", c.Connections,
			len(c.Agents), sorted(c.Addresses)[0]), why, do)
	case s.ProxyProtocol:
		f.ok(check, "Balancers name the clients of the gateway by the PROXY protocol.")
	case len(s.TrustedProxies) > 0 && !own:
		f.add(Warning, check, "Proxies are trusted, AGENTPROXY_PROXY_PROTOCOL is off, and no client's own address was "+
			"seen lately.", "If a balancer of TCP is in front of the gateway, every client has its address. "+why,
			do+" Without one nothing is to be done.")
	default:
		f.ok(check, "Clients of the gateway are seen by their own addresses.")
	}
	return f
}

func sorted(set map[netip.Addr]bool) []netip.Addr {
	list := make([]netip.Addr, 0, len(set))
	for a := range set {
		list = append(list, a)
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

func trusted(s configfile.Settings, a netip.Addr) bool {
	return slices.ContainsFunc(s.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(a) })
}

// routers checks that no router of this host is trusted to name clients.
func (f *Findings) routers(h Host, s configfile.Settings) {
	for _, a := range h.Gateways {
		if trusted(s, a) {
			f.add(Error, "trusted_proxies", "The trusted proxies contain "+a.String()+", a router of this host.",
				"Clients appear with its address where it translates theirs, as Docker's bridge does, and choose a client "+
					"address of their own.",
				"List the addresses of your reverse proxies alone in AGENTPROXY_TRUSTED_PROXIES.")
		}
	}
}

// Gateways returns the routers in the tables of Linux for IPv4 and IPv6 (/proc/net/route, /proc/net/ipv6_route). It
// passes over what it does not understand.
func Gateways(route4, route6 string) (list []netip.Addr) {
	add := func(text string, v4 bool) {
		b, err := hex.DecodeString(text)
		if v4 && len(b) == 4 { // of the processor's order
			b = binary.BigEndian.AppendUint32(nil, binary.NativeEndian.Uint32(b))
		}
		a, ok := netip.AddrFromSlice(b)
		if err == nil && ok && a.Is4() == v4 && !a.IsUnspecified() && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	const viaGateway = 0x2
	for line := range strings.Lines(route4) {
		if w := strings.Fields(line); len(w) > 3 {
			if flags, err := strconv.ParseUint(w[3], 16, 32); err == nil && flags&viaGateway != 0 {
				add(w[2], true)
			}
		}
	}
	for line := range strings.Lines(route6) {
		if w := strings.Fields(line); len(w) > 8 {
			if flags, err := strconv.ParseUint(w[8], 16, 32); err == nil && flags&viaGateway != 0 {
				add(w[4], false)
			}
		}
	}
	return list
}
