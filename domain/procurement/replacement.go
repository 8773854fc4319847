package procurement

import (
	"maps"
	"net/netip"

	"agentproxy/domain/session"
)

// Fault is what is wrong with an address that is to be replaced.
type Fault string

// The faults of an address.
const (
	WrongPlace  Fault = "wrong_place"
	Listed      Fault = "listed"
	Unreachable Fault = "unreachable"
	Blocked     Fault = "blocked"
	OtherFault  Fault = "other"
)

// Faults lists every fault.
var Faults = []Fault{WrongPlace, Listed, Unreachable, Blocked, OtherFault}

// Replacement is which address is to be replaced, and by what.
type Replacement struct {
	Key      string // the id of the order of this replacement, where the provider takes one
	Addr     netip.Addr
	Fault    Fault
	Location session.Location // of the new address
	// Avoid are addresses, as text, that are not to be given, where the provider can choose. What it gives at random may
	// be one of them.
	Avoid map[string]bool
	// Passes reports whether an address may be given, where the provider can choose; nil: any.
	Passes func(netip.Addr) bool
}

// Intent returns what an order would ask for of a provider that can choose, to get the new address.
func (r Replacement) Intent(sku string) Intent {
	in := Intent{Key: r.Key, Type: session.Static, SKU: sku, Location: r.Location, Quantity: 1, Passes: r.Passes,
		Avoid: map[string]bool{r.Addr.String(): true}}
	maps.Copy(in.Avoid, r.Avoid)
	return in
}
