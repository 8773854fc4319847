package egress

import (
	"net/netip"
	"strings"
)

// maxHost is the length of the longest name (RFC 1035), in bytes, without the
// final dot.
const maxHost = 253

// ParseHost distinguishes an address from a name in a host without port and
// brackets. It returns a valid Addr for an IP address in its usual form and an
// invalid one for a name that must be resolved. It returns ErrRefused for other
// numeric forms, which resolvers and upstream proxies interpret differently
// (127.1, 0x7f.1).
func ParseHost(host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, nil
	}
	if LooksNumeric(host) || !isName(host) {
		return netip.Addr{}, errHost
	}
	return netip.Addr{}, nil
}

// LooksNumeric reports whether some resolver would read host as an IPv4 address
// though it is not one in dotted decimal form: 127.1, 2130706433, 0x7f.1,
// 0177.0.0.1. The last label decides, as in the URL Standard ("ends in a
// number"): no top-level domain is a number.
func LooksNumeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	host = strings.TrimRight(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	if len(last) >= 2 && last[0] == '0' && last[1]|0x20 == 'x' {
		return strings.Trim(last[2:], "0123456789abcdefABCDEF") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// isName reports whether host can be a DNS name: letters, digits, hyphens and
// underscores between single dots, of which one may be at the end.
func isName(host string) bool {
	host = strings.TrimSuffix(host, ".")
	if host == "" || len(host) > maxHost || strings.Contains("."+host+".", "..") {
		return false
	}
	for i := range len(host) {
		c := host[i]
		alphanumeric := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !alphanumeric && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
