package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

// Lister is a provider that can list all orders of the account there, of any buyer.
type Lister interface {
	Provider
	// List returns every order that has not ended, once, with the Ref that Order returned
	// for it, and with its Label where the provider keeps one. Addresses that the provider
	// lists without their order are listed one by one, with the address. It changes
	// nothing. A list that is longer than is read is an error, because a part of it would
	// look like the whole.
	List(ctx context.Context) ([]procurement.Delivery, error)
}
