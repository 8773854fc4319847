package endpoint

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddr returns the address of the client: the socket's or, behind
// proxies that the operator trusts, the nearest address in X-Forwarded-For that
// is none of theirs. Whatever else a client writes into that header counts for
// nothing.
func (a *API) ClientAddr(r *http.Request) netip.Addr {
	addr := PeerAddr(r)
	if !a.trusts(addr) {
		return addr
	}
	forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(forwarded) - 1; i >= 0; i-- {
		hop, ok := parseForwarded(forwarded[i])
		if !ok {
			break
		}
		addr = hop
		if !a.trusts(addr) {
			break
		}
	}
	return addr
}

// PeerAddr returns the address at the other end of the socket; invalid if it is not known.
func PeerAddr(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

func (a *API) trusts(addr netip.Addr) bool {
	for _, p := range a.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// parseForwarded reads one entry: an address, which some proxies write with its port.
func parseForwarded(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	addr, err := netip.ParseAddr(strings.Trim(text, "[]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(text)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
