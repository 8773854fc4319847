package ports

import (
	"context"
	"time"
)

// Prober opens one connection through the exit of a session, or of a worker of it, to the service's
// own echo.
type Prober interface {
	// Probe sends a request through the exit. It fails with PROVIDER_ERROR or PROVIDER_TIMEOUT if
	// the exit does not work. It makes a worker that does not exist yet; an empty name is the
	// session's own exit.
	Probe(ctx context.Context, sessionID, worker string) (Probe, error)
}

// Probe is the result of a request to the echo service.
type Probe struct {
	ExitIP string
	// DeclaredCountry is the country that the exit of the worker was sold as; empty: the session's.
	DeclaredCountry string
	Latency         time.Duration
}
