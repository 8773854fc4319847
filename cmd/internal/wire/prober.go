package wire

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"

	"agentproxy/adapters/gateway"
	"agentproxy/app/exitgate"
	"agentproxy/app/metering"
	"agentproxy/app/ordering"
	"agentproxy/app/throttle"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// prober opens connections through the gateway's dialler.
type prober struct {
	gateway *gateway.Gateway
	traffic *metering.Service
	workers *workers.Service
	log     *slog.Logger
}

func newProber(g *gateway.Gateway, t *metering.Service, w *workers.Service, log *slog.Logger) ports.Prober {
	return prober{g, t, w, log}
}

// route returns the way of an exit, and the country that a worker's exit was sold as.
func (p prober) route(ctx context.Context, of exit.Ref) (r traffic.Route, country string, err error) {
	if of.Worker == "" {
		r, err = p.traffic.Route(ctx, of.SessionID)
		switch i := of.Index; {
		case err != nil || i == 0:
		case i >= len(r.Exits) || r.Upstreams != nil && i >= len(r.Upstreams):
			err = ports.ErrProvider.Msgf("the session has no such address any more")
		default:
			if r.Exits = r.Exits[i:]; r.Upstreams != nil {
				r.Upstreams = r.Upstreams[i:]
			}
		}
		return r, "", err
	}
	w, err := p.workers.Worker(ctx, of.SessionID, worker.Parameters{Name: of.Worker})
	switch {
	case errors.Is(err, worker.ErrParameter):
		return r, "", domain.InvalidField("worker", "cannot be made: the exits of this session support no workers")
	case errors.Is(err, worker.ErrExitLost):
		return r, "", ports.ErrProvider.Msgf("the exit of this worker is gone; rotate the worker and try again")
	}
	r.Exits = []session.Exit{w.Worker.Exit}
	if w.Upstream != nil {
		r.Upstreams = []procurement.Endpoint{*w.Upstream}
	}
	return r, w.Worker.Location.Country, err
}

// exitProber opens connections from addresses of this host by the gateway's dialler.
type exitProber struct{ gateway *gateway.Gateway }

// ProbeExit calls the service's echo from an address.
func (p exitProber) ProbeExit(ctx context.Context, from netip.Addr) (netip.Addr, error) {
	r, err := p.gateway.Probe(ctx, traffic.Route{Exits: []session.Exit{{IP: from}}})
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(r.ExitIP)
}

// ProbeThrough calls the service's echo through a proxy.
func (p exitProber) ProbeThrough(ctx context.Context, proxy procurement.Endpoint) (netip.Addr, error) {
	r, err := p.gateway.Probe(ctx, traffic.Route{Exits: []session.Exit{{}}, Upstreams: []procurement.Endpoint{proxy}})
	if err != nil {
		return netip.Addr{}, err
	}
	return netip.ParseAddr(r.ExitIP)
}

// holdExits lets the gate hold exits to the rules of sessions.
func holdExits(g *gateway.Gateway, facts ports.ExitFacts, clock ports.Clock, limits *throttle.Limits,
	d *ordering.Driver, w *workers.Service) {
	gate := exitgate.New(exitProber{g}, facts, clock)
	gate.Limit = limits.TakeExit
	d.Gate, w.Gate = gate, gate
}

// Probe calls the service's echo through an exit.
func (p prober) Probe(ctx context.Context, of exit.Ref) (ports.Probe, error) {
	route, country, err := p.route(ctx, of)
	if err != nil {
		return ports.Probe{}, err
	}
	r, err := p.gateway.Probe(ctx, route)
	if err != nil {
		if ctx.Err() != nil {
			return ports.Probe{}, ports.ErrTimeout
		}
		p.log.Debug("an exit did not reach the echo", "session_id", of.SessionID, "worker", of.Worker, "err", err)
		failed := ports.Probe{Unreachable: p.gateway.Echoes(ctx, route.Upstreams != nil) == nil}
		return failed, ports.ErrProvider.Msgf("the exit did not reach the service's echo; rotate and try again")
	}
	return ports.Probe{ExitIP: r.ExitIP, DeclaredCountry: country, Latency: r.Latency}, nil
}
