package ports

import (
	"context"
	"time"

	"agentproxy/domain/procurement"
)

// UsageCount is the last comparison of a provider's counters with what was charged.
type UsageCount struct {
	Provider string
	At       time.Time
	Products []procurement.Counted
}

// Uncharged returns the bytes of all products that no agent is charged for.
func (c UsageCount) Uncharged() (n int64) {
	for _, p := range c.Products {
		n += p.Uncharged()
	}
	return n
}

// UsageCounts keeps the last UsageCount of each provider.
type UsageCounts interface {
	// Put replaces that of the provider.
	Put(ctx context.Context, c UsageCount) error
	// All returns them by provider.
	All(ctx context.Context) (map[string]UsageCount, error)
}
