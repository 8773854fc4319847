package gateway

import (
	"errors"
	"net/netip"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/socks5"
)

// serveSOCKS serves a SOCKS5 client. After a refusal the connection ends (RFC 1928
// section 6).
func (g *Gateway) serveSOCKS(c *client.Conn, h *handshake) *relay.Tunnel {
	s := &h.socks
	if err := s.Greet(&h.in, c, socks5.Password); err != nil {
		if errors.Is(err, socks5.ErrNoMethod) {
			g.metrics.refused(viaSOCKS, refusal.NoCredential)
		}
		g.linger(c)
		return nil
	}
	user, password, err := s.Auth(&h.in)
	if err != nil {
		return nil
	}
	u, ref := g.authenticate(c, user, password)
	if ref != nil {
		g.metrics.refused(viaSOCKS, ref)
	}
	if err := s.Status(c, ref == nil); err != nil || ref != nil {
		g.linger(c)
		return nil
	}
	target, err := s.Request(&h.in)
	if err != nil {
		if bad, ok := errors.AsType[*socks5.RequestError](err); ok {
			g.metrics.done(viaSOCKS, refused(refusal.CodeBadRequest))
			g.replySOCKS(c, s, bad.Reply)
		}
		return nil
	}
	t, ref := g.open(c, u, target)
	if ref != nil {
		g.metrics.refused(viaSOCKS, ref)
		g.replySOCKS(c, s, ref.SOCKS)
		return nil
	}
	// The client is not shown the exit's address and port.
	if err := s.Reply(c, socks5.Succeeded, netip.AddrPort{}); err != nil {
		g.metrics.done(viaSOCKS, truncated)
		g.abandon(t)
		return nil
	}
	g.metrics.done(viaSOCKS, completed)
	t.Begin(h.in.Buffered())
	return t
}

// replySOCKS answers a request that is refused, and ends the connection.
func (g *Gateway) replySOCKS(c *client.Conn, s *socks5.Server, reply socks5.Reply) {
	g.leave(c)
	c.Allow(g.cfg.Timing.Header)
	if s.Reply(c, reply, netip.AddrPort{}) == nil {
		g.linger(c)
	}
}
