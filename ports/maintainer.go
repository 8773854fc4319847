package ports

import "context"

// Maintainer is a provider with work of its own to repeat. Every replica calls it: what it keeps
// is in memory.
type Maintainer interface {
	Provider
	// Maintain does what is due. It may run for minutes; an error changes nothing.
	Maintain(ctx context.Context) error
	// Stock counts what the provider has by state, for the operator.
	Stock() map[string]int
}
