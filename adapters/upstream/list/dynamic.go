package list

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Dynamic sells the traffic through a list. An order has a home line, which is its first
// exit, and rotates through the lines of its place that any number of sessions may use. A
// line with a bound serves only the sessions that have a seat of it.
type Dynamic struct{ *seller }

var (
	_ ports.Dynamic    = (*Dynamic)(nil)
	_ ports.Maintainer = (*Dynamic)(nil)
	_ ports.ExitLister = (*Dynamic)(nil)
)

// Capabilities describes a provider that is reached through the proxies of its list.
func (d *Dynamic) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Idempotent: true, KeepsOrderKey: true, Cancels: true}
}

// usable returns copies of the lines that may carry traffic of an intent, by key.
func (d *Dynamic) usable(in procurement.Intent) (list []*entry) {
	now := d.now()
	d.pool.view(func(lines []*entry, _ map[string]*entry) {
		for _, e := range lines {
			if e.works() && e.fits(in, now) && in.Allows(e.exit) {
				list = append(list, e.copy())
			}
		}
	})
	return list
}

// seat returns the line with the fewest sessions that has room for another, and the first
// seat that is free there.
func (d *Dynamic) seat(all []procurement.Claim, in procurement.Intent) (best *entry, seat int) {
	seats := map[string][]int{}
	for _, c := range all {
		seats[c.Line] = append(seats[c.Line], c.Seat)
	}
	list := d.usable(in)
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(len(seats[a.key]), len(seats[b.key])), cmp.Compare(a.No, b.No))
	})
	for _, e := range list {
		if e.MaxSessions == 0 || len(seats[e.key]) < e.MaxSessions {
			for slices.Contains(seats[e.key], seat) {
				seat++
			}
			return e, seat
		}
	}
	return nil, 0
}

// Order claims a seat of a line. The same order again gets what it has.
func (d *Dynamic) Order(ctx context.Context, in procurement.Intent) (sold procurement.Delivery, err error) {
	if in.Type != session.Dynamic {
		return sold, procurement.Refuse(procurement.Unsupported, "the list is sold as traffic")
	}
	if err := d.ready(ctx); err != nil {
		return sold, err
	}
	own, err := d.reclaim(ctx, in.Key, func(all, own []procurement.Claim) ([]procurement.Claim, error) {
		if len(own) > 0 {
			return nil, nil
		}
		e, seat := d.seat(all, in)
		if e == nil {
			return nil, procurement.Refuse(procurement.OutOfStock, "no line of the list works there and has room")
		}
		return []procurement.Claim{{Provider: d.name, Line: e.key, Seat: seat, OrderID: in.Key, SKU: in.SKU,
			Location: in.Location, ClaimedAt: d.now()}}, nil
	})
	if err != nil {
		return sold, err
	}
	return d.delivery(own[0])
}

// delivery returns an order. Its access names the home line, and holds it for a start
// before the list can be loaded.
func (d *Dynamic) delivery(c procurement.Claim) (sold procurement.Delivery, err error) {
	sold = procurement.Delivery{Ref: c.OrderID, Label: c.OrderID, State: procurement.Live, SKU: c.SKU,
		Location: c.Location, Quantity: 1, CreatedAt: c.ClaimedAt, Access: procurement.Access{User: c.Line}}
	d.pool.view(func(_ []*entry, byKey map[string]*entry) {
		if e := byKey[c.Line]; e != nil {
			sold.Access.Password = e.URL(d.protocol)
		} else {
			err = procurement.Refuse(procurement.Temporary,
				"the line of the order is not in the list; it is replaced after an hour, if another has room")
		}
	})
	return sold, err
}

// Find returns the order of an intent, by its key.
func (d *Dynamic) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	return found(d.Read(ctx, in.Key))
}

// Read returns an order. If its line is lost, the order first gets a slot of another line.
func (d *Dynamic) Read(ctx context.Context, ref string) (sold procurement.Delivery, err error) {
	own, err := d.claimsOf(ctx, ref)
	if err != nil {
		return sold, err
	}
	if d.lost(own[0].Line, d.pool.entry(own[0].Line)) {
		if own, err = d.rehome(ctx, ref); err != nil {
			return sold, err
		}
	}
	return d.delivery(own[0])
}

// rehome gives an order a seat of another line, if one has room.
func (d *Dynamic) rehome(ctx context.Context, order string) ([]procurement.Claim, error) {
	return d.reclaim(ctx, order, func(all, own []procurement.Claim) ([]procurement.Claim, error) {
		if len(own) == 0 {
			return nil, nil
		}
		e, seat := d.seat(all, procurement.Intent{SKU: own[0].SKU, Location: own[0].Location})
		if e == nil {
			return nil, nil
		}
		own[0].Line, own[0].Seat = e.key, seat
		return own, nil
	})
}

