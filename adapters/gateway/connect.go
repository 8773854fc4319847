package gateway

import (
	"bytes"
	"errors"
	"io"
	"net"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/relay"
)

// serveHTTP serves an HTTP client: one CONNECT, or plain requests one after the
// other. A tunnel that it returns takes the connection over.
func (g *Gateway) serveHTTP(c *client.Conn, h *handshake) *relay.Tunnel {
	for {
		if err := http1.ReadRequest(&h.in, &h.request); err != nil {
			if bad, ok := errors.AsType[*http1.Error](err); ok {
				g.answer(c, h, viaHTTP, refusal.MalformedRequest(bad), withBody)
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

// connect opens a tunnel, or answers with a refusal and ends the connection: what a
// client sent behind a refused CONNECT was meant for the tunnel (RFC 9931).
func (g *Gateway) connect(c *client.Conn, h *handshake) *relay.Tunnel {
	user, password, ok := h.request.Credentials()
	if !ok {
		g.answer(c, h, viaConnect, refusal.NoCredential, withBody)
		return nil
	}
	u, ref := g.authenticate(c, user, password)
	if ref != nil {
		g.answer(c, h, viaConnect, ref, withBody)
		return nil
	}
	t, ref := g.open(c, u, h.request.Target())
	if ref != nil {
		g.answer(c, h, viaConnect, ref, withBody)
		return nil
	}
	if _, err := io.WriteString(c, http1.Established); err != nil {
		g.metrics.done(viaConnect, truncated)
		g.abandon(t)
		return nil
	}
	g.metrics.done(viaConnect, completed)
	t.Begin(h.in.Buffered())
	return t
}

// open opens a tunnel for either protocol: it checks the session's state, takes a
// place in its pool and connects to the target.
func (g *Gateway) open(c *client.Conn, u credential, target hostport.Target) (*relay.Tunnel, *refusal.Refusal) {
	p, ref := g.findPath(g.ctx, c, u)
	if ref != nil {
		g.observeRefusal(c, p.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	counted, ref := g.start(p.route, target)
	if ref == nil {
		ref = g.enter(c, p.route)
	}
	if ref != nil {
		g.observeRefusal(c, p.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	pass := &targetCheck{}
	if ref = pass.begin(g, c, p, target); ref != nil {
		g.tried(p.route, counted, ref)
		g.observeRefusal(c, p.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	pool := &c.Entry().Pool
	c.Allow(0) // the steps that follow have their own limits
	if ref = g.admit(c, p); ref != nil {
		g.observeRefusal(c, p.exit.IP, target.Host, ref, 0)
		return nil, ref
	}
	var (
		tcp     *net.TCPConn
		latency time.Duration
		early   []byte // what the target sent already
	)
	if ref = g.paced(p.route, counted); ref != nil {
		// No attempt is made.
	} else if p.proxy == nil {
		tcp, latency, ref = g.direct(c, target, p.exit.IP, pass)
		g.tried(p.route, counted, ref)
		ref = g.exitOf(p, ref)
	} else {
		in := http1.NewReader(nil)
		tcp, latency, ref = g.viaUpstream(c, p.route, target, p.proxy, pass, in)
		g.tried(p.route, counted, ref)
		ref = g.sellersExitOf(p, ref)
		early = bytes.Clone(in.Buffered())
		in.Free()
	}
	if ref == nil {
		c.CheckedTarget.Store(&pass.CheckedTarget)
		if !c.Attach(tcp) {
			_ = tcp.Close()
			ref = interruption(c)
		}
	}
	if ref != nil {
		pool.Leave(&c.Member)
		g.observeRefusal(c, p.exit.IP, target.Host, ref, latency)
		return nil, ref
	}
	pool.Account(&c.Member).Opened()
	return g.relay.Tunnel(c, tcp, relay.Opening{Host: target.Host, Exit: p.exit.IP, Latency: latency,
		Number:     g.opened(c, p, pass, tcp).number,
		ChargeRead: p.proxy != nil}, early), nil
}

// withBody is the head parameter of answer for any request but HEAD.
const withBody = false

// answer writes a refusal and ends the connection. It is not metered. head leaves out the body.
func (g *Gateway) answer(c *client.Conn, h *handshake, via protocol, ref *refusal.Refusal, head bool) {
	g.leave(c)
	g.metrics.refused(via, ref)
	h.out = ref.Reply(head).Append(h.out[:0])
	c.Allow(g.cfg.Timing.Header)
	if c.Interrupted() { // and its deadlines are in the past
		_ = c.SetDeadline(time.Now().Add(g.cfg.Timing.Linger))
	}
	if _, err := c.Write(h.out); err == nil {
		g.linger(c)
	}
}
