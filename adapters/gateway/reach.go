package gateway

import (
	"context"
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/procurement"
	"agentproxy/domain/traffic"
)

// direct checks a target and connects a client to it from an exit. The latency is
// that of the connection, without the lookup.
func (g *Gateway) direct(c *client.Conn, t hostport.Target, exit netip.Addr, p *targetCheck) (
	*net.TCPConn, time.Duration, *refusal.Refusal) {
	addrs, ref := g.dialer.LookUp(g.ctx, t, exit, false, p)
	if ref != nil {
		return nil, 0, ref
	}
	began := monotime.Now()
	for _, addr := range addrs {
		if ref = p.Attempt(addr.Addr()); ref != nil {
			return nil, 0, ref
		}
		var tcp *net.TCPConn
		if tcp, ref = g.dial(c, addr, exit, began+g.cfg.Timing.Connect); ref == nil {
			took := monotime.Now() - began
			g.metrics.exits.dialled(g.metrics.exits.from(exit), took)
			return tcp, took, nil
		}
	}
	if !c.Interrupted() {
		g.metrics.exits.from(exit).failed.Inc()
	}
	return nil, monotime.Now() - began, ref
}

// dial connects to a checked address until a time by monotime.
func (g *Gateway) dial(c *client.Conn, addr netip.AddrPort, exit netip.Addr, until time.Duration) (
	*net.TCPConn, *refusal.Refusal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.BeginDial(until, cancel)
	defer c.EndDial()
	if c.Interrupted() {
		return nil, interruption(c)
	}
	tcp, ref := g.dialer.Dial(ctx, addr, exit)
	if ref != nil && c.Interrupted() {
		ref = interruption(c)
	}
	return tcp, ref
}

// viaUpstream checks a target and connects a client to it through an upstream proxy.
// What the target sent already is buffered in in, which reads from the connection.
// The latency is that of connection and handshake, without the lookups.
func (g *Gateway) viaUpstream(c *client.Conn, r *traffic.Route, t hostport.Target, proxy *procurement.Endpoint,
	p *targetCheck, in *http1.Reader) (
	*net.TCPConn, time.Duration, *refusal.Refusal) {
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	// Only an interruption cancels it; the steps have their own limits.
	c.BeginDial(1<<63-1, cancel)
	defer c.EndDial()
	if c.Interrupted() {
		return nil, 0, interruption(c)
	}
	tcp, took, ref := g.dialer.ThroughChecked(ctx, t, proxy, g.cfg.Resolve[r.Provider], p, in)
	switch {
	case ref == nil:
		g.metrics.exits.dialled(g.metrics.exits.through(r.Provider), took)
		return tcp, took, nil
	case c.Interrupted():
		return tcp, took, interruption(c)
	case ref.Code == refusal.CodeTargetRateLimited:
		return nil, 0, ref // no attempt was made
	case ref == refusal.UpstreamForbidden:
		g.warn(&g.warnedUpstream, "a provider named a proxy that must not be dialled",
			"session_id", c.Entry().ID, "host", proxy.Host)
	}
	g.metrics.exits.through(r.Provider).failed.Inc()
	return tcp, took, ref
}

// interruption returns the answer to a request that was interrupted before it began.
func interruption(c *client.Conn) *refusal.Refusal {
	switch c.Cause() {
	case client.Exhausted:
		return exhausted(c)
	case client.Removed:
		return refusal.WorkerRemoved
	case client.Ended:
		return refusal.SessionOver
	case client.TimedOut:
		return refusal.NoCapacity.Because("the gateway is full, and this connection was closed for another one")
	}
	return refusal.NoCapacity.Because("the gateway is shutting down")
}
