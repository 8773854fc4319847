package catalog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"agentproxy/domain"
)

// jump is the factor from which a change of price may be a mistake.
const jump = 10

// Changes are the differences between two catalogues, by the codes of products, in the order of the
// catalogue that has them.
type Changes struct {
	Added, Removed []string
	Changed        []string // in words, with old and new prices
	Jumps          []string // those of Changed of which a price is at least ten times, or a tenth, what it was
}

// Compare returns what differs between what was sold before and what is sold after.
func Compare(before, after []Product) (c Changes) {
	was := map[string]Product{}
	for _, p := range before {
		was[p.No] = p
	}
	for _, p := range after {
		old, known := was[p.No]
		delete(was, p.No)
		switch {
		case !known:
			c.Added = append(c.Added, p.No)
		case !reflect.DeepEqual(old, p):
			text := p.No + difference(old, p)
			c.Changed = append(c.Changed, text)
			if jumped(old, p) {
				c.Jumps = append(c.Jumps, text)
			}
		}
	}
	for _, p := range before {
		if _, gone := was[p.No]; gone {
			c.Removed = append(c.Removed, p.No)
		}
	}
	return c
}

// prices returns the price of each number of days; that of a GB is under 0.
func (p Product) prices() map[int]domain.Money {
	m := map[int]domain.Money{}
	if len(p.Durations) == 0 {
		m[0] = p.Price
	}
	for _, d := range p.Durations {
		m[d.Days] = d.Price
	}
	return m
}

// difference returns the prices that differ, as " price 2 -> 1.5" or " price of 30 days 2 -> 3"; empty if
// something else does.
func difference(old, p Product) (text string) {
	before, now := old.prices(), p.prices()
	for _, days := range slices.Sorted(maps.Keys(now)) {
		was, sold := before[days]
		switch is := now[days]; {
		case !sold || was == is:
		case days == 0:
			text += fmt.Sprintf(" price %s -> %s", was, is)
		default:
			text += fmt.Sprintf(" price of %d days %s -> %s", days, was, is)
		}
	}
	return text
}

func jumped(old, p Product) bool {
	now := p.prices()
	for days, was := range old.prices() {
		if is, sold := now[days]; sold && was > 0 && is > 0 && (is/jump >= was || was/jump >= is) {
			return true
		}
	}
	return false
}
