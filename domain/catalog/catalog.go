// Package catalog holds the products, the regions they are sold in, and the
// recommendation of a product for a use case.
package catalog

import (
	"slices"
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// ErrProductNotFound is returned for an unknown product code.
var ErrProductNotFound = &domain.Error{Kind: domain.NotFound, Code: "PRODUCT_NOT_FOUND",
	Message: "no product has this product_no; list the products to find the right one"}

// ErrOutOfStock is returned if no source can deliver.
var ErrOutOfStock = &domain.Error{Kind: domain.Conflict, Code: "PRODUCT_OUT_OF_STOCK", Retryable: true,
	Message: "nothing is in stock right now; try again later or choose another product"}

// Product is an item of the catalogue.
type Product struct {
	No          string
	Name        string
	Description string
	Type        session.Type
	Sources     []procurement.Source // where it can be bought, in the order of the configuration
	// Direct is set if agents connect to the provider's own proxy instead of the
	// gateway; the provider then counts the traffic.
	Direct      bool
	Price       domain.Money // dynamic: a GB
	Durations   []Duration   // static: shortest first
	Countries   []string     // ISO 3166-1 alpha-2, upper case, sorted
	Cities      []string     // empty if any city code is accepted
	MinQuantity int          // static: IPs
	MaxQuantity int
	MinBytes    int64 // dynamic
	MaxBytes    int64
	// StepBytes is what the traffic must be a multiple of; 0 means session.TrafficStep.
	// A direct product has the unit of its providers' caps: of anything else they would
	// let more through than is paid for.
	StepBytes int64
	// OwnMoneyOnly is set if trial credit does not pay for the product: a delivery costs
	// the operator money at a provider.
	OwnMoneyOnly bool
	MinTier      account.Tier // the least tier that may buy it; empty: any
	FairUse      int64        // static: bytes that an IP may carry for each 30 days bought; 0: no limit
	Async        bool
	Available    bool
}

// FundingSource returns what may pay for a delivery of a provider. A session may have been sold by
// a provider that the product no longer names; costly is whether that one asks for money.
func (p Product) FundingSource(provider string, costly bool) billing.FundingSource {
	named := slices.ContainsFunc(p.Sources, func(s procurement.Source) bool { return s.Provider == provider })
	if p.OwnMoneyOnly || costly && !named {
		return billing.OwnMoney
	}
	return billing.AnyFunds
}

// fairUseDays is the time that FairUse is for.
const fairUseDays = 30

// FairUseOf returns how many bytes a number of IPs may carry that are bought for a number of days; 0
// without a limit.
func (p Product) FairUseOf(ips, days int) int64 {
	return domain.MulDivUp(p.FairUse, int64(ips)*int64(days), fairUseDays)
}

// Source returns how the product is bought of a provider.
func (p Product) Source(provider string) procurement.Source {
	for _, from := range p.Sources {
		if from.Provider == provider {
			return from
		}
	}
	return procurement.Source{Provider: provider}
}

// Duration is a duration that a static product is sold for, and the price of
// one IP.
type Duration struct {
	Days  int
	Price domain.Money
}

// ListPrice returns the price in the product list: of a GB, or of one IP for
// the shortest duration.
func (p Product) ListPrice() domain.Money {
	if p.Type == session.Static {
		return p.Durations[0].Price
	}
	return p.Price
}

// Step returns the number of bytes that the traffic of a dynamic product must be a
// multiple of.
func (p Product) Step() int64 { return max(p.StepBytes, session.TrafficStep) }

// CheckTopUp returns INVALID_REQUEST, which names a field, for a number of bytes that cannot be bought
// at once.
func (p Product) CheckTopUp(bytes int64, field string) error {
	switch {
	case bytes < p.MinBytes || bytes > p.MaxBytes:
		return domain.InvalidField(field, "must be %s to %s GB for this product", domain.FormatDecimal(p.MinBytes, 9),
			domain.FormatDecimal(p.MaxBytes, 9))
	case bytes%p.Step() != 0:
		return domain.InvalidField(field, "must be a multiple of %s GB: this product is sold in whole units of it",
			domain.FormatDecimal(p.Step(), 9))
	}
	return nil
}

// StepOf returns the smallest traffic that is a multiple of every unit, and can be
// asked for. A unit of 0 means no cap, and does not count.
func StepOf(units ...int64) int64 {
	step := int64(session.TrafficStep)
	for _, unit := range units {
		if unit > 0 {
			step = step / gcd(step, unit) * unit
		}
	}
	return step
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// PriceFor returns the price of one IP for a duration in days. It returns false
// if the product is not sold for that duration.
func (p Product) PriceFor(days int) (domain.Money, bool) {
	for _, d := range p.Durations {
		if d.Days == days {
			return d.Price, true
		}
	}
	return 0, false
}

// Sells reports whether the product is sold in a country, in any case of
// letters.
func (p Product) Sells(country string) bool {
	country = strings.ToUpper(country)
	for _, c := range p.Countries {
		if c == country {
			return true
		}
	}
	return false
}

// Region is a country that products are sold in.
type Region struct {
	Code   string // ISO 3166-1 alpha-2
	Name   string
	Cities []string
	Types  []session.Type
}
