package session

import (
	"net/netip"
	"strings"

	"agentproxy/domain"
)

// MaxAllowedIPs is how many networks a session can be bound to.
const MaxAllowedIPs = 32

// ParseAllowedIPs reads the networks that clients of a session may connect from: CIDR, or one
// address. An IPv4 network within IPv6 is that IPv4 network. None means any.
func ParseAllowedIPs(list []string) ([]netip.Prefix, error) {
	var c checker
	if len(list) > MaxAllowedIPs {
		c.add("allowed_ips", "must be at most %d networks", MaxAllowedIPs)
		return nil, c.err()
	}
	var networks []netip.Prefix
	for _, text := range list {
		p, err := parseNetwork(strings.TrimSpace(text))
		if err != nil {
			c.add("allowed_ips", "must be addresses or networks such as 192.0.2.0/24")
			return nil, c.err()
		}
		networks = append(networks, p)
	}
	return networks, nil
}

func parseNetwork(text string) (netip.Prefix, error) {
	if !strings.Contains(text, "/") {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" {
			return netip.Prefix{}, domain.ErrInvalid
		}
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return p, err
	}
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// ReplacePassword ends the password of an active session; another one takes its place.
func (s Session) ReplacePassword() (Session, error) {
	s, err := s.moveActive()
	if err == nil {
		s.PasswordNo++
	}
	return s, err
}

// CloseConnections closes the connections that were made before. Others can be made at once.
func (s Session) CloseConnections() Session {
	s.Cuts++
	return s
}
