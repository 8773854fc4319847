package ports

import (
	"context"
	"net/netip"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// ExitLister is a provider that has the addresses of its exits: an echo reported each through its proxy. It gives an
// order those alone that its Intent.Passes.
type ExitLister interface {
	Provider
	// Available lists the addresses that an order of an intent may get at the moment, whatever its Passes.
	Available(ctx context.Context, in procurement.Intent) ([]netip.Addr, error)
	// InTurn lists the addresses of the exits of a dynamic order in a place, by turn: after the last the first follows.
	// It is empty and not nil if there is none, or none is known.
	InTurn(a procurement.Access, l session.Location) []netip.Addr
}
