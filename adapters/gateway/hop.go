package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/egress"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// noHop stands for an upstream proxy that a route should have and has not. It
// cannot be reached: what was sold as another's address must not leave from ours.
var noHop procurement.Endpoint

// hopOf is the upstream proxy of an exit; nil says that targets are dialled from
// the exit itself.
func hopOf(r *traffic.Route, i int) *procurement.Endpoint {
	switch {
	case len(r.Hops) == 0:
		return nil
	case i < len(r.Hops):
		return &r.Hops[i]
	}
	return &noHop
}

// hopName tells the ways through upstream proxies apart. The same user can mean
// another exit after a rotation.
func hopName(hop *procurement.Endpoint, rotation int) string {
	return fmt.Sprintf("%d %s %s %d %s", rotation, hop.Protocol, hop.Host, hop.Port, hop.User)
}

// chain judges a target and connects a client to it through an upstream proxy.
// What the target has said already is in in, which reads from the connection. The
// latency is that of connection and handshake, without the lookups.
func (g *Gateway) chain(c *conn, t hostport.Target, hop *procurement.Endpoint, in *http1.Reader) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	ctx, cancel := context.WithCancel(g.ctx)
	defer cancel()
	// Only interruptions cancel it by this; the parts have limits of their own.
	c.dialing.Store(&dialing{until: 1<<63 - 1, cancel: cancel})
	defer c.dialing.Store(nil)
	if c.interrupted() {
		return nil, 0, interruption(cause(c.cause.Load()))
	}
	tcp, took, ref := g.judgedThrough(ctx, t, hop, in)
	switch {
	case ref == nil:
		g.metrics.dialled(took)
	case c.interrupted():
		ref = interruption(cause(c.cause.Load()))
	case ref == refusal.UpstreamForbidden:
		g.warn(&g.warnedHop, "a provider named a proxy that must not be dialled", "session_id", c.entry.Load().id, "host", hop.Host)
	}
	return tcp, took, ref
}

// judgedThrough lets the name itself be sent on, after all its addresses were
// judged. An address goes in the form in which it was judged.
func (g *Gateway) judgedThrough(ctx context.Context, t hostport.Target, hop *procurement.Endpoint, in *http1.Reader) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	if _, ref := g.lookUp(ctx, t, netip.Addr{}, false); ref != nil {
		return nil, 0, ref
	}
	if addr, _ := egress.ParseHost(t.Host); addr.IsValid() {
		t.Host = addr.Unmap().String()
	}
	return g.through(ctx, t, hop, in)
}

// through connects to a target through an upstream proxy, within Timing.Connect
// and as long as ctx lasts. It is not metered.
func (g *Gateway) through(ctx context.Context, t hostport.Target, hop *procurement.Endpoint, in *http1.Reader) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	addrs, ref := g.lookUp(ctx, hostport.Target{Host: hop.Host, Port: hop.Port}, netip.Addr{}, hop.Trusted)
	if ref != nil {
		return nil, 0, hopUnknown(ref)
	}
	began := mono()
	ctx, cancel := context.WithTimeout(ctx, g.cfg.Timing.Connect)
	defer cancel()
	var tcp *net.TCPConn
	for _, addr := range addrs {
		// The exit is the upstream's address, so it is nothing to bind to.
		if tcp, ref = g.dial(ctx, addr, netip.Addr{}); ref == nil {
			break
		}
	}
	if ref != nil {
		return nil, mono() - began, hopSilent(ref)
	}
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(past) })
	ref = g.ask(ctx, tcp, in, t, hop)
	if !stop() && (ref == nil || ref == refusal.UpstreamClosed) {
		ref = refusal.UpstreamTimeout
	}
	if ref != nil {
		_ = tcp.Close()
		in.Free()
		return nil, mono() - began, ref
	}
	return tcp, mono() - began, nil
}

// ask speaks the upstream's protocol until the tunnel is open.
func (g *Gateway) ask(ctx context.Context, tcp *net.TCPConn, in *http1.Reader, t hostport.Target, hop *procurement.Endpoint) *refusal.Refusal {
	in.Reset(tcp)
	if hop.Protocol == session.SOCKS5 {
		return refusal.FromSOCKS(socks5.Connect(tcp, t, hop.User, hop.Password))
	}
	if _, err := tcp.Write(http1.AppendConnect(nil, t, hop.User, hop.Password)); err != nil {
		return refusal.UpstreamClosed
	}
	a, err := http1.ReadAnswer(in)
	var bad *http1.Error
	switch {
	case errors.As(err, &bad):
		return refusal.UpstreamMalformed.Note(bad.Reason)
	case err != nil:
		return refusal.UpstreamClosed
	case a.Open():
		return nil
	}
	// The beginning of the body is worth a moment. An interruption stays one.
	_ = tcp.SetReadDeadline(time.Now().Add(bodyGrace))
	if ctx.Err() != nil {
		return refusal.UpstreamClosed
	}
	body, cut := a.Beginning(in, refusal.MaxBody)
	return refusal.FromAnswer(&a, g.cfg.Now()).ProviderAnswer(refusal.UpstreamReason(&a, body, cut, hop))
}

// bodyGrace is how long the beginning of an answer's body is waited for.
const bodyGrace = 500 * time.Millisecond

// hopUnknown is why an upstream's address was not found, or may not be dialled.
func hopUnknown(ref *refusal.Refusal) *refusal.Refusal {
	switch {
	case ref == refusal.NameTimeout:
		return refusal.UpstreamTimeout
	case ref.Code == refusal.CodeTargetRefused:
		return refusal.UpstreamForbidden
	}
	return refusal.UpstreamUnreachable
}

// hopSilent is why an upstream could not be connected to.
func hopSilent(ref *refusal.Refusal) *refusal.Refusal {
	switch ref {
	case refusal.ConnectTimeout:
		return refusal.UpstreamTimeout
	case refusal.OutOfSockets:
		return ref
	}
	return refusal.UpstreamUnreachable
}
