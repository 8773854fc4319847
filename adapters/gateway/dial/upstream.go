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
	case len(r.Upstreams) == 0:
		return nil
	case exit < len(r.Upstreams):
		return &r.Upstreams[exit]
	}
	return &unknownProxy
}

// Resolution is what an upstream proxy is asked for when a target is a name.
type Resolution uint8

// The resolutions.
const (
	// Automatic is Here if the proxy has an address that is not public, else Name: the
	// operator's own proxy reaches what the name means in the operator's network.
	Automatic Resolution = iota
	Here                 // a checked address
	Name                 // the name
)

// ThroughChecked checks a target and connects to it through an upstream proxy, after all of its
// addresses were checked. An address is sent in the form in which it was checked; how decides
// whether a name or one of its addresses is sent on.
func (d *Dialer) ThroughChecked(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint, how Resolution,
	policy Policy, in *http1.Reader) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	checked, ref := d.LookUp(ctx, t, netip.Addr{}, false, policy)
	if ref != nil {
		return nil, 0, ref
	}
	addrs, ref := d.lookUpProxy(ctx, proxy)
	if ref != nil {
		return nil, 0, ref
	}
	addr, _ := egress.ParseHost(t.Host)
	if addr.IsValid() || how == Here || how == Automatic && !isPublic(addrs) {
		target := preferred(checked)
		checked, t.Host = []netip.AddrPort{netip.AddrPortFrom(target, t.Port)}, target.String()
	}
	for _, a := range checked { // of a name the proxy may take any
		if ref := policy.Attempt(a.Addr()); ref != nil {
			return nil, 0, ref
		}
	}
	return d.through(ctx, t, proxy, addrs, in)
}

// preferred returns the first IPv4 address, or the first address if there is none: a proxy
// may lack IPv6.
func preferred(checked []netip.AddrPort) netip.Addr {
	for _, a := range checked {
		if a.Addr().Is4() {
			return a.Addr()
		}
	}
	return checked[0].Addr()
}

// isPublic reports whether all addresses are reachable from the internet.
func isPublic(addrs []netip.AddrPort) bool {
	for _, a := range addrs {
		if (egress.Policy{}).Check(netip.AddrPortFrom(a.Addr(), 443)) != nil {
			return false
		}
	}
	return true
}

// Through connects to a target through an upstream proxy, within Connect and as long
// as ctx lasts. What the target sent already is buffered in in, which reads from the
// connection. The latency is that of connection and handshake, without the lookup.
func (d *Dialer) Through(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint, in *http1.Reader) (
	*net.TCPConn, time.Duration, *refusal.Refusal) {
	addrs, ref := d.lookUpProxy(ctx, proxy)
	if ref != nil {
		return nil, 0, ref
	}
	return d.through(ctx, t, proxy, addrs, in)
}

// lookUpProxy returns the addresses of an upstream proxy.
func (d *Dialer) lookUpProxy(ctx context.Context, proxy *procurement.Endpoint) ([]netip.AddrPort, *refusal.Refusal) {
	addrs, ref := d.LookUp(ctx, hostport.Target{Host: proxy.Host, Port: proxy.Port}, netip.Addr{}, proxy.Trusted, nil)
	if ref != nil {
		return nil, lookupOfUpstreamFailed(ref)
	}
	return addrs, nil
}

// through is like Through with the addresses of the proxy.
func (d *Dialer) through(ctx context.Context, t hostport.Target, proxy *procurement.Endpoint, addrs []netip.AddrPort,
	in *http1.Reader) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	var ref *refusal.Refusal
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
	if proxy.TLS {
		if tcp, ref = d.secured(ctx, tcp, proxy.Host); ref != nil {
			return nil, monotime.Now() - began, ref
		}
		_ = tcp.SetReadBuffer(receiveBuffer)
	}
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
