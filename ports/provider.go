package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

// Provider sells proxies: traffic (Dynamic), addresses (Static) or both. Its
// errors are *procurement.Error; any other is Ambiguous. It holds no state that an
// order depends on, so any replica may go on with what another began.
type Provider interface {
	// Name returns the name by which products, orders and sessions refer to the provider.
	Name() string
	Capabilities() procurement.Capabilities
	// Ready returns false while calls are withheld, because they failed repeatedly.
	Ready() bool
	// Offers lists what it sells and has at the moment. A provider without such a
	// list returns none.
	Offers(ctx context.Context) ([]procurement.Offer, error)
	// Balance returns the operator's balance at the provider.
	Balance(ctx context.Context) (procurement.ProviderBalance, error)
	// Quote returns what an order would cost, and whether it can be delivered. It buys
	// nothing. One that cannot determine it returns a zero cost and procurement.StockUnknown.
	Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error)
	// Order buys, by one request that is sent once. Automatic renewal is off. It
	// is Ambiguous whenever the request may have been executed: the answer did not
	// come, is a server error, or cannot be understood. Where the provider is
	// Idempotent, a repeated order of one Key is answered as before.
	Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error)
	// Find lists what may be the order of an intent: where the provider KeepsOrderKey what has its Key, else the newest
	// orders of its product. An empty list is not an error.
	Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error)
	// Read returns the state of an order; NotFound when there is no such order.
	// Reading a second time gives the same, as long as nothing happens there.
	Read(ctx context.Context, ref string) (procurement.Delivery, error)
	// Cancel gives an order up, so that it cannot be used and costs no more.
	// Repeating it, or cancelling what is not there, is not an error. Unsupported
	// where an order runs to its end.
	Cancel(ctx context.Context, ref string) error
}
