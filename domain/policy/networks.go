package policy

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"agentproxy/domain/egress"
)

// networks is a set of networks. A lookup costs one step for each length that occurs.
type networks struct {
	set    map[netip.Prefix]struct{}
	v4, v6 []int // the lengths that occur
}

func (n *networks) empty() bool { return len(n.set) == 0 }

// add adds a network without bits beyond its length.
func (n *networks) add(p netip.Prefix) {
	if n.set == nil {
		n.set = map[netip.Prefix]struct{}{}
	}
	n.set[p] = struct{}{}
	lengths := &n.v6
	if p.Addr().Is4() {
		lengths = &n.v4
	}
	if !slices.Contains(*lengths, p.Bits()) {
		*lengths = append(*lengths, p.Bits())
	}
}

// networkOf returns a network that has an address.
func (n *networks) networkOf(addr netip.Addr) (netip.Prefix, bool) {
	lengths := n.v6
	if addr.Is4() {
		lengths = n.v4
	}
	for _, bits := range lengths {
		p, err := addr.Prefix(bits)
		if err != nil {
			continue
		}
		if _, ok := n.set[p]; ok {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// parseNetwork reads a network in CIDR form. It refuses bits beyond the length, which
// would silently deny or allow more than what is written.
func parseNetwork(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		const form = "is not a network in CIDR form, such as 192.0.2.0/24"
		if host, _, _ := strings.Cut(text, "/"); strings.Trim(host, "0123456789.") != "" && !strings.Contains(host, ":") {
			return p, fmt.Errorf("%s %s; a host is written without a path: %s", quote(text), form, quote(host))
		}
		return p, fmt.Errorf("%s %s", quote(text), form)
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(egress.Unmap(p.Addr()), p.Bits()-96)
	}
	if p != p.Masked() {
		return p, fmt.Errorf("%s has bits beyond its length; write %s for the whole network", quote(text), p.Masked())
	}
	return p, nil
}

// networkText writes a network as a rule: a single address without its length.
func networkText(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}
