package dial

import (
	"net/netip"
	"testing"
)

// A proxy at a public address is a seller's, which gets the name.
func TestPublicProxies(t *testing.T) {
	at := func(addrs ...string) (list []netip.AddrPort) {
		for _, a := range addrs {
			list = append(list, netip.AddrPortFrom(netip.MustParseAddr(a), 25))
		}
		return list
	}
	for _, addr := range []string{"198.200.0.7", "2606:4700::7"} {
		if !isPublic(at(addr)) {
			t.Errorf("%s is not public", addr)
		}
	}
	for _, addr := range []string{"10.0.0.7", "100.64.0.7", "fd00::7", "127.0.0.1", "192.168.1.1", "::1", "169.254.1.1"} {
		if isPublic(at(addr)) || isPublic(at("198.200.0.7", addr)) {
			t.Errorf("%s is public", addr)
		}
	}
}
