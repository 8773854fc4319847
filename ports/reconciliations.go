package ports

import (
	"context"
	"time"
)

// Reconciliation is what the last complete comparison of a provider's list with the
// orders of the service found.
type Reconciliation struct {
	Provider string
	At       time.Time
	Listed   int // what the provider has
	Orphans  int // what of it no order is known for
}

// Reconciliations keeps the last Reconciliation of each provider.
type Reconciliations interface {
	// Put replaces that of the provider.
	Put(ctx context.Context, r Reconciliation) error
	// All returns them by provider.
	All(ctx context.Context) (map[string]Reconciliation, error)
}
