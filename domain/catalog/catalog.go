// Package catalog holds what is sold: products, the regions they are sold in,
// and which of them fits a use case.
package catalog

import (
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// ErrProductNotFound says that no product has that code.
var ErrProductNotFound = &domain.Error{Kind: domain.NotFound, Code: "PRODUCT_NOT_FOUND",
	Message: "no product has this product_no; list the products to find the right one"}

// ErrOutOfStock says that there is nothing left to give.
var ErrOutOfStock = &domain.Error{Kind: domain.Conflict, Code: "PRODUCT_OUT_OF_STOCK", Retryable: true,
	Message: "nothing is in stock right now; try again later or choose another product"}

// Product is one thing that is sold.
type Product struct {
	No          string
	Name        string
	Description string
	Type        session.Type
	Sources     []procurement.Source // where it can be bought, in the order of the configuration
	// Direct: the session's address is the provider's own proxy and not the
	// gateway; what passes is counted by the provider.
	Direct      bool
	Price       domain.Money // dynamic: a GB
	Durations   []Duration   // static: shortest first
	Countries   []string     // ISO 3166-1 alpha-2, upper case, sorted
	Cities      []string     // none listed: any city code is taken
	MinQuantity int          // static: IPs
	MaxQuantity int
	MinBytes    int64 // dynamic
	MaxBytes    int64
	Async       bool
	Available   bool
}

// Duration is one length a static product is sold for, and the price of one IP.
type Duration struct {
	Days  int
	Price domain.Money
}

// ListPrice is the price that the product list shows: a GB, or one IP for the
// shortest duration.
func (p Product) ListPrice() domain.Money {
	if p.Type == session.Static {
		return p.Durations[0].Price
	}
	return p.Price
}

// PriceFor is what one IP costs for so many days.
func (p Product) PriceFor(days int) (domain.Money, bool) {
	for _, d := range p.Durations {
		if d.Days == days {
			return d.Price, true
		}
	}
	return 0, false
}

// Sells reports whether the product is sold in a country, in any case.
func (p Product) Sells(country string) bool {
	country = strings.ToUpper(country)
	for _, c := range p.Countries {
		if c == country {
			return true
		}
	}
	return false
}

// Region is a country that something is sold in.
type Region struct {
	Code   string // ISO 3166-1 alpha-2
	Name   string
	Cities []string
	Types  []session.Type
}
