// Package upstream holds the sellers of exits, one file each, and the embedded
// provider, which sells this host's own addresses.
package upstream

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/netip"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// EmbeddedName is the name of the embedded provider.
const EmbeddedName = "embedded"

// Embedded sells this host's own addresses. It does no IO after the start and
// keeps no books: what is sold is what the caller's unit of work writes down.
//
// So an order is idempotent without memory: its choice is computed of SessionID
// and Taken alone. Called again because the unit of work runs again, Taken is the
// same (or what others committed meanwhile, which must be respected), and so is
// the answer. The service never orders for a session that owns addresses already:
// those would be Taken.
type Embedded struct {
	pool     pool
	products []catalog.Product
}

var (
	_ ports.Dynamic = (*Embedded)(nil)
	_ ports.Static  = (*Embedded)(nil)
)

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

// Products lists the embedded catalogue. A product of which the pool has no exit
// at all is not Available. The caller does not change it.
func (e *Embedded) Products() []catalog.Product { return e.products }

// Capabilities says that the provider is called inside the unit of work.
func (e *Embedded) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{InProcess: true, Renews: true, Cancels: true}
}

// Ready is always true.
func (e *Embedded) Ready() bool { return true }

// Offers are none: what the pool has is told by Order.
func (e *Embedded) Offers(context.Context) ([]procurement.Offer, error) { return nil, nil }

// Balance is nobody's.
func (e *Embedded) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote costs nothing.
func (e *Embedded) Quote(context.Context, procurement.Intent) (procurement.Quote, error) {
	return procurement.Quote{Stock: procurement.StockUnknown}, nil
}

// Order picks exits by the session's id: random, because ids are, and the same
// for every call with the same id and Taken.
func (e *Embedded) Order(_ context.Context, in procurement.Intent) (procurement.Delivery, error) {
	half, want := e.pool.dynamic, 1
	if in.Type == session.Static {
		half, want = e.pool.static, in.Quantity
	}
	h := fnv.New64a()
	h.Write([]byte(in.SessionID))
	exits := pick(half, int(h.Sum64()%uint64(max(len(half), 1))), want, in.Taken, netip.Addr{})
	if len(exits) < want || want < 1 {
		return procurement.Delivery{}, procurement.Refuse(procurement.OutOfStock, "no address is free")
	}
	d := procurement.Delivery{Ref: in.SessionID, State: procurement.Live, Quantity: want, IPs: make([]procurement.IP, want)}
	for i, ip := range exits {
		d.IPs[i].Addr = ip
	}
	return d, nil
}

// NewExit picks any other exit at random.
func (e *Embedded) NewExit(in procurement.Intent, current session.Exit) (session.Exit, error) {
	half := e.pool.dynamic
	exits := pick(half, rand.IntN(max(len(half), 1)), 1, in.Taken, current.IP)
	if len(exits) == 0 {
		return session.Exit{}, procurement.Refuse(procurement.OutOfStock, "there is no other address")
	}
	return session.Exit{IP: exits[0]}, nil
}

// Find finds nothing: there are no books to look into.
func (e *Embedded) Find(context.Context, procurement.Intent) ([]procurement.Delivery, error) {
	return nil, nil
}

// Read is NotFound, as there are no books.
func (e *Embedded) Read(context.Context, string) (procurement.Delivery, error) {
	return procurement.Delivery{}, procurement.Refuse(procurement.NotFound, "")
}

// Cancel needs nothing: an address is free when no live session owns it.
func (e *Embedded) Cancel(context.Context, string) error { return nil }

// Renew needs nothing: an address stays with its session while it lives.
func (e *Embedded) Renew(context.Context, string, procurement.Intent) ([]procurement.Renewed, error) {
	return nil, nil
}

// Disable always fails with Unsupported: the gateway itself dials from the
// addresses and meters them.
func (e *Embedded) Disable(context.Context, string) error { return errEmbedded }

// Usage always fails with Unsupported.
func (e *Embedded) Usage(context.Context, string) (procurement.Usage, error) {
	return procurement.Usage{}, errEmbedded
}

// Endpoint is Unsupported.
func (e *Embedded) Endpoint(procurement.Access, procurement.Target) (procurement.Endpoint, error) {
	return procurement.Endpoint{}, errEmbedded
}

var errEmbedded = procurement.Refuse(procurement.Unsupported, "the addresses are this host's own")

// pick walks once round the addresses from a place and takes up to n that are
// neither taken nor the one to avoid.
func pick(from []netip.Addr, start, n int, taken map[string]bool, avoid netip.Addr) []netip.Addr {
	var exits []netip.Addr
	for i := range from {
		ip := from[(start+i)%len(from)]
		if len(exits) == n {
			break
		}
		if ip != avoid && !taken[ip.String()] {
			exits = append(exits, ip)
		}
	}
	return exits
}
