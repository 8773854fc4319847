package conns

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Hosts is what the Host header of a request to a listener may be. A web page that
// rebinds its own name to the listener's address sends another one.
type Hosts struct {
	Names []string // further names, without ports
	// Addr is the address that the listener is bound to.
	Addr netip.Addr
}

// Allow reports whether a Host header is an address of the listener, localhost on
// loopback, or one of the names. A request without one does not come from a web page.
func (h Hosts) Allow(header string) bool {
	host := Hostname(header)
	if host == "" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	if err == nil {
		return addr.Zone() == "" && h.own(addr.Unmap())
	}
	if host == "localhost" {
		return h.Addr.IsLoopback() || h.Addr.IsUnspecified()
	}
	for _, name := range h.Names {
		if Hostname(name) == host {
			return true
		}
	}
	return false
}

// own reports whether the listener answers at an address.
func (h Hosts) own(addr netip.Addr) bool {
	switch {
	case addr == h.Addr.Unmap(), addr.IsLoopback() && (h.Addr.IsLoopback() || h.Addr.IsUnspecified()):
		return true
	case !h.Addr.IsUnspecified():
		return false
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == addr {
			return true
		}
	}
	return false
}

// Hostname returns a host in lower case without its port, the brackets of an IPv6 address
// and a final dot. What follows the last colon and is no number of a port is a part of the host.
func Hostname(hostport string) string {
	host := hostport
	if name, port, err := net.SplitHostPort(hostport); err == nil && isPort(port) {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// isPort reports whether a text is the number of a port; it may be empty (RFC 3986 section 3.2.3).
func isPort(text string) bool {
	if text == "" {
		return true
	}
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}
