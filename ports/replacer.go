package ports

import (
	"context"

	"agentproxy/domain/procurement"
)

// Replacer is a Static that gives another address in place of one of an order. What it made of it is read
// with the order: the new address is there in place of the old one, at once or after a while.
type Replacer interface {
	Static
	// QuoteReplacement returns what Replace would cost, and whether there is another address to give. It changes
	// nothing. It is Unsupported for an address that is not replaced.
	QuoteReplacement(ctx context.Context, ref string, in procurement.Replacement) (procurement.Quote, error)
	// Replace asks for another address, by one request that is sent once. It is Ambiguous whenever the request may
	// have been executed; any other error means that nothing was changed. It is NotFound for an order that is not there,
	// and for an address that the order does not have; but an Idempotent provider returns nil for such an address and
	// changes nothing, because this very call may have replaced it before.
	Replace(ctx context.Context, ref string, in procurement.Replacement) error
}

// Can names what a provider is capable of, for the operator. One whose addresses are this host's own needs no call for
// another one.
func Can(p Provider) []string {
	words := p.Capabilities().Words()
	_, asked := p.(Replacer)
	if _, static := p.(Static); asked || static && p.Capabilities().InProcess {
		words = append(words, "replaces")
	}
	return words
}
