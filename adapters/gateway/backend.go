package gateway

import (
	"context"
	"net/netip"

	"agentproxy/domain/traffic"
)

// Backend is what the gateway asks of the core; *app.Traffic is the real one.
type Backend interface {
	// Route answers what is needed to carry a session's traffic. A *domain.Error
	// of Kind NotFound stands for unknown ids and for sessions that ended more
	// than 30 days ago.
	Route(ctx context.Context, sessionID string) (traffic.Route, error)
	// RotateDue performs a timed rotation that is due and returns the route
	// after it; when another replica was first, that route.
	RotateDue(ctx context.Context, sessionID string) (traffic.Route, error)
	// Renew reports use and asks for leases, for many sessions in one unit of
	// work. Counters are cumulative: repeating a call after an error counts
	// nothing twice. The grants are in any order, one for each ask.
	Renew(ctx context.Context, replica string, asks []traffic.Ask) ([]traffic.Grant, error)
	// Observe hands over what was seen; it never blocks.
	Observe(traffic.Observation)
}

// Judge decides whether an address may be dialled; egress.Policy is the real
// one. A refusal is a *domain.Error.
type Judge interface {
	Judge(netip.AddrPort) error
}

// Resolver turns names into addresses; *net.Resolver is the real one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}
