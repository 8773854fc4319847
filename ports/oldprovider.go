package ports

import (
	"context"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// Refusals of a provider. A timeout is a third outcome: ErrTimeout says that
// provably nothing was bought, ErrAmbiguous that nobody knows yet.
var (
	ErrProvider = &domain.Error{Kind: domain.BadGateway, Code: "PROVIDER_ERROR", Retryable: true,
		Message: "the upstream failed and nothing was bought; try again"}
	ErrTimeout = &domain.Error{Kind: domain.UpstreamTimeout, Code: "PROVIDER_TIMEOUT", Retryable: true,
		Message: "the upstream did not answer and nothing was bought; try again"}
	ErrAmbiguous = &domain.Error{Kind: domain.UpstreamTimeout, Code: "PROVIDER_AMBIGUOUS", Retryable: true,
		Message: "the outcome of the upstream is not known yet"}
)

// OldOrder asks a provider for the exits of one session.
type OldOrder struct {
	Ref      string // the session id: an order of a known Ref is answered as before
	Product  catalog.Product
	Quantity int // IPs; 1 for a dynamic session
	Days     int
	Location session.Location
	// Taken are the provider's static addresses that live sessions own.
	Taken map[string]bool
}

// OldProvider sells exits.
type OldProvider interface {
	// Name is how sessions and products refer to it.
	Name() string
	// Products lists what it sells. It does no IO.
	Products() []catalog.Product
	// Local reports that the provider does no IO, so that it is called inside
	// the unit of work; else it is called between two.
	Local() bool
	// Provision delivers the exits of an order: one for a dynamic session,
	// Quantity different ones for a static one, none of them Taken. It refuses
	// with catalog.ErrOutOfStock, ErrProvider, ErrTimeout or ErrAmbiguous.
	Provision(ctx context.Context, o OldOrder) ([]session.Exit, error)
	// Rotate gives a dynamic session another exit than the current one, else
	// catalog.ErrOutOfStock.
	Rotate(ctx context.Context, o OldOrder, current session.Exit) (session.Exit, error)
	// Extend renews a static session for more days.
	Extend(ctx context.Context, o OldOrder, until time.Time) error
	// Release gives up what an order delivered. Repeating it is no error.
	Release(ctx context.Context, ref string) error
}
