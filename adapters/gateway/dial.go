package gateway

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"agentproxy/adapters/gateway/hostport"
	"agentproxy/adapters/gateway/refusal"
)

// dialing is a dial under way. The sweeper and interruptions cancel it: that
// costs less than two timers for each dial, which hardly any needs.
type dialing struct {
	until  time.Duration // by mono
	cancel context.CancelFunc
}

// reach judges a target and connects a client to it from an exit. The latency is
// that of the connection, without the lookup.
func (g *Gateway) reach(c *conn, t hostport.Target, exit netip.Addr) (*net.TCPConn, time.Duration, *refusal.Refusal) {
	targets, ref := g.lookUp(g.ctx, t, exit, false)
	if ref != nil {
		return nil, 0, ref
	}
	began := mono()
	for _, target := range targets {
		var tcp *net.TCPConn
		if tcp, ref = g.dialFor(c, target, exit, began+g.cfg.Timing.Connect); ref == nil {
			took := mono() - began
			g.metrics.dialled(took)
			return tcp, took, nil
		}
	}
	return nil, mono() - began, ref
}

func (g *Gateway) dialFor(c *conn, target netip.AddrPort, exit netip.Addr, until time.Duration) (*net.TCPConn, *refusal.Refusal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.dialing.Store(&dialing{until, cancel})
	defer c.dialing.Store(nil)
	if c.interrupted() {
		return nil, interruption(cause(c.cause.Load()))
	}
	tcp, ref := g.dial(ctx, target, exit)
	if ref != nil && c.interrupted() {
		ref = interruption(cause(c.cause.Load()))
	}
	return tcp, ref
}

// dial connects to a judged address from an exit.
func (g *Gateway) dial(ctx context.Context, target netip.AddrPort, exit netip.Addr) (*net.TCPConn, *refusal.Refusal) {
	from, ok := bindTo(exit, target.Addr())
	if !ok {
		return nil, refusal.Unreachable
	}
	d := net.Dialer{KeepAlive: -1}
	var local netip.AddrPort
	if from.IsValid() {
		local = netip.AddrPortFrom(from, 0)
		d.ControlContext = lateBind
	}
	tcp, err := d.DialTCP(ctx, "tcp", local, target)
	if err != nil {
		return nil, dialFailed(err)
	}
	return tcp, nil
}

// bindTo says which local address reaches a target from an exit; none when it is
// the host's default one. Exits on loopback are those of a laptop: they are only
// shown to targets on loopback.
func bindTo(exit, target netip.Addr) (netip.Addr, bool) {
	switch {
	case !exit.IsValid():
		return netip.Addr{}, true
	case exit.IsLoopback() && (!target.IsLoopback() || exit.Is4() != target.Is4()):
		return netip.Addr{}, true
	case exit.Is4() != target.Is4():
		return netip.Addr{}, false
	}
	return exit, true
}

func dialFailed(err error) *refusal.Refusal {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return refusal.ConnectionRefused
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.Is(err, syscall.EADDRINUSE),
		errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS):
		return refusal.OutOfSockets
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return refusal.ConnectTimeout
	case errors.Is(err, syscall.ECONNRESET):
		return refusal.ConnectionReset
	}
	return refusal.Unreachable
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
