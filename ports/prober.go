package ports

import (
	"context"
	"time"
)

// Prober opens one connection through a session's exit to the service's own
// echo.
type Prober interface {
	// Probe is PROVIDER_ERROR or PROVIDER_TIMEOUT when the exit does not work.
	Probe(ctx context.Context, sessionID string) (Probe, error)
}

// Probe is what the echo saw.
type Probe struct {
	ExitIP  string
	Latency time.Duration
}
