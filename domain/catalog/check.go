package catalog

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

// maxBytes is the most traffic that a create call can ask for: a million GB.
const maxBytes = 1_000_000 * billing.GB

// milliGB is the step of traffic_gb: three decimals.
const milliGB = billing.GB / 1000

// maxDays is the longest duration that a create call can ask for.
const maxDays = 3650

var wellFormed = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check validates a catalogue before it is sold from: what it lets through can
// be ordered and paid for. It returns every problem, one line each.
func Check(products []Product) error {
	var all []error
	seen := map[string]bool{}
	for i, p := range products {
		add := func(format string, args ...any) {
			all = append(all, fmt.Errorf("product %d (%s): %s", i+1, p.No, fmt.Sprintf(format, args...)))
		}
		if !wellFormed.MatchString(p.No) {
			add("the code must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
		}
		if seen[p.No] {
			add("the code is used twice")
		}
		seen[p.No] = true
		if p.Name == "" {
			add("the name is missing")
		}
		if len(p.Sources) == 0 {
			add("the sources are missing: who delivers it")
		}
		for _, source := range p.Sources {
			if source.Provider == "" {
				add("a source names no provider")
			}
		}
		p.checkPlaces(add)
		switch p.Type {
		case session.Dynamic:
			p.checkTraffic(add)
		case session.Static:
			p.checkDurations(add)
		default:
			add("the type must be dynamic or static, not %q", p.Type)
		}
	}
	return errors.Join(all...)
}

// adder notes a problem of a product.
type adder func(format string, args ...any)

func (p Product) checkPlaces(add adder) {
	for _, c := range p.Countries {
		if !isCode(c) {
			add("the country %q is no upper case ISO 3166-1 alpha-2 code", c)
		}
	}
	if !slices.IsSorted(p.Countries) || len(slices.Compact(slices.Clone(p.Countries))) != len(p.Countries) {
		add("the countries must be sorted, each once")
	}
	for _, c := range p.Cities {
		if !wellFormed.MatchString(c) {
			add("the city %q must be 1 to 64 of A-Z, a-z, 0-9, _ and -", c)
		}
	}
}

func (p Product) checkTraffic(add adder) {
	if p.Price <= 0 {
		add("the price of a GB must be above 0, not %s", p.Price)
	}
	if p.MinBytes <= 0 || p.MaxBytes < p.MinBytes || p.MaxBytes > maxBytes {
		add("the traffic must be bounded by 0 < min <= max <= %d GB, not %s and %s", maxBytes/billing.GB,
			domain.FormatDecimal(p.MinBytes, 9), domain.FormatDecimal(p.MaxBytes, 9))
	} else if p.MinBytes%milliGB != 0 || p.MaxBytes%milliGB != 0 {
		add("the bounds of the traffic must be GB with at most 3 decimals")
	} else if p.Price > 0 && billing.TrafficHold(p.MaxBytes, p.Price) == math.MaxInt64 {
		add("the most traffic costs more than can be counted")
	}
	if len(p.Durations) > 0 {
		add("a dynamic product has no durations")
	}
}

func (p Product) checkDurations(add adder) {
	if len(p.Durations) == 0 {
		add("the durations are missing")
	}
	if len(p.Countries) == 0 {
		add("the countries are missing: a static session needs one")
	}
	for i, d := range p.Durations {
		if d.Days < 1 || d.Days > maxDays || i > 0 && d.Days <= p.Durations[i-1].Days {
			add("the durations must be 1 to %d days, shortest first, each once", maxDays)
		}
		if d.Price <= 0 {
			add("the price of %d days must be above 0, not %s", d.Days, d.Price)
		} else if billing.IPCost(session.MaxQuantity, d.Price) == math.MaxInt64 {
			add("%d IPs for %d days cost more than can be counted", session.MaxQuantity, d.Days)
		}
	}
	if p.MinQuantity < 1 || p.MaxQuantity < p.MinQuantity || p.MaxQuantity > session.MaxQuantity {
		add("the quantity must be bounded by 1 <= min <= max <= %d, not %d and %d", session.MaxQuantity, p.MinQuantity, p.MaxQuantity)
	}
}
