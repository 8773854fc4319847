package http1

import (
	"bytes"
	"net/netip"

	"agentproxy/adapters/gateway/hostport"
)

// The classes of a byte. Lookups in one table keep the scans free of branches.
const (
	tokenByte  = 1 << iota // RFC 9110 section 5.6.2
	valueByte              // field value: visible, SP, HTAB, obs-text (RFC 9110 section 5.5)
	hostByte               // a registered name or an IPv4 address, percent-encoding excluded
	targetByte             // path and query: visible but "#", and the raw UTF-8 that some clients send
)

var class = func() (t [256]uint8) {
	for c := range t {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' && c < 0x80
		digit := '0' <= c && c <= '9'
		visible := 0x21 <= c && c <= 0x7e || c >= 0x80
		if letter || digit {
			t[c] |= tokenByte
		}
		if hostport.NameByte(byte(c)) {
			t[c] |= hostByte
		}
		if visible || c == ' ' || c == '\t' {
			t[c] |= valueByte
		}
		if visible && c != '#' {
			t[c] |= targetByte
		}
	}
	for _, c := range "!#$%&'*+-.^_`|~" {
		t[c] |= tokenByte
	}
	return t
}()

// all reports whether every byte of b is of the class.
func all(b []byte, bit uint8) bool {
	for _, c := range b {
		if class[c]&bit == 0 {
			return false
		}
	}
	return true
}

func isToken(b []byte) bool { return len(b) > 0 && all(b, tokenByte) }

// fold compares b, which has no control characters, with a lower-case text of
// letters, digits and "-", without regard to case.
func fold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if c|0x20 != lower[i] {
			return false
		}
	}
	return true
}

// foldBytes compares two tokens without regard to case.
func foldBytes(a, b []byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i, c := range a {
		if lower(c) != lower(b[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// trim removes spaces and tabs from both ends.
func trim(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\t') {
		b = b[:len(b)-1]
	}
	return b
}

// maxHost is what SOCKS5 can carry, two more than a name in the DNS can have.
const maxHost = 255

// splitAuthority splits host:port (RFC 3986 section 3.2). The host keeps the
// brackets of an IPv6 address; the port is 0 if there is none. Zones are refused:
// they name an interface of this machine.
func splitAuthority(b []byte) (host []byte, port uint16, err error) {
	end := 0
	if len(b) > 0 && b[0] == '[' {
		for end < len(b) && b[end] != ']' {
			end++
		}
		if end == len(b) {
			return nil, 0, errAuthority
		}
		addr, err := netip.ParseAddr(string(b[1:end]))
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return nil, 0, errAuthority
		}
		end++
	} else {
		for end < len(b) && class[b[end]]&hostByte != 0 {
			end++
		}
	}
	if end == 0 || end > maxHost {
		return nil, 0, errAuthority
	}
	switch {
	case end == len(b):
		return b, 0, nil
	case b[end] != ':':
		return nil, 0, errAuthority
	}
	port, ok := parsePort(b[end+1:])
	if !ok {
		return nil, 0, errPort
	}
	return b[:end], port, nil
}

// splitBareIPv6 splits an IPv6 address without brackets from the port behind the last
// colon. ok is false unless what precedes that colon is a whole address and what
// follows it is a port.
func splitBareIPv6(b []byte) (host []byte, port uint16, ok bool) {
	last := bytes.LastIndexByte(b, ':')
	if last < 0 || b[0] == '[' || bytes.IndexByte(b, ':') == last {
		return nil, 0, false
	}
	addr, err := netip.ParseAddr(string(b[:last]))
	if err != nil || !addr.Is6() || addr.Zone() != "" {
		return nil, 0, false
	}
	port, ok = parsePort(b[last+1:])
	return b[:last], port, ok
}

func parsePort(b []byte) (uint16, bool) {
	if len(b) == 0 || len(b) > 5 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return uint16(n), 0 < n && n <= 65535
}

// parseLength reads a Content-Length (RFC 9110 section 8.6): digits only, at most
// eighteen, so that it fits an int64.
func parseLength(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	var n int64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}
