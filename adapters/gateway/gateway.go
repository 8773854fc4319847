// Package gateway is the forward proxy through which agents send their traffic: HTTP
// and SOCKS5 on one port, detected by the first byte. It authenticates by the
// session's derived password, dials from the session's exit, and meters what passes
// against leases that the core grants.
//
// A connection passes these files and packages in this order:
//
//	listener.go            accept, first byte
//	tls.go, secure/        TLS, and inside it the same again
//	http2.go, h2/          streams of HTTP/2, each like a connection of HTTP/1.1
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
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"agentproxy/adapters/conns"
	"agentproxy/adapters/gateway/client"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/gateway/h2"
	"agentproxy/adapters/gateway/lease"
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
	tls      *tls.Config // nil: there is no certificate
	h2       *h2.Server
	conns    client.Registry
	table    *conns.Table // the same connections, by what may be closed for new ones
	agents   *quota.Agents
	starts   *quota.Starts
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
	lastOpened     atomic.Int64 // a connection to a target, by monotime
	warnedScarce   atomic.Int64 // last warning that places are scarce, by monotime
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

// Echoes asks the echo that Probe asks, of exits at upstream proxies or of addresses of this host, without an exit: if
// it answers, an exit that did not reach it is the cause.
func (g *Gateway) Echoes(ctx context.Context, upstream bool) error {
	echo := g.cfg.EchoURL
	if upstream {
		echo = g.cfg.PublicEchoURL
	}
	_, err := g.dialer.Probe(ctx, echo, netip.Addr{}, nil)
	return err
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
