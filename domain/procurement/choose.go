package procurement

import (
	"cmp"
	"math"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Source is a provider that a product can be bought from.
type Source struct {
	Provider   string
	SKU        string // the provider's name of the product
	Preference int    // the lowest is chosen first
	Cost       domain.Money
	Costs      []Term   // static: of one IP, by duration
	Countries  []string // sorted; nil for all of the product's
	Cities     []string // nil for all of the product's
	BelowCost  bool     // may cost more than the agent pays
}

// Term is the cost of one IP for a duration in days.
type Term struct {
	Days int
	Cost domain.Money
}

// CostFor returns the cost of a GB, or of one IP for a duration in days. It
// returns 0 if the cost is unknown.
func (s Source) CostFor(days int) domain.Money {
	for _, t := range s.Costs {
		if t.Days == days {
			return t.Cost
		}
	}
	return s.Cost
}

// Intent returns what a session needs of the source.
func (s Source) Intent(of session.Session) Intent {
	return Intent{Key: of.ID, SessionID: of.ID, Type: of.Type, SKU: s.SKU, Location: of.Location,
		Quantity: of.Quantity, Days: of.Days, Bytes: of.Bytes}
}

// CostOf returns what the operator configured as the cost of a session for a duration in
// days, or 0.
func (s Source) CostOf(of session.Session, days int) domain.Money {
	if of.Type == session.Dynamic {
		return domain.Money(domain.MulDivUp(of.Bytes, int64(s.CostFor(0)), 1_000_000_000))
	}
	return domain.Money(domain.MulDiv(int64(of.Quantity), int64(s.CostFor(days)), 1))
}

// MaxCost returns the most that a purchase may cost at the source: what the agent pays
// for it, and no more than its configured cost. What may be sold below cost is bounded
// by the configured cost alone. 0 means no bound, for a cost that is not configured.
func (s Source) MaxCost(configured, paid domain.Money) domain.Money {
	if !s.BelowCost && (configured == 0 || paid < configured) {
		return paid
	}
	return configured
}

// MaxRenewalCost is like MaxCost of a renewal. It may cost more than configured, as long as
// the agent pays for it: there is no other source to renew at.
func (s Source) MaxRenewalCost(configured, paid domain.Money) domain.Money {
	if s.BelowCost {
		return configured
	}
	return paid
}

// Sells reports whether the source sells the place. A place that is not listed
// is not sold.
func (s Source) Sells(l session.Location) bool {
	return (l.Country == "" || s.Countries == nil || slices.Contains(s.Countries, l.Country)) &&
		(l.City == "" || s.Cities == nil || slices.Contains(s.Cities, l.City))
}

// Condition is the current state of a provider.
type Condition struct {
	Ready bool  // its circuit breaker is closed
	Stock Stock // of the requested product; empty is StockUnknown
}

// Choose orders the sources that may deliver by preference, stock and cost,
// then by their order in the catalogue. It leaves out sources without stock,
// and sources whose circuit breaker is open if another one is left.
func Choose(sources []Source, l session.Location, days int, of func(Source) Condition) []Source {
	type candidate struct {
		Source
		Condition
	}
	var able []candidate
	ready := false
	for _, s := range sources {
		c := of(s)
		if !s.Sells(l) || c.Stock == StockNo {
			continue
		}
		able = append(able, candidate{s, c})
		ready = ready || c.Ready
	}
	if ready {
		able = slices.DeleteFunc(able, func(c candidate) bool { return !c.Ready })
	}
	stockRank := func(c candidate) int {
		if c.Stock == StockYes {
			return 0
		}
		return 1
	}
	cost := func(c candidate) domain.Money {
		if known := c.CostFor(days); known > 0 {
			return known
		}
		return math.MaxInt64 // an unknown cost is unbounded
	}
	slices.SortStableFunc(able, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(stockRank(a), stockRank(b)),
			cmp.Compare(cost(a), cost(b)))
	})
	out := make([]Source, len(able))
	for i, c := range able {
		out[i] = c.Source
	}
	return out
}
