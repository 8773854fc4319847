package ports

import (
	"context"
	"time"
)

// Prober opens one connection through the exit of a session, or of a worker of it, to the service's
// own echo.
type Prober interface {
	// Probe is PROVIDER_ERROR or PROVIDER_TIMEOUT when the exit does not work. A worker that is not
	// there yet is made; an empty name is the session's own exit.
	Probe(ctx context.Context, sessionID, worker string) (Probe, error)
}

// Probe is what the echo saw.
type Probe struct {
	ExitIP  string
	Country string // of the worker; empty: the session's
	Latency time.Duration
}
