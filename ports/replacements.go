package ports

import (
	"context"
	"time"

	"agentproxy/domain/replacement"
)

// Replacements keeps the addresses of static sessions that agents gave back, or asked to.
type Replacements interface {
	// Put stores a replacement, in place of the one with its id.
	Put(ctx context.Context, r replacement.Replacement) error
	// Of lists the replacements of a session, oldest first.
	Of(ctx context.Context, sessionID string) ([]replacement.Replacement, error)
	// OfOrder returns the replacement that an order was made for, and whether there is one.
	OfOrder(ctx context.Context, orderID string) (replacement.Replacement, bool, error)
	// GivenBack lists, as text, the addresses that an agent gave back since a time.
	GivenBack(ctx context.Context, agentID string, since time.Time) ([]string, error)
	// Counts sums the replacements by source and country, in this order.
	Counts(ctx context.Context) ([]replacement.Count, error)
}
