package list

import (
	"context"
	"errors"

	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// Exchanger is a Source that gives another proxy for one that is sold, where it comes from.
type Exchanger interface {
	Moves
	// Exchange asks for another proxy in place of one, by one request that is sent once, with the errors of
	// ports.Replacer. A later Load, and MovedTo, show what came in its place.
	Exchange(ctx context.Context, old Line, place session.Location) error
	// CanExchange reports whether Exchange may succeed now. It makes no call.
	CanExchange() procurement.Stock
}

// swap is what an order may have in place of one of its addresses.
type swap struct {
	old  procurement.Claim
	in   procurement.Intent // of the line that is looked for
	next *entry             // nil: none is free
}

// swap returns the claim of an order on an address, with the best free line for it. It fails with NotFound
// without one.
func (s *Static) swap(all []procurement.Claim, order string, in procurement.Replacement) (c swap, err error) {
	own := ofOrder(all, order)
	if len(own) == 0 {
		return c, errNotSold
	}
	found := false
	s.pool.view(func(_ []*entry, byKey map[string]*entry) {
		for _, claim := range own {
			e := byKey[claim.Line]
			if claim.Exit == in.Addr.String() || e != nil && s.ip(e, claim).Addr == in.Addr {
				c.old, found = claim, true
				return
			}
		}
	})
	if !found {
		return c, errOtherAddress
	}
	if c.in = in.Intent(c.old.SKU); c.in.Location == (session.Location{}) {
		c.in.Location = c.old.Location
	}
	if free := s.free(all, c.in, c.old.EndsAt); len(free) > 0 {
		c.next = free[0]
	}
	return c, nil
}

// errOtherAddress refuses to replace what an order does not have.
var errOtherAddress = procurement.Refuse(procurement.NotFound, "the order does not have this address")

// QuoteReplacement costs nothing. The stock is that of this moment; it is unknown where the
// source alone may have another proxy.
func (s *Static) QuoteReplacement(ctx context.Context, ref string,
	in procurement.Replacement) (q procurement.Quote, err error) {
	if err := s.ready(ctx); err != nil {
		return q, refusal(err)
	}
	all, err := s.all(ctx)
	if err != nil {
		return q, refusal(err)
	}
	c, err := s.swap(all, ref, in)
	if err != nil {
		return q, err
	}
	q.Stock = procurement.StockNo
	if x, ok := s.source.(Exchanger); c.next != nil {
		q.Stock = procurement.StockYes
	} else if ok && s.pool.entry(c.old.Line) != nil {
		q.Stock = x.CanExchange()
	}
	return q, nil
}

// Replace gives an order another free line of the same place, that lasts as long; what it gives
// back is free for others at once. Without one the source is asked, if it can exchange proxies. A
// repeated call changes nothing.
func (s *Static) Replace(ctx context.Context, ref string, in procurement.Replacement) error {
	if err := s.ready(ctx); err != nil {
		return refusal(err)
	}
	var c swap
	_, err := s.reclaim(ctx, ref, func(all, own []procurement.Claim) (_ []procurement.Claim, err error) {
		c, err = s.swap(all, ref, in)
		if err != nil || c.next == nil {
			return nil, err
		}
		for i := range own {
			if own[i] == c.old {
				own[i].Line, own[i].Exit = c.next.key, c.next.exit.String()
			}
		}
		return own, nil
	})
	switch {
	case errors.Is(err, errOtherAddress):
		return nil
	case err != nil:
		return err
	case c.next != nil:
		s.log.Info("an address of an order was replaced", "provider", s.name, "order_id", ref, "reason", string(in.Fault),
			"line", c.next.String())
		return nil
	}
	x, ok := s.source.(Exchanger)
	old := s.pool.entry(c.old.Line)
	if !ok || old == nil || x.CanExchange() == procurement.StockNo {
		return procurement.Refuse(procurement.OutOfStock, "the list has no other free line")
	}
	return x.Exchange(ctx, old.Line, c.in.Location)
}
