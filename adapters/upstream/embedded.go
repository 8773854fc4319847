// Package upstream holds the sellers of exits, one file each, and the embedded
// provider, which sells this host's own addresses.
package upstream

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"time"

	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// EmbeddedName is the name of the embedded provider.
const EmbeddedName = "embedded"

// Embedded sells this host's own addresses. It does no IO after the start and
// keeps no books: what is sold is what the caller's unit of work writes down.
//
// So an order is idempotent without memory: its choice is computed of Ref and
// Taken alone. Called again because the unit of work runs again, Taken is the
// same (or what others committed meanwhile, which must be respected), and so is
// the answer. The service never orders for a Ref that owns addresses already:
// those would be Taken.
type Embedded struct {
	pool     pool
	products []catalog.Product
}

var _ ports.OldProvider = (*Embedded)(nil)

// NewEmbedded probes the addresses and builds the catalogue. It refuses a
// configured list of which no address can be used.
func NewEmbedded(cfg Config, log *slog.Logger) (*Embedded, error) {
	p, err := cfg.probe(log)
	if err != nil {
		return nil, err
	}
	return &Embedded{pool: p, products: embeddedCatalogue(p)}, nil
}

// Name is EmbeddedName.
func (e *Embedded) Name() string { return EmbeddedName }

// Products lists the catalogue of CONTRACT section 13. A product of which the
// pool has no exit at all is not Available. The caller does not change it.
func (e *Embedded) Products() []catalog.Product { return e.products }

// Local is true: the provider is called inside the unit of work.
func (e *Embedded) Local() bool { return true }

// Provision picks exits by the order's Ref: random, because ids are, and the
// same for every call with the same Ref and Taken.
func (e *Embedded) Provision(_ context.Context, o ports.OldOrder) ([]session.Exit, error) {
	half, want := e.pool.dynamic, 1
	if o.Product.Type == session.Static {
		half, want = e.pool.static, o.Quantity
	}
	h := fnv.New64a()
	h.Write([]byte(o.Ref))
	exits := pick(half, int(h.Sum64()%uint64(max(len(half), 1))), want, o.Taken, netip.Addr{})
	if len(exits) < want || want < 1 {
		return nil, catalog.ErrOutOfStock
	}
	return exits, nil
}

// Rotate picks any other exit at random.
func (e *Embedded) Rotate(_ context.Context, o ports.OldOrder, current session.Exit) (session.Exit, error) {
	half := e.pool.dynamic
	exits := pick(half, rand.IntN(max(len(half), 1)), 1, o.Taken, current.IP)
	if len(exits) == 0 {
		return session.Exit{}, catalog.ErrOutOfStock
	}
	return exits[0], nil
}

// Extend needs nothing: an address stays with its session while it lives.
func (e *Embedded) Extend(context.Context, ports.OldOrder, time.Time) error { return nil }

// Release needs nothing: an address is free when no live session owns it.
func (e *Embedded) Release(context.Context, string) error { return nil }

// pick walks once round the addresses from a place and takes up to n that are
// neither taken nor the one to avoid.
func pick(from []netip.Addr, start, n int, taken map[string]bool, avoid netip.Addr) []session.Exit {
	var exits []session.Exit
	for i := range from {
		ip := from[(start+i)%len(from)]
		if len(exits) == n {
			break
		}
		if ip != avoid && !taken[ip.String()] {
			exits = append(exits, session.Exit{IP: ip})
		}
	}
	return exits
}
