// Package embedded is the provider that sells this host's own addresses.
package embedded

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"

	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Name is the name of the provider in products, orders and sessions.
const Name = "embedded"

// Provider sells this host's own addresses. It does no IO after the start and
// stores no orders: the caller's transaction records what is sold.
//
// An order is idempotent without memory, because its result is computed from
// SessionID and Taken alone. If the transaction is retried, Taken is the same, or
// also has what others committed meanwhile. The service never orders for a session
// that owns addresses already: those would be Taken.
type Provider struct {
	pool       pool
	everywhere bool
	products   []catalog.Product
	addrs      []netip.Addr // of the dynamic half
	usable     func(netip.Addr) bool
}

var (
	_ ports.Dynamic  = (*Provider)(nil)
	_ ports.Static   = (*Provider)(nil)
	_ ports.Lister   = (*Provider)(nil)
	_ ports.ExitPool = (*Provider)(nil)
)

// New probes the addresses and builds the catalogue. It fails if addresses are
// configured and none of them can be bound.
func New(cfg Config, log *slog.Logger) (*Provider, error) {
	p, err := cfg.probe(log)
	if err != nil {
		return nil, err
	}
	made := &Provider{pool: p, everywhere: cfg.Everywhere, products: products(p, cfg.Everywhere), usable: cfg.Usable}
	if made.usable == nil {
		made.usable = bindable
	}
	for _, exit := range p.dynamic {
		made.addrs = append(made.addrs, exit.Addr)
	}
	return made, nil
}

// Name returns the constant Name.
func (p *Provider) Name() string { return Name }

// Products returns the catalogue, which the caller must not change. A product is
// not Available if the pool has no address for it.
func (p *Provider) Products() []catalog.Product { return p.products }

// Has reports whether an address is one of those that are sold.
func (p *Provider) Has(ip netip.Addr) bool {
	is := func(exit Exit) bool { return exit.Addr == ip }
	return slices.ContainsFunc(p.pool.dynamic, is) || slices.ContainsFunc(p.pool.static, is)
}

// Capabilities describes a provider that is called inside the transaction.
func (p *Provider) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{InProcess: true, Renews: true, Cancels: true, Workers: true}
}

// Ready always returns true.
func (p *Provider) Ready() bool { return true }

// Offers returns nil: the pool has no catalogue of its own.
func (p *Provider) Offers(context.Context) ([]procurement.Offer, error) { return nil, nil }

// Balance returns the zero balance: there is no account.
func (p *Provider) Balance(context.Context) (procurement.ProviderBalance, error) {
	return procurement.ProviderBalance{}, nil
}

// Quote returns a cost of 0 and an unknown stock.
func (p *Provider) Quote(context.Context, procurement.Intent) (procurement.Quote, error) {
	return procurement.Quote{Stock: procurement.StockUnknown}, nil
}

// Order picks free addresses, beginning at a place that is the hash of the session
// id: it is as random as ids are, and the same for the same id and Taken.
func (p *Provider) Order(_ context.Context, in procurement.Intent) (procurement.Delivery, error) {
	half, want := p.pool.dynamic, 1
	if in.Type == session.Static {
		half, want = p.pool.static, in.Quantity
	}
	h := fnv.New64a()
	h.Write([]byte(in.SessionID))
	exits := p.pick(half, int(h.Sum64()%uint64(max(len(half), 1))), want, in, netip.Addr{})
	if len(exits) < want || want < 1 {
		return procurement.Delivery{}, procurement.Refuse(procurement.OutOfStock, "no address is free in that place")
	}
	d := procurement.Delivery{Ref: in.SessionID, State: procurement.Live, Quantity: want,
		IPs: make([]procurement.IP, want)}
	for i, ip := range exits {
		d.IPs[i].Addr = ip
	}
	return d, nil
}

