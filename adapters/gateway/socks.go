package gateway

import (
	"errors"
	"net/netip"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/socks5"
)

// serveSOCKS serves a client that speaks SOCKS5. After a refusal the connection
// ends (RFC 1928 section 6).
func (g *Gateway) serveSOCKS(c *conn, h *handshake) *tunnel {
	s := &h.socks
	if err := s.Greet(&h.in, c.client); err != nil {
		if errors.Is(err, socks5.ErrNoMethod) { // no password on offer
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
	if err := s.Status(c.client, ref == nil); err != nil || ref != nil {
		g.linger(c)
		return nil
	}
	target, err := s.Request(&h.in)
	if err != nil {
		var bad *socks5.RequestError
		if errors.As(err, &bad) {
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
	// The exit's address and port are the target's to see, not the client's.
	if err := s.Reply(c.client, socks5.Succeeded, netip.AddrPort{}); err != nil {
		g.metrics.done(viaSOCKS, truncated)
		t.abandon()
		return nil
	}
	g.metrics.done(viaSOCKS, completed)
	t.begin(h.in.Buffered())
	return t
}

func (g *Gateway) replySOCKS(c *conn, s *socks5.Server, reply socks5.Reply) {
	c.allow(g.cfg.Timing.Header)
	if s.Reply(c.client, reply, netip.AddrPort{}) == nil {
		g.linger(c)
	}
}
