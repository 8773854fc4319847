package list

import (
	"context"
	"net/netip"
	"time"

	"agentproxy/domain/procurement"
)

// replaceAfter is how long a line must have failed, at every probe, or been missing in the list before an
// order gets another one: another replica may have a newer file, in which the line is.
const replaceAfter = time.Hour

func parseAddr(text string) netip.Addr {
	ip, _ := netip.ParseAddr(text) // what was stored is an address, or empty
	return ip
}

// lost reports whether an order cannot go on with a line. e is nil if that is not in the list.
func (s *seller) lost(key string, e *entry) bool {
	if e != nil {
		s.missing.Delete(key)
		return e.failures >= deadAfter && s.now().Sub(e.worked) >= replaceAfter
	}
	if m, ok := s.source.(Moves); ok {
		if _, replaced := m.MovedTo(key); replaced {
			return true
		}
	}
	since, _ := s.missing.LoadOrStore(key, s.now())
	return s.now().Sub(since.(time.Time)) >= replaceAfter
}

// moved reports whether a line leaves from another address than the order was given.
func moved(e *entry, c procurement.Claim) bool {
	return e != nil && e.works() && e.failures == 0 && e.exit.String() != c.Exit
}

// worn reports whether a line of an order is lost or has another exit.
func (s *seller) worn(own []procurement.Claim) (yes bool) {
	s.pool.view(func(_ []*entry, byKey map[string]*entry) {
		for _, c := range own {
			e := byKey[c.Line]
			yes = yes || s.lost(c.Line, e) || moved(e, c)
		}
	})
	return yes
}

// Moves is a Source that reports which line has replaced another.
type Moves interface {
	// MovedTo returns the key of the line that replaced one.
	MovedTo(key string) (string, bool)
}

// repair replaces the lost lines of an order by free ones of the same place, and takes over
// exits that have moved. A lost line stays if none is free.
func (s *seller) repair(ctx context.Context, order string) ([]procurement.Claim, error) {
	return s.reclaim(ctx, order, func(all, own []procurement.Claim) (next []procurement.Claim, err error) {
		for i, c := range own {
			if successor, ok := s.successor(all, c); ok {
				own[i], next = successor, own
				all = append(all, successor)
			}
		}
		return next, nil
	})
}

// successor returns the claim that an order has in place of one from now on; false if that
// is the same.
func (s *seller) successor(all []procurement.Claim, c procurement.Claim) (procurement.Claim, bool) {
	e, taken := s.pool.entry(c.Line), false
	if !s.lost(c.Line, e) {
		if !moved(e, c) {
			return c, false
		}
		exit := e.exit.String()
		for _, o := range all {
			taken = taken || o.Exit == exit && (o.Line != c.Line || o.Seat != c.Seat)
		}
		c.Exit = exit
		return c, !taken
	}
	free := s.free(all, procurement.Intent{SKU: c.SKU, Location: c.Location}, c.EndsAt)
	if len(free) == 0 {
		return c, false
	}
	next := free[0]
	if m, ok := s.source.(Moves); ok {
		if key, known := m.MovedTo(c.Line); known {
			for _, f := range free {
				if f.key == key {
					next = f
				}
			}
		}
	}
	s.log.Warn("an order got another line of its list", "provider", s.name, "order_id", c.OrderID, "line", next.String())
	c.Line, c.Seat, c.Exit = next.key, 0, next.exit.String()
	return c, true
}
