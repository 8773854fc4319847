package account

import (
	"net/netip"
	"strings"
	"unicode"

	"agentproxy/domain"
)

// MaxUserAgent is how many bytes of a User-Agent header are kept.
const MaxUserAgent = 256

// Origin is where a registration came from.
type Origin struct {
	Addr      netip.Addr // of the client; invalid if it is not known or not kept
	UserAgent string
}

// Cleaned returns the origin as it may be stored and printed: the address without its zone, the header
// cut to MaxUserAgent bytes, without controls.
func (o Origin) Cleaned() Origin {
	o.Addr = o.Addr.Unmap().WithZone("")
	o.UserAgent = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(o.UserAgent, ""))
	if len(o.UserAgent) > MaxUserAgent {
		o.UserAgent = strings.ToValidUTF8(o.UserAgent[:MaxUserAgent], "")
	}
	return o
}

// Bits of the networks whose accounts count together: what one customer of an access provider has.
const (
	network4 = 24
	network6 = 48
)

// Network returns the network of an address as text, or "" if the address is not valid.
func Network(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	bits := network6
	if addr.Is4() {
		bits = network4
	}
	p, err := addr.Prefix(bits)
	if err != nil || !p.IsValid() {
		return ""
	}
	return p.String()
}

// Party returns what accounts share that may be one customer's: the network that they registered
// from. One that the operator verified, or whose origin is not known, is a party of its own.
func (a Agent) Party() string {
	if network := Network(a.Origin.Addr); a.VerifiedFor == "" && network != "" {
		return network
	}
	return a.ID
}

// Registration is who may open an account.
type Registration string

// The ways of registration.
const (
	OpenRegistration     Registration = "open"
	ReferralRegistration Registration = "referral" // with a valid code
	ClosedRegistration   Registration = "closed"   // the operator alone
)

// ParseNetwork parses a network in CIDR form, or an address alone. Bits behind the prefix are refused: they
// show that the prefix is not the one that was meant.
func ParseNetwork(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, domain.InvalidField("registered_from", "must be an address or a network in CIDR form, such as "+
			"203.0.113.0/24")
	}
	return p, nil
}
