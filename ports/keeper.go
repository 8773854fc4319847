package ports

import "context"

// Keeper is a provider with work of its own to repeat. Every replica calls it: what it keeps
// is in memory.
type Keeper interface {
	Provider
	// Keep does what is due. It may run for minutes; an error changes nothing.
	Keep(ctx context.Context) error
	// Stock counts what the provider has by state, for the operator.
	Stock() map[string]int
}
