package ports

import (
	"context"
	"net/netip"

	"agentproxy/domain/exit"
)

// ExitFacts has what the operator's files and lists have about addresses.
type ExitFacts interface {
	// Facts returns what is known about an address. It does not fail: what no source has, or what a list does
	// not answer in time, is not known. It may take seconds where lists are asked.
	Facts(ctx context.Context, addr netip.Addr) exit.Known
	// Any reports whether there are sources. Without them nothing but addresses can be known.
	Any() bool
	// Can returns the facts that the sources can have.
	Can() exit.Fields
}
