package gateway

import (
	"bytes"
	"errors"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/secure"
)

// handshakeEnd is what a TLS handshake came to.
type handshakeEnd uint8

const (
	handshakeFull    handshakeEnd = iota
	handshakeResumed              // by a session ticket
	handshakeFailed
	handshakeTimedOut    // or interrupted, because its place was needed
	handshakeUncertified // there is no certificate
	handshakeEnds        = iota
)

var handshakeLabels = [handshakeEnds]string{"full", "resumed", "failed", "timed_out", "no_certificate"}

// tlsHandshakes counts TLS handshakes by what they came to.
type tlsHandshakes struct {
	vec  *prometheus.CounterVec
	each [handshakeEnds]prometheus.Counter
}

func newTLSHandshakes() tlsHandshakes {
	h := tlsHandshakes{vec: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "agentproxy_gateway_tls_handshakes_total", Help: "TLS handshakes of clients by outcome."},
		[]string{"outcome"})}
	for i, label := range handshakeLabels {
		h.each[i] = h.vec.WithLabelValues(label)
	}
	return h
}

// serveTLS makes the handshake of a TLS client, whose first bytes are in h, and serves what is inside: HTTP/2 if the
// client asks for it, else the same protocols as without TLS.
func (g *Gateway) serveTLS(c *client.Conn, h *handshake) *relay.Tunnel {
	if g.tls == nil {
		g.metrics.handshakes.each[handshakeUncertified].Inc()
		if _, err := c.Write(secure.HandshakeFailure); err == nil {
			g.linger(c)
		}
		return nil
	}
	s := secure.Server(c.Socket, bytes.Clone(h.in.Buffered()), g.tls)
	err := s.Handshake()
	g.metrics.handshakes.each[g.endOfHandshake(c, s, err)].Inc()
	if err != nil {
		if !c.Interrupted() {
			g.linger(c) // the alert is not lost
		}
		return nil
	}
	c.Stream = s
	protocol := s.ConnectionState().NegotiatedProtocol
	if protocol != "" && protocol != "http/1.1" && protocol != "h2" {
		return nil // of the certificate's own: the handshake was all of it
	}
	h.in.Reset(s)
	c.Allow(g.cfg.Timing.Header)
	switch first, ok := g.peek(c, h); {
	case !ok:
		return nil
	case protocol == "h2" && first == 'P' && beginsHTTP2(h):
		s.Unread(bytes.Clone(h.in.Buffered()))
		g.serveHTTP2(c)
		return nil
	default:
		return g.serveInside(c, h, first)
	}
}

// beginsHTTP2 reports whether a client that asked for h2 begins with the preface of HTTP/2 (RFC 9113 section 3.4),
// whose method no request of HTTP/1.1 has. Go's net/http asks a proxy for h2 and then sends it HTTP/1.1.
func beginsHTTP2(h *handshake) bool {
	const preface = "PRI "
	start, err := h.in.Peek(len(preface))
	return err == nil && string(start) == preface
}

func (g *Gateway) endOfHandshake(c *client.Conn, s *secure.Conn, err error) handshakeEnd {
	switch {
	case err == nil && s.ConnectionState().DidResume:
		return handshakeResumed
	case err == nil:
		return handshakeFull
	case c.Interrupted() || errors.Is(err, os.ErrDeadlineExceeded):
		return handshakeTimedOut
	}
	return handshakeFailed
}

// refusePlaintext answers a client without TLS where that is required. What it sent is not read as a request: its
// credential has been sent in clear text, and no answer depends on whether it is right.
func (g *Gateway) refusePlaintext(c *client.Conn, h *handshake, socks bool) {
	if socks {
		g.metrics.refused(viaSOCKS, refusal.TLSRequired)
		g.linger(c)
		return
	}
	g.answer(c, h, viaHTTP, refusal.TLSRequired, withBody)
}

// ticketKeys sets the keys of session tickets that hold now.
func (g *Gateway) ticketKeys() {
	if g.tls == nil || len(g.cfg.TicketSecret) == 0 {
		return
	}
	keys, err := secure.TicketKeys(g.cfg.TicketSecret, g.now())
	if err != nil {
		g.log.Error("no keys of session tickets; TLS clients cannot resume", "err", err)
		return
	}
	g.tls.SetSessionTicketKeys(keys)
}