// Endpoint returns the line of a turn: the home line at first, then the next of those of its network that
// are not bounded: others cost another price. While no list is loaded it is the home line as it was sold.
func (d *Dynamic) Endpoint(a procurement.Access, t procurement.Target) (procurement.Endpoint, error) {
	if strings.ContainsFunc(t.Location.City, func(c rune) bool { return !session.IsLabel(string(c)) }) {
		return procurement.Endpoint{}, procurement.Refuse(procurement.Invalid, "the city is not of letters, digits, _ and -")
	}
	if !d.pool.isLoaded() {
		if lines, faults := Parse([]byte(a.Password)); len(faults) == 0 && len(lines) == 1 {
			return d.endpoint(lines[0]), nil
		}
		return procurement.Endpoint{}, errNotLoaded
	}
	list := d.inTurn(a, t.Location)
	if len(list) == 0 {
		return procurement.Endpoint{}, procurement.Refuse(procurement.OutOfStock, "no line of the list works there")
	}
	return d.endpoint(list[t.Turn%len(list)].Line), nil
}

// inTurn returns the lines of an order by turn, beginning with its home line.
func (d *Dynamic) inTurn(a procurement.Access, l session.Location) []*entry {
	network, listed := d.networkOf(a.User)
	var list []*entry
	for _, e := range d.usable(procurement.Intent{Location: l}) {
		if e.key == a.User || e.MaxSessions == 0 && (!listed || e.Network == network) {
			list = append(list, e)
		}
	}
	home, _ := slices.BinarySearchFunc(list, a.User, func(e *entry, key string) int { return cmp.Compare(e.key, key) })
	home = min(home, len(list))
	return slices.Concat(list[home:], list[:home])
}

// InTurn lists the addresses of the lines of an order by turn.
func (d *Dynamic) InTurn(a procurement.Access, l session.Location) []netip.Addr {
	list := []netip.Addr{}
	for _, e := range d.inTurn(a, l) {
		list = append(list, e.exit)
	}
	return list
}

// Available lists the addresses of the lines that may carry traffic of an intent.
func (d *Dynamic) Available(ctx context.Context, in procurement.Intent) (list []netip.Addr, err error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	in.Passes = nil
	for _, e := range d.usable(in) {
		list = append(list, e.exit)
	}
	return list, nil
}

// networkOf returns the network of a line, whether or not it works; false if it is in the list no more.
func (d *Dynamic) networkOf(key string) (network string, listed bool) {
	d.pool.view(func(_ []*entry, byKey map[string]*entry) {
		e := byKey[key]
		if listed = e != nil; listed {
			network = e.Network
		}
	})
	return network, listed
}

func (s *seller) endpoint(l Line) procurement.Endpoint {
	return procurement.Endpoint{Protocol: cmp.Or(l.Protocol, s.protocol), Host: l.Host, Port: l.Port, User: l.User,
		Password: l.Password, Trusted: s.trusted}
}

// NewExit returns the zero Exit: the next turn is the next line. It fails with OutOfStock
// where there is one line at most.
func (d *Dynamic) NewExit(in procurement.Intent, _ session.Exit) (session.Exit, error) {
	unbounded := 0
	for _, e := range d.usable(in) {
		if e.MaxSessions == 0 {
			unbounded++
		}
	}
	if unbounded < 2 {
		return session.Exit{}, procurement.Refuse(procurement.OutOfStock, "the list has no other line for it")
	}
	return session.Exit{}, nil
}

// Disable always fails with Unsupported: lines are shared.
func (d *Dynamic) Disable(context.Context, string) error { return errShared }

// Usage always fails with Unsupported, as Disable does.
func (d *Dynamic) Usage(context.Context, string) (procurement.Usage, error) {
	return procurement.Usage{}, errShared
}

var errShared = procurement.Refuse(procurement.Unsupported, "the sessions of a list share its lines")

// Quote costs nothing. The stock is that of this moment.
func (d *Dynamic) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	if err := d.ready(ctx); err != nil {
		return procurement.Quote{}, err
	}
	q := procurement.Quote{Stock: procurement.StockNo}
	all, err := d.all(ctx)
	if e, _ := d.seat(all, in); e != nil {
		q.Stock = procurement.StockYes
	}
	return q, err
}

// Offers lists the lines that have room, by network and country.
func (d *Dynamic) Offers(ctx context.Context) ([]procurement.Offer, error) {
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	all, err := d.all(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]int{}
	for _, c := range all {
		used[c.Line]++
	}
	room := slices.DeleteFunc(d.usable(procurement.Intent{}), func(e *entry) bool {
		return e.MaxSessions > 0 && used[e.key] >= e.MaxSessions
	})
	return d.offers(session.Dynamic, room), nil
}
