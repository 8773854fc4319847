package dial

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/http1"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/refusal"
	"agentproxy/adapters/gateway/socks5"
	"agentproxy/domain/egress"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// bodyGrace is how long the beginning of a refusal's body is waited for.
const bodyGrace = 500 * time.Millisecond

// past is a deadline that makes every read and write fail at once.
var past = time.Unix(1, 0)

// unknownProxy replaces an upstream proxy that a route should name and does not.
// It cannot be reached, so that traffic sold from another address never leaves from
// an address of this host.
var unknownProxy procurement.Endpoint

// Upstream returns the upstream proxy of a route's exit, nil if targets are dialled
// from the exit itself.
func Upstream(r *traffic.Route, exit int) *procurement.Endpoint {
	switch {
	case len(r.Hops) == 0:
		return nil
	case exit < len(r.Hops):
		return &r.Hops[exit]
	}
	return &unknownProxy
}

// Judged judges a target and connects to it through an upstream proxy. The name is
// sent on, after all of its addresses were judged; an address is sent in the form in
// which it was judged.
func (d *Dialer) Judged(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint, in *http1.Reader) (
	*net.TCPConn, time.Duration, *refusal.Refusal) {
	if _, ref := d.LookUp(ctx, t, netip.Addr{}, false); ref != nil {
		return nil, 0, ref
	}
	if addr, _ := egress.ParseHost(t.Host); addr.IsValid() {
		t.Host = addr.Unmap().String()
	}
	return d.Through(ctx, t, proxy, in)
}

// Through connects to a target through an upstream proxy, within Connect and as long
// as ctx lasts. What the target sent already is buffered in in, which reads from the
// connection. The latency is that of connection and handshake, without the lookup.
func (d *Dialer) Through(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint, in *http1.Reader) (
	*net.TCPConn, time.Duration, *refusal.Refusal) {
	addrs, ref := d.LookUp(ctx, hostport.Target{Host: proxy.Host, Port: proxy.Port}, netip.Addr{}, proxy.Trusted)
	if ref != nil {
		return nil, 0, lookupOfUpstreamFailed(ref)
	}
	began := monotime.Now()
	ctx, cancel := context.WithTimeout(ctx, d.Connect)
	defer cancel()
	var tcp *net.TCPConn
	for _, addr := range addrs {
		// The exit is an address of the upstream proxy, so it cannot be bound here.
		if tcp, ref = d.Dial(ctx, addr, netip.Addr{}); ref == nil {
			break
		}
	}
	if ref != nil {
		return nil, monotime.Now() - began, dialOfUpstreamFailed(ref)
	}
	_ = tcp.SetReadBuffer(receiveBuffer)
	stop := context.AfterFunc(ctx, func() { _ = tcp.SetDeadline(past) })
	ref = d.handshake(ctx, tcp, in, t, proxy)
	if !stop() && (ref == nil || ref == refusal.UpstreamClosed) {
		ref = refusal.UpstreamTimeout
	}
	if ref != nil {
		_ = tcp.Close()
		in.Free()
		return nil, monotime.Now() - began, ref
	}
	return tcp, monotime.Now() - began, nil
}

// handshake requests a tunnel in the upstream proxy's protocol.
func (d *Dialer) handshake(ctx context.Context, tcp *net.TCPConn, in *http1.Reader, t hostport.Target,
	proxy *procurement.Endpoint) *refusal.Refusal {
	in.Reset(tcp)
	if proxy.Protocol == session.SOCKS5 {
		return refusal.FromSOCKS(socks5.Connect(tcp, t, proxy.User, proxy.Password))
	}
	if _, err := tcp.Write(http1.AppendConnect(nil, t, proxy.User, proxy.Password)); err != nil {
		return refusal.UpstreamClosed
	}
	a, err := http1.ReadAnswer(in)
	bad, isMalformed := errors.AsType[*http1.Error](err)
	switch {
	case isMalformed:
		return refusal.UpstreamMalformed.Note(bad.Reason)
	case err != nil:
		return refusal.UpstreamClosed
	case a.Open():
		return nil
	}
	_ = tcp.SetReadDeadline(time.Now().Add(bodyGrace))
	if ctx.Err() != nil { // SetReadDeadline may have replaced the deadline of an interruption
		return refusal.UpstreamClosed
	}
	body, truncated := a.Beginning(in, refusal.MaxBody)
	return refusal.FromAnswer(&a, body, truncated, proxy, d.Now())
}

// lookupOfUpstreamFailed returns the refusal that the failed lookup of an upstream's
// name means.
func lookupOfUpstreamFailed(ref *refusal.Refusal) *refusal.Refusal {
	switch {
	case ref == refusal.NameTimeout:
		return refusal.UpstreamTimeout
	case ref.Code == refusal.CodeTargetRefused:
		return refusal.UpstreamForbidden
	}
	return refusal.UpstreamUnreachable
}

// dialOfUpstreamFailed returns the refusal that a failed connection to an upstream
// means.
func dialOfUpstreamFailed(ref *refusal.Refusal) *refusal.Refusal {
	switch ref {
	case refusal.ConnectTimeout:
		return refusal.UpstreamTimeout
	case refusal.OutOfSockets:
		return ref
	}
	return refusal.UpstreamUnreachable
}
