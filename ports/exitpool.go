package ports

import (
	"net/netip"

	"agentproxy/domain/session"
)

// ExitPool is a Dynamic whose exits are addresses of this host, of which any number of workers use
// any. Its methods are safe for concurrent use.
type ExitPool interface {
	Dynamic
	// Exits lists the addresses in a place, of which country and city may be empty, always in
	// the same order. The caller does not change the list.
	Exits(l session.Location) []netip.Addr
	// Sold lists the addresses in a place that static sessions have or can get, like Exits.
	Sold(l session.Location) []netip.Addr
	// Binds reports whether a connection can be made from one of the Exits at this moment.
	Binds(exit netip.Addr) bool
	// Serves reports whether a sold static address is configured, and a connection can be made from it at this
	// moment.
	Serves(exit netip.Addr) bool
}
