package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// maxBytes is the largest traffic of a create call: a million GB.
const maxBytes = session.MaxGB * billing.GB

var providerName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// IsProviderName reports whether a text can be the name of a provider: 1 to 32
// of a-z, 0-9, _ and -.
func IsProviderName(name string) bool { return providerName.MatchString(name) }

// Problem is a fault that prevents a product from being sold.
type Problem struct {
	Index int    // of the product in the list
	Field string // such as price, durations[1].price or sources[0].provider
	Text  string
}

// Check validates a catalogue and returns every problem, one on a line. What it
// accepts can be ordered and paid for.
func Check(products []Product) error {
	var all []error
	for _, p := range Problems(products) {
		all = append(all, fmt.Errorf("product %d (%s): %s", p.Index+1, products[p.Index].No, p.Text))
	}
	return errors.Join(all...)
}

// Problems returns the problems that Check reports, each with its field.
func Problems(products []Product) []Problem {
	var all []Problem
	seen := map[string]bool{}
	for i, p := range products {
		add := func(field, format string, args ...any) {
			all = append(all, Problem{i, field, fmt.Sprintf(format, args...)})
		}
		if !session.IsLabel(p.No) {
			add("code", "the code must be 1 to 64 of A-Z, a-z, 0-9, _ and -")
		}
		if seen[p.No] {
			add("code", "the code is used twice")
		}
		seen[p.No] = true
		if p.Name == "" {
			add("name", "the name is missing")
		}
		if p.MinTier != "" && !slices.Contains(account.Tiers, p.MinTier) {
			add("min_tier", "the least tier must be trial, funded or verified, not %q", p.MinTier)
		}
		if p.FairUse < 0 || p.FairUse > maxBytes || p.FairUse > 0 && (p.Type != session.Static || p.Direct) {
			add("fair_use_gb", "the fair use must be up to %d GB, of a static product that is not direct", maxBytes/billing.GB)
		}
		p.checkPlaces(add)
		p.checkSources(add)
		switch p.Type {
		case session.Dynamic:
			p.checkTraffic(add)
		case session.Static:
			p.checkDurations(add)
		default:
			add("type", "the type must be dynamic or static, not %q", p.Type)
		}
	}
	return all
}

// adder records a problem of a field of a product.
type adder func(field, format string, args ...any)

func (p Product) checkPlaces(add adder) {
	for i, c := range p.Countries {
		if !IsCountryCode(c) {
			add(fmt.Sprintf("countries[%d]", i), "the country %q is not an upper case ISO 3166-1 alpha-2 code", c)
		}
	}
	if !slices.IsSorted(p.Countries) || len(slices.Compact(slices.Clone(p.Countries))) != len(p.Countries) {
		add("countries", "the countries must be sorted, each once")
	}
	for i, c := range p.Cities {
		if !session.IsLabel(c) {
			add(fmt.Sprintf("cities[%d]", i), "the city %q must be 1 to 64 of A-Z, a-z, 0-9, _ and -", c)
		}
	}
}

// checkSources requires that every listed place can be bought from a source.
func (p Product) checkSources(add adder) {
	if len(p.Sources) == 0 {
		add("sources", "the sources are missing")
		return
	}
	for i, s := range p.Sources {
		if !IsProviderName(s.Provider) {
			add(fmt.Sprintf("sources[%d].provider", i), "the provider of a source must be 1 to 32 of a-z, 0-9, _ and -, not %q",
				s.Provider)
		}
		if !slices.IsSorted(s.Countries) ||
			slices.ContainsFunc(s.Countries, func(c string) bool { return !IsCountryCode(c) }) {
			add(fmt.Sprintf("sources[%d].countries", i), "the countries of a source must be upper case ISO 3166-1 alpha-2 "+
				"codes, sorted")
		}
	}
	for i, c := range p.Countries {
		if !p.SellsPlace(session.Location{Country: c}) {
			add(fmt.Sprintf("countries[%d]", i), "no source has the country %q", c)
		}
	}
	for i, c := range p.Cities {
		if !p.SellsPlace(session.Location{City: c}) {
			add(fmt.Sprintf("cities[%d]", i), "no source has the city %q", c)
		}
	}
}

// MaxPrice is the highest price of a GB, and of an IP for a duration. The most that a session may have costs
// less than can be counted then, and the proof of the ledger checks its price.
const MaxPrice = 9000 * domain.Dollar

func (p Product) checkTraffic(add adder) {
	if p.Price <= 0 || p.Price > MaxPrice {
		add("price", "the price of a GB must be above 0 and at most %s, not %s", MaxPrice, p.Price)
	}
	if p.MinBytes <= 0 || p.MaxBytes < p.MinBytes || p.MaxBytes > maxBytes {
		add("min_traffic_gb", "the traffic must be bounded by 0 < min <= max <= %d GB, not %s and %s", maxBytes/billing.GB,
			domain.FormatDecimal(p.MinBytes, 9), domain.FormatDecimal(p.MaxBytes, 9))
	} else if p.MinBytes%session.TrafficStep != 0 || p.MaxBytes%session.TrafficStep != 0 {
		add("min_traffic_gb", "the bounds of the traffic must be GB with at most 3 decimals")
	} else if p.MinBytes%p.Step() != 0 || p.MaxBytes%p.Step() != 0 {
		field := "min_traffic_gb"
		if p.MinBytes%p.Step() == 0 {
			field = "max_traffic_gb"
		}
		add(field, "agents use the providers' own caps, which are multiples of %s GB: %s to %s GB must be too",
			domain.FormatDecimal(p.Step(), 9), domain.FormatDecimal(p.MinBytes, 9), domain.FormatDecimal(p.MaxBytes, 9))
	}
	if len(p.Durations) > 0 {
		add("durations", "a dynamic product has no durations")
	}
}

// placeless reports whether every source is declared without a place.
func (p Product) placeless() bool {
	return len(p.Sources) > 0 && !slices.ContainsFunc(p.Sources,
		func(s procurement.Source) bool { return s.Countries == nil || len(s.Countries) > 0 })
}

func (p Product) checkDurations(add adder) {
	if len(p.Durations) == 0 {
		add("durations", "the durations are missing")
	}
	if len(p.Countries) == 0 && !p.placeless() {
		add("countries", "the countries are missing: a static session needs one")
	}
	for i, d := range p.Durations {
		if d.Days < 1 || d.Days > session.MaxDays || i > 0 && d.Days <= p.Durations[i-1].Days {
			add(fmt.Sprintf("durations[%d].days", i), "the durations must be 1 to %d days, shortest first, each once",
				session.MaxDays)
		}
		if d.Price <= 0 || d.Price > MaxPrice {
			add(fmt.Sprintf("durations[%d].price", i), "the price of %d days must be above 0 and at most %s, not %s", d.Days,
				MaxPrice, d.Price)
		}
	}
	if p.MinQuantity < 1 || p.MaxQuantity < p.MinQuantity || p.MaxQuantity > session.MaxQuantity {
		add("min_quantity", "the quantity must be bounded by 1 <= min <= max <= %d, not %d and %d", session.MaxQuantity,
			p.MinQuantity, p.MaxQuantity)
	}
}
