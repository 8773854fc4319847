package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

// Static sells addresses for a time.
type Static interface {
	Provider
	// Renew extends all addresses of an order by the term of the intent, whose Key
	// names this renewal. The result has the outcome for each address. An
	// error means that nothing was extended, unless it is Ambiguous.
	Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error)
}