// NewExit picks any other address at random.
func (p *Provider) NewExit(in procurement.Intent, current session.Exit) (session.Exit, error) {
	half := p.pool.dynamic
	exits := p.pick(half, rand.IntN(max(len(half), 1)), 1, in, current.IP)
	if len(exits) == 0 {
		return session.Exit{}, procurement.Refuse(procurement.OutOfStock, "there is no other address")
	}
	return session.Exit{IP: exits[0]}, nil
}

// Find returns nil: the pool stores no orders.
func (p *Provider) Find(context.Context, procurement.Intent) ([]procurement.Delivery, error) {
	return nil, nil
}

// List returns nil: the pool stores no orders.
func (p *Provider) List(context.Context) ([]procurement.Delivery, error) { return nil, nil }

// Read always fails with NotFound: the pool stores no orders.
func (p *Provider) Read(context.Context, string) (procurement.Delivery, error) {
	return procurement.Delivery{}, procurement.Refuse(procurement.NotFound, "")
}

// Cancel does nothing: an address is free once no live session owns it.
func (p *Provider) Cancel(context.Context, string) error { return nil }

// Renew does nothing: a session keeps its addresses while it lives.
func (p *Provider) Renew(context.Context, string, procurement.Intent) ([]procurement.Renewed, error) {
	return nil, nil
}

// Disable always fails with Unsupported: the gateway itself dials from the
// addresses and meters them.
func (p *Provider) Disable(context.Context, string) error { return errOwnAddresses }

// Usage always fails with Unsupported.
func (p *Provider) Usage(context.Context, string) (procurement.Usage, error) {
	return procurement.Usage{}, errOwnAddresses
}

// Endpoint always fails with Unsupported.
func (p *Provider) Endpoint(procurement.Access, procurement.Target) (procurement.Endpoint, error) {
	return procurement.Endpoint{}, errOwnAddresses
}

var errOwnAddresses = procurement.Refuse(procurement.Unsupported, "the addresses are this host's own")

// pick goes once round the exits, beginning at start, and returns up to n addresses in the place
// that is asked for that are neither taken, nor equal to avoid, nor kept from the agent.
func (p *Provider) pick(from []Exit, start, n int, in procurement.Intent, avoid netip.Addr) []netip.Addr {
	var exits []netip.Addr
	for i := range from {
		exit := from[(start+i)%len(from)]
		if len(exits) == n {
			break
		}
		if exit.Addr != avoid && (p.everywhere || exit.in(in.Location)) && !in.Taken[exit.Addr.String()] &&
			in.Allows(exit.Addr) {
			exits = append(exits, exit.Addr)
		}
	}
	return exits
}

// in reports whether the exit is in a place, of which the country, the city or both may be empty.
func (e Exit) in(l session.Location) bool {
	return (l.Country == "" || l.Country == e.Place.Country) && (l.City == "" || l.City == e.Place.City)
}

// Exits lists the addresses of the dynamic half in a place.
func (p *Provider) Exits(l session.Location) []netip.Addr {
	if l == (session.Location{}) || p.everywhere {
		return p.addrs
	}
	var list []netip.Addr
	for _, exit := range p.pool.dynamic {
		if exit.in(l) {
			list = append(list, exit.Addr)
		}
	}
	return list
}

// Sold lists the addresses of the static half in a place.
func (p *Provider) Sold(l session.Location) (list []netip.Addr) {
	for _, exit := range p.pool.static {
		if p.everywhere || exit.in(l) {
			list = append(list, exit.Addr)
		}
	}
	return list
}

// Binds reports whether an address of the pool can be bound now.
func (p *Provider) Binds(exit netip.Addr) bool {
	return slices.Contains(p.addrs, exit) && p.usable(exit)
}

// Serves reports whether a sold static address is configured, in whichever half, and can be bound.
func (p *Provider) Serves(exit netip.Addr) bool {
	is := func(e Exit) bool { return e.Addr == exit }
	return (slices.ContainsFunc(p.pool.static, is) || slices.ContainsFunc(p.pool.dynamic, is)) && p.usable(exit)
}
