package conns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// MaxProxyHeader bounds a header of the PROXY protocol in bytes, what extends it in version 2 included: balancers
// send some hundred.
const MaxProxyHeader = 2048

// ErrProxyHeader is the answer to bytes that are no header of the PROXY protocol.
var ErrProxyHeader = errors.New("no valid header of the PROXY protocol")

// The beginnings of both versions, and the longest header of version 1.
const (
	sign1    = "PROXY "
	sign2    = "\r\n\r\n\x00\r\nQUIT\n"
	longest1 = 107
)

// ParseProxyHeader reads the header of the PROXY protocol, version 1 or 2, with which b begins. While need is more
// than len(b) that many bytes are needed to go on; then need is how long the header is. client is invalid where the
// connection is the balancer's own, as its health checks are, or it does not know the client: the peer's address
// counts then.
// It returns ErrProxyHeader as soon as b cannot become a header.
func ParseProxyHeader(b []byte) (client netip.AddrPort, need int, err error) {
	switch {
	case len(b) == 0:
		return client, 1, nil
	case begins(b, sign2):
		return parseProxy2(b)
	case begins(b, sign1):
		return parseProxy1(b)
	}
	return client, 0, ErrProxyHeader
}

// begins reports whether b begins with a text, as far as b goes.
func begins(b []byte, text string) bool {
	n := min(len(b), len(text))
	return string(b[:n]) == text[:n]
}

// parseProxy1 reads a line such as "PROXY TCP4 192.0.2.1 192.0.2.2 4000 443".
func parseProxy1(b []byte) (client netip.AddrPort, need int, err error) {
	line, _, ok := bytes.Cut(b[:min(len(b), longest1)], []byte("\r\n"))
	switch {
	case !ok && len(b) >= longest1:
		return client, 0, ErrProxyHeader
	case !ok:
		return client, max(len(b)+1, len("PROXY UNKNOWN\r\n")), nil
	}
	need = len(line) + 2
	words := strings.Split(string(line), " ")
	if words[1] == "UNKNOWN" {
		return client, need, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return client, 0, ErrProxyHeader
	}
	addr, errAddr := netip.ParseAddr(words[2])
	port, errPort := strconv.ParseUint(words[4], 10, 16)
	if errAddr != nil || errPort != nil || addr.Zone() != "" || addr.Is4() != (words[1] == "TCP4") {
		return client, 0, ErrProxyHeader
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), need, nil
}

// parseProxy2 reads the binary form: the signature, version and command, family and protocol, the length of what
// follows, the addresses and ports of source and destination, and extensions, which are passed over.
func parseProxy2(b []byte) (client netip.AddrPort, need int, err error) {
	const fixed = len(sign2) + 4
	if len(b) < fixed {
		return client, fixed, nil
	}
	command, family := b[12], b[13]
	need = fixed + int(binary.BigEndian.Uint16(b[14:]))
	const local, proxied, unknown, tcp4, tcp6 = 0x20, 0x21, 0x00, 0x11, 0x21
	size := 0
	switch family {
	case tcp4:
		size = 4
	case tcp6:
		size = 16
	}
	switch {
	case need > MaxProxyHeader, command != local && command != proxied:
		return client, 0, ErrProxyHeader
	case len(b) < need, command == local, family == unknown:
		return client, need, nil
	case size == 0, need < fixed+2*size+4:
		return client, 0, ErrProxyHeader
	}
	addr, _ := netip.AddrFromSlice(b[fixed : fixed+size])
	return netip.AddrPortFrom(addr.Unmap(), binary.BigEndian.Uint16(b[fixed+2*size:])), need, nil
}

// Within reports whether one of the networks contains an address.
func Within(networks []netip.Prefix, addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	for _, p := range networks {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
