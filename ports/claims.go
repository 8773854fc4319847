package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

// Claims records which orders have which lines of an operator's lists: what a seller's own
// database would. adapters/upstream/list alone uses it.
type Claims interface {
	// All lists the claims on the lines of a provider. In Update no other unit reads them
	// until this one ends, so that a line that is free stays so.
	All(ctx context.Context, provider string) ([]procurement.Claim, error)
	// Of lists the claims of an order, by line and seat; none is not an error.
	Of(ctx context.Context, provider, orderID string) ([]procurement.Claim, error)
	// Add stores all of them, or none and ErrDuplicate if a seat of a line is claimed.
	Add(ctx context.Context, claims []procurement.Claim) error
	// Drop gives back the claims of an order; repeating it is not an error.
	Drop(ctx context.Context, provider, orderID string) error
}
