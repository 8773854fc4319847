package list

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Static sells the lines of a list as addresses: a line is one order's alone while it
// lasts, and so is the address that its traffic leaves from.
type Static struct{ *seller }

var (
	_ ports.Replacer   = (*Static)(nil)
	_ ports.Maintainer = (*Static)(nil)
	_ ports.ExitLister = (*Static)(nil)
)

// Capabilities describes a provider that is reached through the proxies of its list.
func (s *Static) Capabilities() procurement.Capabilities {
	return procurement.Capabilities{ViaUpstream: true, Idempotent: true, KeepsOrderKey: true, Renews: true, Cancels: true}
}

const day = 24 * time.Hour

// free returns copies of the lines that an order can have, the best first: those that end soonest, then
// in the order of the list. Of lines with one exit there is one at most.
func (s *seller) free(all []procurement.Claim, in procurement.Intent, until time.Time) (list []*entry) {
	claimed, exits := map[string]bool{}, map[string]bool{}
	for _, c := range all {
		claimed[c.Line], exits[c.Exit] = true, true
	}
	s.pool.view(func(lines []*entry, byKey map[string]*entry) {
		for key := range claimed { // the exit may have moved since
			if e := byKey[key]; e != nil && e.exit.IsValid() {
				exits[e.exit.String()] = true
			}
		}
		for _, e := range lines {
			if !claimed[e.key] && e.works() && e.fits(in, until) && in.Allows(e.exit) {
				list = append(list, e.copy())
			}
		}
	})
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Or(compareEnds(a.Ends, b.Ends), cmp.Compare(a.No, b.No)) })
	return slices.DeleteFunc(list, func(e *entry) bool {
		exit := e.exit.String()
		taken := exits[exit]
		exits[exit] = true
		return taken
	})
}

// compareEnds orders times; zero, which is never, is the latest.
func compareEnds(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return b.Compare(a)
	}
	return a.Compare(b)
}

// Available lists the addresses of the free lines that an order can have.
func (s *Static) Available(ctx context.Context, in procurement.Intent) (list []netip.Addr, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	all, err := s.all(ctx)
	in.Passes = nil
	for _, e := range s.free(all, in, s.now().Add(time.Duration(in.Days)*day)) {
		list = append(list, e.exit)
	}
	return list, err
}

// InTurn returns nothing: addresses do not change.
func (s *Static) InTurn(procurement.Access, session.Location) []netip.Addr { return nil }

// Order claims free lines. The same order again gets what it has.
func (s *Static) Order(ctx context.Context, in procurement.Intent) (d procurement.Delivery, err error) {
	if in.Type != session.Static || in.Quantity < 1 || in.Days < 1 {
		return d, procurement.Refuse(procurement.Unsupported, "the list is sold as addresses")
	}
	if err := s.ready(ctx); err != nil {
		return d, err
	}
	own, err := s.reclaim(ctx, in.Key, func(all, own []procurement.Claim) ([]procurement.Claim, error) {
		if len(own) > 0 {
			return nil, nil
		}
		now := s.now()
		until := now.Add(time.Duration(in.Days) * day)
		lines := s.free(all, in, until)
		if len(lines) < in.Quantity {
			return nil, procurement.Refuse(procurement.OutOfStock, "the list has not enough free lines")
		}
		for _, e := range lines[:in.Quantity] {
			own = append(own, procurement.Claim{Provider: s.name, Line: e.key, OrderID: in.Key, Exit: e.exit.String(),
				SKU: in.SKU, Location: in.Location, EndsAt: until, ClaimedAt: now})
		}
		slices.SortFunc(own, func(a, b procurement.Claim) int { return cmp.Compare(a.Line, b.Line) }) // as they are read
		return own, nil
	})
	if err != nil {
		return d, err
	}
	return s.delivery(own)
}

// delivery returns what an order has, as the list has it now. It fails with Temporary if a
// line of it is not in the list.
func (s *Static) delivery(own []procurement.Claim) (d procurement.Delivery, err error) {
	d = procurement.Delivery{Ref: own[0].OrderID, Label: own[0].OrderID, State: procurement.Live, SKU: own[0].SKU,
		Location: own[0].Location, Quantity: len(own), CreatedAt: own[0].ClaimedAt, ExpiresAt: own[0].EndsAt}
	s.pool.view(func(_ []*entry, byKey map[string]*entry) {
		for _, c := range own {
			e := byKey[c.Line]
			if e == nil {
				err = procurement.Refuse(procurement.Temporary,
					"a line of the order is not in the list; it is replaced after an hour, if another is free")
				return
			}
			d.IPs = append(d.IPs, s.ip(e, c))
		}
	})
	return d, err
}

