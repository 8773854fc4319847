package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain"
	"agentproxy/domain/egress"
)

// maxAddresses is how many answers of a lookup are dialled; all are judged.
const maxAddresses = 4

// lookUp turns a target into the addresses that may be dialled, those of the
// exit's family first. One refused answer refuses the target: a name that points
// inside once may do so again between judging and dialling. One that the operator
// named is trusted and not judged.
func (g *Gateway) lookUp(ctx context.Context, t hostport.Target, exit netip.Addr, trusted bool) ([]netip.AddrPort, *refusal.Refusal) {
	addr, err := egress.ParseHost(t.Host)
	if err != nil {
		return nil, forbidden(err)
	}
	if addr.IsValid() {
		target := netip.AddrPortFrom(addr, t.Port)
		if ref := g.judge(target, trusted); ref != nil {
			return nil, ref
		}
		return []netip.AddrPort{netip.AddrPortFrom(addr.Unmap(), t.Port)}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timing.Resolve)
	defer cancel()
	answers, err := g.cfg.Resolver.LookupNetIP(ctx, "ip", t.Host)
	if err != nil {
		return nil, lookupFailed(err)
	}
	if len(answers) == 0 {
		return nil, refusal.NameNotFound
	}
	var near, far []netip.AddrPort
	for _, a := range answers {
		target := netip.AddrPortFrom(a, t.Port)
		if ref := g.judge(target, trusted); ref != nil {
			return nil, ref
		}
		target = netip.AddrPortFrom(a.Unmap(), t.Port)
		if exit.IsValid() && exit.Is4() != target.Addr().Is4() {
			far = append(far, target)
		} else {
			near = append(near, target)
		}
	}
	near = append(near, far...)
	return near[:min(len(near), maxAddresses)], nil
}

// judge applies the address rule, and our own listeners before it: nothing
// opens those.
func (g *Gateway) judge(target netip.AddrPort, trusted bool) *refusal.Refusal {
	if trusted {
		return nil
	}
	if g.isOwn(target) {
		return refusal.TargetForbidden.Because("the target is this service itself")
	}
	if g.cfg.Judge == nil {
		return refusal.TargetForbidden
	}
	if err := g.cfg.Judge.Judge(target); err != nil {
		return forbidden(err)
	}
	return nil
}

func (g *Gateway) isOwn(target netip.AddrPort) bool {
	addr := target.Addr().Unmap()
	for _, own := range g.own {
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

// isLocal says whether a listener on every address of this host answers at addr.
// It is asked only about targets with the port of such a listener.
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

// forbidden turns the address rule's error into an answer. Its message says what
// is wrong with the target and names no address of ours.
func forbidden(err error) *refusal.Refusal {
	var e *domain.Error
	if errors.As(err, &e) {
		return refusal.TargetForbidden.Because(e.Message)
	}
	return refusal.TargetForbidden
}

func lookupFailed(err error) *refusal.Refusal {
	var e *net.DNSError
	switch {
	case errors.As(err, &e) && e.IsNotFound:
		return refusal.NameNotFound
	case errors.As(err, &e) && e.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return refusal.NameTimeout
	}
	return refusal.NameNotFound.Because("the target's name cannot be looked up")
}
