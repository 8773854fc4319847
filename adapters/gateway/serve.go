package gateway

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/h2"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/quota"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/route"
	"agentproxy/adapters/gateway/secure"
)

// New returns a gateway that does not serve yet.
func New(cfg Config, deps Deps) *Gateway {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	t := cfg.Timing
	g := &Gateway{cfg: cfg, deps: deps, observer: deps.Observer, now: deps.Now, log: deps.Log}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.table = conns.New(conns.Config{Name: "gateway", Limit: cfg.Connections, PerAddress: cfg.PerAddress,
		Exempt: cfg.Balancers, MakeRoom: func() bool { return g.agents.Closing() }})
	g.agents = quota.NewAgents(max(cfg.Connections-handshakePlaces(cfg.Connections), 0), cfg.TrialPlaces)
	g.starts, g.rates, g.denied = quota.NewStarts(), quota.NewTargets(), newDeniedNames()
	g.metrics = newMetrics(g)
	if cfg.TLS != nil {
		g.tls, g.h2 = secure.Config(cfg.TLS), h2.NewServer()
		g.ticketKeys()
	}
	leases := lease.Config{Replica: cfg.Replica, Report: t.Report, Heartbeat: t.Heartbeat, IdleGive: t.IdleGive,
		StopAfter: t.StopAfter, Fold: t.Fold, Call: t.Call}
	ended := func(id string, v lease.Verdict) { g.routes.Ended(id, v) } // routes is set below
	g.leases = lease.NewRenewer(deps.Leases, leases, g.metrics.bytes, ended, g.log)
	g.routes = route.NewCache(deps.Routes, deps.Workers, g.leases, cfg.Sessions, t.Call, g.now)
	g.failures = route.NewAuthFailures(cfg.AuthFailureLimit)
	g.dialer = &dial.Dialer{AddressPolicy: deps.AddressPolicy, Resolver: deps.Resolver, Resolve: t.Resolve,
		Connect: t.Connect, Now: g.now, SingleLabels: cfg.SingleLabels,
		Public: dial.NewPublic(cfg.Public), Roots: cfg.ProxyRoots, EchoTLS: cfg.EchoTLS}
	g.relay = relay.New(relay.Config{Pipes: cfg.Pipes, Idle: t.Idle, HalfClosed: t.HalfClosed,
		Loops: g.leadsBack, Goroutines: &g.serving, Ended: g.tunnelEnded, Panicked: g.panicked})
	g.targets = newIdleTargets(t.Upstream)
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
	if g.deps.Metrics != nil {
		if err := g.deps.Metrics.Register(g.metrics); err != nil {
			_ = l.Close()
			return fmt.Errorf("gateway: register metrics: %w", err)
		}
	}
	g.listener = l.(*net.TCPListener)
	addr := g.listener.Addr().(*net.TCPAddr).AddrPort()
	own := netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	g.dialer.Own = append([]netip.AddrPort{own}, g.cfg.Forbidden...)
	loops, cancel := context.WithCancel(context.Background())
	g.cancelLoop = cancel
	g.loops.Go(func() { g.leases.Run(loops) })
	g.loops.Go(func() { g.routes.Run(loops) })
	g.loops.Go(func() { g.sweep(loops) })
	g.loops.Go(func() { g.resolveOwn(loops) })
	g.accepting.Go(g.accept)
	g.log.Info("gateway listens", "addr", addr.String())
	return nil
}

// Stop accepts no more connections, lets open tunnels finish for Timing.Drain or
// until ctx ends, closes the rest, and returns all leases.
func (g *Gateway) Stop(ctx context.Context) error {
	g.stopping.Store(true)
	if g.listener == nil {
		g.cancel()
		return nil
	}
	_ = g.listener.Close()
	g.accepting.Wait()
	g.conns.InterruptIdle()
	if g.h2 != nil {
		g.h2.Shutdown()
	}
	g.drain(ctx)
	g.cancelLoop()
	g.loops.Wait()
	g.targets.close()
	g.relay.Close()
	// The leases are returned even if ctx has ended: otherwise the rest of them would
	// be unavailable to the session until the core reclaims them.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.cfg.Timing.Call)
	defer cancel()
	g.leases.Close(closing)
	if g.deps.Metrics != nil {
		g.deps.Metrics.Unregister(g.metrics)
	}
	return nil
}

// drain waits for the connections to end and interrupts those that do not.
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
	g.conns.InterruptAll(client.Stopped)
	g.cancel() // ends lookups and connection attempts
	<-drained
}

// sweep enforces the time limits of all connections until ctx ends.
func (g *Gateway) sweep(ctx context.Context) {
	t := g.cfg.Timing
	least := min(t.Header, t.Idle, t.HalfClosed, t.Keep, t.Linger, t.Connect, 8*time.Second)
	ticker := time.NewTicker(max(least/8, time.Millisecond))
	defer ticker.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := monotime.Now()
		g.conns.Sweep(now, g.now())
		g.recheckOpen()
		if n%10 == 0 {
			g.relay.Trim()
			g.warnScarce()
			g.starts.Trim(g.now())
			g.rates.Trim(g.now())
			g.ticketKeys()
			g.denied.trim(now)
			g.targets.trim(now, g.table.NearlyFull())
		}
	}
}
