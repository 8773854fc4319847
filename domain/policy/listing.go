package policy

import (
	"maps"
	"net/netip"
	"slices"
)

// Listing is the rules of a layer in their canonical form.
type Listing struct {
	Allow, Deny []string
	Ports       []string // the only ones
	More        int      // rules that are left out
}

// List lists rules, of each list a number at most: there may be a million hosts.
func (r *Rules) List(most int) (l Listing) {
	if r == nil {
		return l
	}
	bound := func(all []string, n int) []string {
		l.More += n - min(n, most)
		return all[:min(len(all), most)]
	}
	l.Allow = bound(r.allow.texts(most))
	l.Deny = bound(r.deny.texts(most))
	l.Ports = bound(r.ports.texts(), len(r.ports))
	return l
}

// texts returns the first rules of a list, and how many it has.
func (l *list) texts(most int) (all []string, n int) {
	all = l.ports.texts()
	for _, p := range slices.SortedFunc(maps.Keys(l.networks.set), netip.Prefix.Compare) {
		all = append(all, networkText(p))
	}
	all = l.exact.texts(all, "", most)
	all = l.below.texts(all, ".", most)
	return all, len(l.ports) + len(l.networks.set) + l.exact.n + l.below.n
}

// texts writes ranges as rules.
func (ps ports) texts() (all []string) {
	for _, r := range ps {
		all = append(all, r.String())
	}
	return all
}

// texts appends names, in the order in which they were added, until there are most of all.
func (h *hosts) texts(all []string, prefix string, most int) []string {
	for place := uint32(1); int(place) <= len(h.text) && len(all) < most; {
		name := h.at(place)
		all = append(all, prefix+string(name))
		place += uint32(len(name)) + 1
	}
	return all
}
