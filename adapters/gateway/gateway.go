// Package gateway is the forward proxy through which agents send their traffic: HTTP
// and SOCKS5 on one port, detected by the first byte. It authenticates by the
// session's derived password, dials from the session's exit, and meters what passes
// against leases that the core grants.
//
// A connection passes these files and packages in this order:
//
//	listener.go            accept, first byte
//	connect.go, socks.go   a tunnel by CONNECT or SOCKS5
//	forward.go             plain requests, each an exchange (exchange.go)
//	auth.go, route/        the credential and the state of the session
//	lease/                 a place and traffic in the session's pool
//	reach.go, dial/        the checked address of the target, or an upstream proxy
//	relay/                 the bytes of a tunnel
//	refusal/, observe.go   the answer and the event if a step fails
//
// client/ represents connections and interrupts them, http1/ and socks5/ parse and
// write the protocols.
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

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/lease"
	"agentproxy/adapters/gateway/monotime"
	"agentproxy/adapters/gateway/quota"
	"agentproxy/adapters/gateway/relay"
	"agentproxy/adapters/gateway/route"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
)

// Gateway is the forward proxy. Start makes it serve and Stop ends it; it cannot be
// started again.
type Gateway struct {
	cfg      Config
	observer Observer
	now      func() time.Time
	log      *slog.Logger
	deps     Deps

	leases   *lease.Renewer
	routes   *route.Cache
	failures *route.AuthFailures
	dialer   *dial.Dialer
	relay    *relay.Relay
	targets  *idleTargets
	metrics  *metrics
	conns    client.Registry
	table    *conns.Table // the same connections, by what may be closed for new ones
	agents   *quota.Agents
	rates    *quota.Targets
	denied   *deniedNames

	listener *net.TCPListener

	stopping  atomic.Bool
	accepting sync.WaitGroup
	serving   sync.WaitGroup // goroutines of connections
	loops     sync.WaitGroup // background loops

	ctx        context.Context // of what is done for connections
	cancel     context.CancelFunc
	cancelLoop context.CancelFunc

	requests       atomic.Int64
	warnedCore     atomic.Int64 // last warning about the core, by monotime
	warnedUpstream atomic.Int64 // last warning about an upstream's address, by monotime
	madeRoom       atomic.Int64 // last search for quiet tunnels, by monotime
}

// New returns a gateway that does not serve yet.
func New(cfg Config, deps Deps) *Gateway {
	cfg, deps = cfg.withDefaults(), deps.withDefaults()
	t := cfg.Timing
	g := &Gateway{cfg: cfg, deps: deps, observer: deps.Observer, now: deps.Now, log: deps.Log}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.table = conns.New(conns.Config{Name: "gateway", Limit: cfg.Connections, PerAddress: cfg.PerAddress,
		MakeRoom: g.makeRoom})
	g.agents, g.rates, g.denied = quota.NewAgents(), quota.NewTargets(), newDeniedNames()
	g.metrics = newMetrics(g)
	leases := lease.Config{Replica: cfg.Replica, Report: t.Report, Heartbeat: t.Heartbeat, IdleGive: t.IdleGive,
		StopAfter: t.StopAfter, Call: t.Call}
	ended := func(id string, v lease.Verdict) { g.routes.Ended(id, v) } // routes is set below
	g.leases = lease.NewRenewer(deps.Leases, leases, g.metrics.bytes, ended, g.log)
	g.routes = route.NewCache(deps.Routes, deps.Workers, g.leases, cfg.Sessions, t.Call, g.now)
	g.failures = route.NewAuthFailures(cfg.AuthFailureLimit)
	g.dialer = &dial.Dialer{AddressPolicy: deps.AddressPolicy, Resolver: deps.Resolver, Resolve: t.Resolve,
		Connect: t.Connect, Now: g.now,
		Public: dial.NewPublic(cfg.Public), Roots: cfg.ProxyRoots}
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
			g.rates.Trim(g.now())
			g.denied.trim(now)
			g.targets.trim(now, g.table.NearlyFull())
		}
	}
}

// Changed notifies the gateway that a commit touched a session; "" means that any
// session may have changed. The next connection reads the new state, and open
// tunnels of a session that has ended are cut soon after. It does not block.
func (g *Gateway) Changed(sessionID string) { g.routes.Changed(sessionID) }

// Probe requests the caller's address from the service's own echo (Config.EchoURL,
// or PublicEchoURL through an upstream proxy), from the first exit of a route. It is
// not metered. The error names the step that failed.
func (g *Gateway) Probe(ctx context.Context, r traffic.Route) (dial.Result, error) {
	echo, proxy := g.cfg.EchoURL, dial.Upstream(&r, 0)
	if proxy != nil {
		echo = g.cfg.PublicEchoURL
	}
	var exit session.Exit
	if len(r.Exits) > 0 {
		exit = r.Exits[0]
	}
	return g.dialer.Probe(ctx, echo, exit.IP, proxy)
}

// Addr returns where the gateway listens; nil before Start.
func (g *Gateway) Addr() net.Addr {
	if g.listener == nil {
		return nil
	}
	return g.listener.Addr()
}

// Stats is a snapshot of the gateway's counters.
type Stats struct {
	Connections int   // of clients, tunnels included
	Tunnels     int64 // open
	Requests    int64 // plain HTTP, answered by a target
	Bytes       int64 // metered and reported to the core
	LeaseWaits  int64 // times that a connection waited for a lease
	Pipes       int   // of the relay
}

// Stats returns the current counters.
func (g *Gateway) Stats() Stats {
	return Stats{
		Connections: g.conns.Len(),
		Tunnels:     g.relay.Open(),
		Requests:    g.requests.Load(),
		Bytes:       g.leases.Bytes(),
		LeaseWaits:  g.leases.Waits(),
		Pipes:       g.relay.Pipes(),
	}
}
