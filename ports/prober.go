package ports

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
)

// Prober opens one connection through the exit of a session, or of a worker of it, to the service's
// own echo.
type Prober interface {
	// Probe sends a request through the exit of a session, of which there may be no such address any more. It fails
	// with PROVIDER_ERROR or PROVIDER_TIMEOUT if the exit does not work. It makes a worker that does not exist yet.
	// With an error, Unreachable of the result is set if the echo answers otherwise, so that the exit is the cause.
	Probe(ctx context.Context, of exit.Ref) (Probe, error)
}

// ExitProber opens one connection to the service's own echo.
type ExitProber interface {
	// ProbeExit returns the address that the echo reports of connections from an address of this host.
	ProbeExit(ctx context.Context, from netip.Addr) (netip.Addr, error)
	// ProbeThrough returns the address that the echo reports of connections through a proxy.
	ProbeThrough(ctx context.Context, proxy procurement.Endpoint) (netip.Addr, error)
}

// Probe is the result of a request to the echo service.
type Probe struct {
	ExitIP string
	// DeclaredCountry is the country that the exit of the worker was sold as; empty: the session's.
	DeclaredCountry string
	Latency         time.Duration
	Unreachable     bool
}
