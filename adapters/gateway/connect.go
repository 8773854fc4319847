package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/traffic"
)

// serveHTTP serves a client that speaks HTTP: one CONNECT, or plain requests one
// after the other. A tunnel that it returns takes the connection over.
func (g *Gateway) serveHTTP(c *conn, h *handshake) *tunnel {
	for {
		if err := http1.ReadRequest(&h.in, &h.request); err != nil {
			var bad *http1.Error
			if errors.As(err, &bad) {
				g.answer(c, h, viaHTTP, refusal.MalformedRequest(bad), false)
			}
			return nil
		}
		if h.request.Connect() {
			return g.connect(c, h)
		}
		t, again := g.forward(c, h)
		if !again {
			return t
		}
		if !g.nextRequest(c, h) {
			return nil
		}
	}
}

// connect opens a tunnel, or refuses and ends the connection: what a client sent
// behind a refused CONNECT was meant for the tunnel (RFC 9931).
func (g *Gateway) connect(c *conn, h *handshake) *tunnel {
	user, password, ok := h.request.Credentials()
	if !ok {
		g.answer(c, h, viaConnect, refusal.NoCredential, false)
		return nil
	}
	u, ref := g.authenticate(c, user, password)
	if ref != nil {
		g.answer(c, h, viaConnect, ref, false)
		return nil
	}
	t, ref := g.open(c, u, h.request.Target())
	if ref != nil {
		g.answer(c, h, viaConnect, ref, false)
		return nil
	}
	if _, err := io.WriteString(c.client, http1.Established); err != nil {
		g.metrics.done(viaConnect, truncated)
		t.abandon()
		return nil
	}
	g.metrics.done(viaConnect, completed)
	t.begin(h.in.Buffered())
	return t
}

// open does what a tunnel needs whatever protocol asks for it: the session's
// state, a place and a lease, and a connection to the target.
func (g *Gateway) open(c *conn, u traffic.User, target hostport.Target) (*tunnel, *refusal.Refusal) {
	w, ref := g.find(g.ctx, c, u)
	if ref != nil {
		g.observeRefusal(c, w.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	e := c.entry.Load()
	// The parts that follow have limits of their own.
	c.quiet.Store(0)
	if ref = admitted(e.pool.admit(c, g.cfg.Tunnels, g.cfg.Timing.Admit)); ref != nil {
		g.observeRefusal(c, w.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	var (
		tcp     *net.TCPConn
		latency time.Duration
		early   []byte // what the target has said already
	)
	if w.hop == nil {
		tcp, latency, ref = g.reach(c, target, w.exit.IP)
	} else {
		in := http1.NewReader(nil)
		tcp, latency, ref = g.chain(c, target, w.hop, in)
		early = bytes.Clone(in.Buffered())
		in.Free()
	}
	if ref == nil && !c.attach(tcp) {
		_ = tcp.Close()
		ref = interruption(cause(c.cause.Load()))
	}
	if ref != nil {
		e.pool.leave(c)
		g.observeRefusal(c, w.exit.IP, target.Host, ref, latency)
		return nil, ref
	}
	e.pool.opened()
	g.tunnels.Add(1)
	t := newTunnel(g, c, e, tcp, opening{host: target.Host, exit: w.exit.IP, latency: latency})
	t.down.early = early
	return t, nil
}

// opening is what the event of a tunnel tells besides its bytes.
type opening struct {
	host    string
	exit    netip.Addr
	latency time.Duration
}

// interruption is the answer to a request that was interrupted before it began.
func interruption(why cause) *refusal.Refusal {
	switch why {
	case exhausted:
		return refusal.TrafficExhausted
	case ended:
		return refusal.SessionOver
	}
	return refusal.NoCapacity.Because("the gateway is shutting down")
}

// answer writes an answer of our own and ends the connection. It is free.
func (g *Gateway) answer(c *conn, h *handshake, via protocol, ref *refusal.Refusal, head bool) {
	g.metrics.refused(via, ref)
	h.out = ref.Reply(head).Append(h.out[:0])
	c.allow(g.cfg.Timing.Header)
	if c.interrupted() { // and its deadlines are past
		_ = c.client.SetDeadline(time.Now().Add(g.cfg.Timing.Linger))
	}
	if _, err := c.client.Write(h.out); err == nil {
		g.linger(c)
	}
}
