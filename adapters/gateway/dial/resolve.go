package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain"
	"agentproxy/domain/egress"
)

// maxAddresses is how many addresses of a lookup are dialled; all are checked.
const maxAddresses = 4

// LookUp returns the addresses of a target that may be dialled, those of the exit's
// family first. One forbidden address forbids the target, because a name that
// resolves to an internal address once may do so again. A trusted target, one that
// the operator configured, is not checked. A name that leads to a forbidden address is answered
// like one that does not exist, and so is one without a dot: else the names of the operator's
// network could be listed. policy is asked about every address that the
// address rule lets pass; nil for none.
func (d *Dialer) LookUp(ctx context.Context, t hostport.Target, exit netip.Addr, trusted bool, policy Policy) (
	[]netip.AddrPort, *refusal.Refusal) {
	if !trusted && d.Public.named(t) {
		return nil, itself
	}
	addr, err := egress.ParseHost(t.Host)
	if err != nil {
		return nil, forbidden(err)
	}
	if addr.IsValid() {
		target := netip.AddrPortFrom(addr, t.Port)
		if ref := d.check(target, trusted, policy); ref != nil {
			return nil, ref
		}
		return []netip.AddrPort{netip.AddrPortFrom(addr.Unmap(), t.Port)}, nil
	}
	name := t.Host
	if !trusted {
		if name = Absolute(name); !d.SingleLabels && !strings.Contains(strings.TrimSuffix(name, "."), ".") {
			return nil, refusal.NameNotFound
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d.Resolve)
	defer cancel()
	answers, err := d.Resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, lookupFailed(err)
	}
	if len(answers) == 0 {
		return nil, refusal.NameNotFound
	}
	var first, last []netip.AddrPort // of the exit's family, of the other
	for _, a := range answers {
		target := netip.AddrPortFrom(a, t.Port)
		if ref := d.check(target, trusted, policy); ref != nil {
			if !trusted && slices.ContainsFunc(answers, d.hidden) {
				ref = refusal.NameNotFound
			}
			return nil, ref
		}
		target = netip.AddrPortFrom(a.Unmap(), t.Port)
		if exit.IsValid() && exit.Is4() != target.Addr().Is4() {
			last = append(last, target)
		} else {
			first = append(first, target)
		}
	}
	first = append(first, last...)
	return first[:min(len(first), maxAddresses)], nil
}

// Absolute returns a name with a final dot, so that a resolver adds no search domain of this host's. One without
// any dot it returns as it is: the C library finds localhost in /etc/hosts without a final dot alone, and
// where names of the host's network are no targets, these are refused.
func Absolute(name string) string {
	if strings.HasSuffix(name, ".") || !strings.Contains(name, ".") {
		return name
	}
	return name + "."
}

// hidden reports whether an address is forbidden whatever its port, so that a name of it must not be confirmed. A
// port that no rule forbids is asked for.
func (d *Dialer) hidden(addr netip.Addr) bool {
	return d.AddressPolicy != nil && d.AddressPolicy.Check(netip.AddrPortFrom(addr, 443)) != nil
}

// check applies the address rule. The service's own listeners come before it, so
// that no configuration opens them.
func (d *Dialer) check(target netip.AddrPort, trusted bool, policy Policy) *refusal.Refusal {
	if trusted {
		return nil
	}
	if d.isOwn(target) || d.Public.at(target) {
		return itself
	}
	if d.AddressPolicy == nil {
		return refusal.TargetForbidden
	}
	if err := d.AddressPolicy.Check(target); err != nil {
		return forbidden(err)
	}
	if policy != nil {
		return policy.Address(target.Addr())
	}
	return nil
}

// isOwn reports whether a target is a listener of this service.
func (d *Dialer) isOwn(target netip.AddrPort) bool {
	addr := target.Addr().Unmap()
	for _, own := range d.Own {
		switch {
		case own.Port() != target.Port():
		case own.Addr() == addr, addr.IsUnspecified():
			return true
		case own.Addr().IsUnspecified() && isLocal(addr):
			return true
		}
	}
	return false
}

// isLocal reports whether a listener on every address of this host answers at addr.
// It is asked only about targets with the port of such a listener. It returns true
// if the host's addresses cannot be read.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, a := range list {
		n, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		if ip, ok := netip.AddrFromSlice(n.IP); ok && ip.Unmap() == addr {
			return true
		}
	}
	return false
}

// forbidden returns the refusal that the address rule's error means. The message
// names no address of this service.
func forbidden(err error) *refusal.Refusal {
	if e, ok := errors.AsType[*domain.Error](err); ok {
		return refusal.TargetForbidden.Because(e.Message)
	}
	return refusal.TargetForbidden
}

// lookupFailed returns the refusal that a resolver's error means.
func lookupFailed(err error) *refusal.Refusal {
	e, isDNS := errors.AsType[*net.DNSError](err)
	switch {
	case isDNS && e.IsNotFound:
		return refusal.NameNotFound
	case isDNS && e.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return refusal.NameTimeout
	}
	return refusal.NameNotFound.Because("the target's name cannot be looked up")
}