// ip returns a line as an address. The look at the pool is the caller's.
func (s *seller) ip(e *entry, c procurement.Claim) procurement.IP {
	exit := e.exit
	if !exit.IsValid() || c.Exit != "" && c.Exit != exit.String() {
		exit = parseAddr(c.Exit)
	}
	ip := procurement.IP{ID: e.key, Addr: exit, Host: e.Host, User: e.User, Password: e.Password, Trusted: s.trusted,
		Country: e.place().Country, ExpiresAt: c.EndsAt}
	if e.Protocol == session.SOCKS5 {
		ip.SOCKSPort = e.Port
	} else {
		ip.HTTPPort = e.Port
	}
	return ip
}

// Find returns the order of an intent, by its key.
func (s *Static) Find(ctx context.Context, in procurement.Intent) ([]procurement.Delivery, error) {
	return found(s.Read(ctx, in.Key))
}

// Read returns the lines of an order. One that was gone from the list, or has failed, for
// replaceAfter, is replaced by a free one of the same place before.
func (s *Static) Read(ctx context.Context, ref string) (d procurement.Delivery, err error) {
	own, err := s.claimsOf(ctx, ref)
	if err != nil {
		return d, err
	}
	if s.worn(own) {
		if own, err = s.repair(ctx, ref); err != nil {
			return d, err
		}
	}
	return s.delivery(own)
}

// Renew moves the end of an order, for nothing. It is refused where a line ends before.
func (s *Static) Renew(ctx context.Context, ref string, in procurement.Intent) (list []procurement.Renewed, err error) {
	own, err := s.reclaim(ctx, ref, func(_, own []procurement.Claim) ([]procurement.Claim, error) {
		if len(own) == 0 || own[0].Renewal == in.Key {
			return nil, nil
		}
		if err := s.lasts(own, in.Days); err != nil {
			return nil, err
		}
		for i := range own {
			own[i].EndsAt, own[i].Renewal = own[i].EndsAt.Add(time.Duration(in.Days)*day), in.Key
		}
		return own, nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range own {
		list = append(list, procurement.Renewed{Addr: parseAddr(c.Exit), ExpiresAt: c.EndsAt})
	}
	return list, nil
}

// lasts refuses more days of lines that end before, or are gone.
func (s *Static) lasts(own []procurement.Claim, days int) (err error) {
	s.pool.view(func(_ []*entry, byKey map[string]*entry) {
		for _, c := range own {
			until := c.EndsAt.Add(time.Duration(days) * day)
			switch e := byKey[c.Line]; {
			case e == nil:
				err = procurement.Refuse(procurement.Temporary, "a line of the order is not in the list")
			case !e.Ends.IsZero() && e.Ends.Before(until):
				err = procurement.Refuse(procurement.OutOfStock, "a line of the order ends before, at "+
					e.Ends.Format(time.DateOnly))
			}
		}
	})
	return err
}

// Quote costs nothing. The stock is that of this moment.
func (s *Static) Quote(ctx context.Context, in procurement.Intent) (procurement.Quote, error) {
	q := procurement.Quote{Stock: procurement.StockNo}
	if err := s.ready(ctx); err != nil {
		return procurement.Quote{}, err
	}
	all, err := s.all(ctx)
	if err == nil && len(s.free(all, in, s.now().Add(time.Duration(in.Days)*day))) >= in.Quantity {
		q.Stock = procurement.StockYes
	}
	return q, err
}

// Offers lists the lines that are not sold, by network and country.
func (s *Static) Offers(ctx context.Context) ([]procurement.Offer, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	all, err := s.all(ctx)
	if err != nil {
		return nil, err
	}
	return s.offers(session.Static, s.free(all, procurement.Intent{}, s.now())), nil
}

// unknownCountry is the place of lines whose country is not known: ISO 3166-1 leaves it to
// users. No order for a country gets them.
const unknownCountry = "ZZ"

// offers counts free lines by network and country. What the list has and is sold out is
// there too.
func (s *seller) offers(typ session.Type, free []*entry) []procurement.Offer {
	type kind struct{ network, country string }
	count := map[kind]int{}
	of := func(e *entry) kind { return kind{e.Network, cmp.Or(e.place().Country, unknownCountry)} }
	s.pool.view(func(lines []*entry, _ map[string]*entry) {
		for _, e := range lines {
			count[of(e)] += 0
		}
		for _, e := range free {
			count[of(e)]++
		}
	})
	list := []procurement.Offer{}
	for k, n := range count {
		o := procurement.Offer{SKU: k.network, Type: typ, Name: strings.TrimSpace("list " + k.network),
			Location: session.Location{Country: k.country}, Stock: procurement.StockYes, Count: n}
		if n == 0 {
			o.Stock = procurement.StockNo
		}
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b procurement.Offer) int {
		return cmp.Or(cmp.Compare(a.SKU, b.SKU), cmp.Compare(a.Location.Country, b.Location.Country))
	})
	return list
}
