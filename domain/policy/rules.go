package policy

import (
	"fmt"
	"net/netip"
	"strings"

	"agentproxy/domain/egress"
)

// The texts of refusals by a list in which nothing matches.
const (
	notAllowed = "allow"
	otherPort  = "ports"
)

// Rules are the compiled rules of one layer. They do not change after Builder.Rules, and
// checking allocates nothing unless it refuses. Nil Rules refuse nothing.
type Rules struct {
	allow, deny list
	ports       ports // the only ones; empty: every port
}

// list is a list of rules.
type list struct {
	exact, below hosts
	networks     networks
	ports        ports
}

// places reports whether the list has a rule about hosts or networks.
func (l *list) places() bool { return l.exact.n+l.below.n > 0 || !l.networks.empty() }

// host looks for a rule that matches a canonical name. matched is the host of the rule.
func (l *list) host(name string) (matched string, below, ok bool) {
	if name == "" {
		return "", false, false
	}
	if l.exact.has(name) {
		return name, false, true
	}
	for rest := name; l.below.n > 0; {
		if l.below.has(rest) {
			return rest, true, true
		}
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			break
		}
		rest = rest[dot+1:]
	}
	return "", false, false
}

// hasHost reports whether a rule matches a canonical name.
func (l *list) hasHost(name string) bool {
	_, _, ok := l.host(name)
	return ok
}

// Name returns the rule that refuses a port or a canonical name, or "". The name is empty
// for a target that is an address.
func (r *Rules) Name(host string, port uint16) string {
	switch {
	case r == nil:
		return ""
	case len(r.ports) > 0 && r.ports.rangeOf(port) < 0:
		return otherPort
	}
	if i := r.deny.ports.rangeOf(port); i >= 0 {
		return r.deny.ports[i].String()
	}
	if rule := r.DeniedBy(host); rule != "" {
		return rule
	}
	switch {
	case len(r.allow.ports) > 0 && r.allow.ports.rangeOf(port) < 0:
		return notAllowed
	case r.allow.places() && r.allow.networks.empty() && !r.allow.hasHost(host):
		return notAllowed
	}
	return ""
}

// closes reports whether what Name refuses it refuses for the port.
func (r *Rules) closes(host string, port uint16) bool {
	only := len(r.ports) > 0 && r.ports.rangeOf(port) < 0
	allowed := len(r.allow.ports) > 0 && r.allow.ports.rangeOf(port) < 0
	return only || r.deny.ports.rangeOf(port) >= 0 || r.DeniedBy(host) == "" && allowed
}

// Address returns the rule that refuses an address, or "". It is called for what Name did
// not refuse; host is the name that was looked up, empty if the target is an address.
func (r *Rules) Address(host string, addr netip.Addr) string {
	if r == nil || r.deny.networks.empty() && !r.allow.places() {
		return ""
	}
	addr = egress.Unmap(addr)
	if p, ok := r.deny.networks.networkOf(addr); ok {
		return networkText(p)
	}
	if !r.allow.places() || r.allow.hasHost(host) {
		return ""
	}
	if _, ok := r.allow.networks.networkOf(addr); !ok {
		return notAllowed
	}
	return ""
}

// DeniedBy returns the rule that denies a canonical name whatever the port, or "". An allow
// list denies none by itself.
func (r *Rules) DeniedBy(host string) string {
	if r == nil {
		return ""
	}
	matched, below, ok := r.deny.host(host)
	if ok && below {
		return "." + matched
	}
	return matched
}

// Builder collects the rules of a layer. The zero Builder has none.
type Builder struct {
	rules Rules
	n     int
}

// Deny adds a rule against what it matches. The error is for the author of the text.
func (b *Builder) Deny(text string) error { return b.add(&b.rules.deny, text) }

// Allow adds a rule beside which nothing is allowed: of rules about hosts and networks
// one must match, and of rules about ports one.
func (b *Builder) Allow(text string) error { return b.add(&b.rules.allow, text) }

// Port adds a port or a range to the only ones that are allowed.
func (b *Builder) Port(text string) error {
	r, ok, err := parsePorts(text)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("%s is not a port; write a number of 1 to 65535, or a range such as 8000-8010", quote(text))
	}
	b.rules.ports = append(b.rules.ports, r)
	b.n++
	return nil
}

// Rules returns the rules that were added, nil if there are none. The Builder is not used
// any more.
func (b *Builder) Rules() *Rules {
	if b.n == 0 {
		return nil
	}
	b.rules.ports.sort()
	b.rules.allow.ports.sort()
	b.rules.deny.ports.sort()
	return &b.rules
}

func (b *Builder) add(l *list, text string) error {
	r, err := parse(text)
	if err != nil {
		return err
	}
	switch {
	case r.host != "" && r.below:
		l.below.add(r.host)
	case r.host != "":
		l.exact.add(r.host)
	case r.network.IsValid():
		l.networks.add(r.network)
	default:
		l.ports = append(l.ports, r.ports)
	}
	b.n++
	return nil
}

// rule is one rule, taken apart.
type rule struct {
	host    string
	below   bool // with everything below host
	network netip.Prefix
	ports   portRange
}

// parse reads a rule.
func parse(text string) (rule, error) {
	if r, ok, err := parsePorts(text); ok || err != nil {
		return rule{ports: r}, err
	}
	if _, rest, ok := strings.Cut(text, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		return rule{}, fmt.Errorf("%s is a URL; write its host alone, such as %s", quote(text), quote(host))
	}
	if strings.Contains(text, "/") {
		p, err := parseNetwork(text)
		return rule{network: p}, err
	}
	name, below := strings.CutPrefix(text, ".")
	addr, err := egress.ParseHost(name)
	switch {
	case strings.HasPrefix(name, "*"):
		return rule{}, fmt.Errorf("%s has a wildcard; .example.com is example.com with everything below it",
			quote(text))
	case err != nil || below && addr.IsValid() || addr.Zone() != "":
		return rule{}, fmt.Errorf("%s is not a rule; write a host (example.com), a host with everything below it "+
			"(.example.com), a network (192.0.2.0/24), a port (22) or a range (6660-6669)", quote(text))
	case addr.IsValid():
		addr = egress.Unmap(addr)
		return rule{network: netip.PrefixFrom(addr, addr.BitLen())}, nil
	}
	return rule{host: Canonical(name), below: below}, nil
}

// Canonical returns a name in lower case without the final dot.
func Canonical(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// maxQuoted bounds what of a wrong rule is repeated.
const maxQuoted = 80

// quote returns a rule as an error shows it.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "..."
	}
	return fmt.Sprintf("%+q", text)
}

// Bytes returns about how much memory the rules take.
func (r *Rules) Bytes() int {
	if r == nil {
		return 0
	}
	return 256 + r.allow.bytes() + r.deny.bytes() + r.ports.bytes()
}

func (l *list) bytes() int {
	return l.exact.bytes() + l.below.bytes() + l.networks.bytes() + l.ports.bytes()
}

func (h *hosts) bytes() int { return cap(h.text) + 4*cap(h.table) }

func (n *networks) bytes() int { return 64 * len(n.set) } // with what is free in the map

func (ps ports) bytes() int { return 4 * cap(ps) }
