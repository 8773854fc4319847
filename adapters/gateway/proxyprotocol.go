package gateway

import (
	"net"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/client"
)

// named reads the header of the PROXY protocol from a balancer, within the time of a handshake, and lets the connection
// count for the client that it names. It returns false if the connection must be closed. A balancer without a header
// is refused: each of its clients would have the balancer's address, in the exit log, for allowed_ips and in every
// limit, and none would notice. Headers of other peers are not read: they are no request.
func (g *Gateway) named(c *client.Conn, h *handshake) bool {
	peer := remote(c.Socket)
	if !conns.Within(g.cfg.Balancers, peer) {
		return true
	}
	for need := 1; ; {
		if _, err := h.in.Peek(need); err != nil {
			return false
		}
		held := h.in.Buffered()
		addr, n, err := conns.ParseProxyHeader(held)
		if err != nil {
			g.table.HeaderRefused(peer, err, g.log)
			return false
		}
		if need = n; need > len(held) {
			continue
		}
		h.in.Discard(need)
		if !addr.IsValid() {
			return true
		}
		c.Named = net.TCPAddrFromAddrPort(addr)
		return g.table.Move(&c.Slot, addr.Addr())
	}
}
