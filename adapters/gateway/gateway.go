// Package gateway is the forward proxy that agents send their traffic through:
// HTTP and SOCKS5 on one port, told apart by the first byte. It authenticates by
// the session's derived password, dials from the session's exit, and counts what
// passes against leases that the core grants.
//
// The way of a connection: listener.go accepts, auth.go checks the credential
// and the session, target.go judges the target, dial.go connects to it or
// hop.go asks an upstream proxy to, and connect.go, socks.go or forward.go speak
// the protocol. tunnel.go and the relay
// move the bytes of a tunnel; pool.go, lease.go and renew.go account for them.
package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Gateway is the forward proxy. Start makes it serve, Stop ends it; it does not
// start twice.
type Gateway struct {
	cfg     Config
	backend Backend
	log     *slog.Logger

	renewer  *renewer
	routes   *routes
	guesses  *guesses
	pipes    *pipes
	upstream *upstreams
	refresh  *refresher
	metrics  *metrics
	conns    registry

	listener *net.TCPListener
	own      []netip.AddrPort // never dialled
	wildcard bool             // own listener on every address of this host

	stopping  atomic.Bool
	accepting sync.WaitGroup
	serving   sync.WaitGroup // goroutines of connections
	passes    sync.WaitGroup // background loops

	ctx        context.Context // of what is done for connections
	cancel     context.CancelFunc
	cancelPass context.CancelFunc

	tunnels   atomic.Int64
	requests  atomic.Int64
	warned    atomic.Int64 // last warning about the core, by mono
	warnedHop atomic.Int64 // last warning about an upstream's address, by mono
}

// New makes a gateway that does not serve yet.
func New(cfg Config, backend Backend, log *slog.Logger) *Gateway {
	cfg = cfg.withDefaults()
	g := &Gateway{cfg: cfg, backend: backend, log: log}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.renewer = newRenewer(backend, cfg, log)
	g.renewer.ended = g.ended
	g.routes = newRoutes(g.renewer, cfg.Sessions)
	g.guesses = newGuesses(cfg.GuessLimit)
	g.pipes = newPipes(cfg.Pipes)
	g.upstream = newUpstreams(cfg.Timing.Upstream)
	g.refresh = newRefresher(g.reread)
	g.metrics = newMetrics(g)
	g.renewer.metrics = g.metrics
	return g
}

// Start binds the port and serves in the background. ctx bounds the start alone.
func (g *Gateway) Start(ctx context.Context) error {
	// No keep-alive probes: a tunnel that is quiet for Timing.Idle is closed, and
	// four system calls a connection are saved.
	lc := net.ListenConfig{KeepAlive: -1}
	l, err := lc.Listen(ctx, "tcp", g.cfg.Addr)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if g.cfg.Metrics != nil {
		if err := g.cfg.Metrics.Register(g.metrics); err != nil {
			_ = l.Close()
			return fmt.Errorf("gateway: register metrics: %w", err)
		}
	}
	g.listener = l.(*net.TCPListener)
	addr := g.listener.Addr().(*net.TCPAddr).AddrPort()
	g.own = append(append(g.own, netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())), g.cfg.Forbidden...)
	g.wildcard = addr.Addr().IsUnspecified()
	passes, cancel := context.WithCancel(context.Background())
	g.cancelPass = cancel
	g.passes.Go(func() { g.renewer.run(passes) })
	g.passes.Go(func() { g.refresh.run(passes) })
	g.passes.Go(func() { g.sweep(passes) })
	g.accepting.Go(g.accept)
	g.log.Info("gateway listens", "addr", addr.String())
	return nil
}

// Stop accepts no more, lets open tunnels finish for Timing.Drain or until ctx
// ends, closes the rest, and gives all leases back.
func (g *Gateway) Stop(ctx context.Context) error {
	g.stopping.Store(true)
	if g.listener == nil {
		g.cancel()
		return nil
	}
	_ = g.listener.Close()
	g.accepting.Wait()
	g.conns.interruptIdle()
	g.drain(ctx)
	g.cancelPass()
	g.passes.Wait()
	g.upstream.close()
	g.pipes.close()
	// The leases go back even when ctx has run out: else their rest would be
	// out of the session's reach until the core takes them back.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Timing.Call)
	defer cancel()
	g.renewer.close(closing)
	if g.cfg.Metrics != nil {
		g.cfg.Metrics.Unregister(g.metrics)
	}
	return nil
}

// drain waits for the connections to end, and then sees to it.
func (g *Gateway) drain(ctx context.Context) {
	drained := make(chan struct{})
	go func() {
		g.serving.Wait()
		close(drained)
	}()
	timer := time.NewTimer(g.cfg.Timing.Drain)
	defer timer.Stop()
	select {
	case <-drained:
	case <-timer.C:
	case <-ctx.Done():
	}
	g.conns.interruptAll(stopped)
	g.cancel() // looks up and dials no more
	<-drained
}

// Addr is where the gateway listens; nil before Start.
func (g *Gateway) Addr() net.Addr {
	if g.listener == nil {
		return nil
	}
	return g.listener.Addr()
}

// Stats is a snapshot for metrics.
type Stats struct {
	Connections int   // of clients, tunnels included
	Tunnels     int64 // open
	Requests    int64 // plain HTTP, answered by a target
	Bytes       int64 // metered and reported to the core
	LeaseWaits  int64 // times that somebody waited for a lease
	Pipes       int   // held by the relay
}

// Stats reads the counters.
func (g *Gateway) Stats() Stats {
	return Stats{
		Connections: g.conns.count(),
		Tunnels:     g.tunnels.Load(),
		Requests:    g.requests.Load(),
		Bytes:       g.renewer.bytes.Load(),
		LeaseWaits:  g.renewer.starved.Load(),
		Pipes:       g.pipes.count(),
	}
}
