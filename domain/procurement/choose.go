package procurement

import (
	"cmp"
	"math"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Source is one provider that a product can be bought of.
type Source struct {
	Provider   string
	SKU        string // what the provider calls it
	Preference int    // lower first
	Cost       domain.Money
	Costs      []Term   // static: an IP by duration
	Countries  []string // sorted; nil: all of the product's
	Cities     []string // nil: all of the product's
}

// Term is what one IP costs for so many days.
type Term struct {
	Days int
	Cost domain.Money
}

// CostFor is what a GB, or one IP for so many days, costs; 0: not told.
func (s Source) CostFor(days int) domain.Money {
	for _, t := range s.Costs {
		if t.Days == days {
			return t.Cost
		}
	}
	return s.Cost
}

// Sells reports whether the source has the place. It never widens: a place that
// is not listed is not sold.
func (s Source) Sells(l session.Location) bool {
	return (l.Country == "" || s.Countries == nil || slices.Contains(s.Countries, l.Country)) &&
		(l.City == "" || s.Cities == nil || slices.Contains(s.Cities, l.City))
}

// Condition is how a provider does at the moment.
type Condition struct {
	Ready bool  // its breaker is closed
	Stock Stock // of what is asked for; empty is StockUnknown
}

// Choose orders the sources that may deliver: by preference, then health, then
// stock, then cost, and as they stand in the catalogue where all are equal. One
// that has nothing in stock is left out, one whose breaker is open only when
// another is left.
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
	doubt := func(c candidate) int {
		if c.Stock == StockYes {
			return 0
		}
		return 1
	}
	cost := func(c candidate) domain.Money {
		if told := c.CostFor(days); told > 0 {
			return told
		}
		return math.MaxInt64 // not told, so not taken for cheap
	}
	slices.SortStableFunc(able, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.Preference, b.Preference), cmp.Compare(doubt(a), doubt(b)), cmp.Compare(cost(a), cost(b)))
	})
	out := make([]Source, len(able))
	for i, c := range able {
		out[i] = c.Source
	}
	return out
}
