// Package egress decides which addresses the service connects to on behalf of
// others: the targets of the gateway and of webhooks. It checks addresses only;
// who calls it resolves a name, checks every answer, and dials a checked one.
package egress

import (
	"net/netip"

	"agentproxy/domain"
)

// ErrRefused is every refusal of this package; the variants below differ in the
// message. None names an address, or a caller could map a network with them.
var ErrRefused = &domain.Error{Kind: domain.Forbidden, Code: "TARGET_REFUSED",
	Message: "the target is not a public address; use a host that is reachable from the internet"}

var (
	errZone = ErrRefused.Msgf("the target has an IPv6 zone; use an address without one")
	errPort = ErrRefused.Msgf("the target's port is not served; mail ports (25, 465, 587) and port 0 never are")
	errHost = ErrRefused.Msgf("the target's host is neither a name in ASCII (xn-- for international ones) " +
		"nor an IP address in its usual form; write it in one of these forms")
)

// Policy defines what may be reached beside the public internet, and what may
// never be reached. The zero Policy allows public addresses only. It is safe
// for concurrent use.
type Policy struct {
	// Allow opens networks that are refused by themselves. An address that
	// carries an IPv4 address is looked up here by that.
	Allow []netip.Prefix
	// Loopback opens 127.0.0.0/8 and ::1: development mode.
	Loopback bool
	// Refuse lists our own listeners, which nothing opens. One on an unspecified
	// address (0.0.0.0 or ::) is refused on each address that is this host's.
	Refuse []netip.AddrPort
	// IsLocal reports whether an address is this host's. If it is nil, every address
	// is taken as local, so a listener on an unspecified address refuses its port on
	// all of them.
	IsLocal func(netip.Addr) bool
}

// Check returns nil if a connection to target may be made, else an ErrRefused.
func (p Policy) Check(target netip.AddrPort) error {
	switch {
	case target.Addr().Zone() != "":
		return errZone
	case refusedPort(target.Port()):
		return errPort
	case !target.Addr().IsValid() || never(target.Addr()):
		return ErrRefused
	}
	addr := target.Addr().Unmap()
	translated := nat64.Contains(addr)
	if translated {
		addr = inner(addr)
	}
	switch {
	case addr.IsUnspecified() || p.own(netip.AddrPortFrom(addr, target.Port())):
		return ErrRefused
	case p.Loopback && addr.IsLoopback() && !translated: // loopback behind a translator is not ours
		return nil
	case contains(p.Allow, addr):
		return nil
	case !addr.IsGlobalUnicast() || contains(specialPurpose, addr):
		return ErrRefused
	}
	return nil
}

// CheckAll checks every answer of a lookup: a single refused one refuses the
// target, because the name may answer with it alone the next time. No answer at
// all is refused too.
func (p Policy) CheckAll(answers []netip.Addr, port uint16) error {
	for _, addr := range answers {
		if err := p.Check(netip.AddrPortFrom(addr, port)); err != nil {
			return err
		}
	}
	if len(answers) == 0 {
		return ErrRefused
	}
	return nil
}

// own reports whether one of our listeners answers at target.
func (p Policy) own(target netip.AddrPort) bool {
	for _, ours := range p.Refuse {
		if ours.Port() != target.Port() {
			continue
		}
		at := ours.Addr().Unmap().WithZone("")
		if at == target.Addr() || at.IsUnspecified() && p.local(target.Addr()) {
			return true
		}
	}
	return false
}

// local reports whether a connection to addr ends on this host.
func (p Policy) local(addr netip.Addr) bool {
	return p.IsLocal == nil || addr.IsLoopback() || p.IsLocal(addr)
}

// refusedPort reports a port that is never dialled: mail submission, which would
// make us a spam relay, and 0, which is none.
func refusedPort(port uint16) bool {
	return port == 0 || port == 25 || port == 465 || port == 587
}

func contains(networks []netip.Prefix, addr netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(addr) {
			return true
		}
	}
	return false
}
