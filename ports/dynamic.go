package ports

import (
	"context"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Dynamic sells traffic through exits that change.
type Dynamic interface {
	Provider
	// Disable stops an access for good and keeps its counter, so that what passed
	// through it can still be read by Usage and charged when a direct session ends.
	// Repeating it changes nothing. It fails with Unsupported where the access has no
	// credential of its own.
	Disable(ctx context.Context, ref string) error
	// Usage returns what passed through an access since it was created. What passed up to
	// Capabilities.CounterLag before AsOf may be missing.
	Usage(ctx context.Context, ref string) (procurement.Usage, error)
	// Endpoint returns the proxy of an exit. It does no IO: the same arguments give the
	// same endpoint, another Token and Turn another one. It fails with Invalid if the place or
	// the time cannot be requested.
	Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error)
	// NewExit returns the exit after the current one, or fails with OutOfStock. It does no IO.
	// The zero Exit means that the next Token is the next exit.
	NewExit(in procurement.Intent, current session.Exit) (session.Exit, error)
}
