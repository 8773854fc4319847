package catalog

import (
	"strings"

	"agentproxy/domain"
	"agentproxy/domain/session"
)

// Filter narrows the product list; the zero value does not.
type Filter struct {
	Type          session.Type // empty: both
	Country       string       // ISO 3166-1 alpha-2, upper case; empty: any
	AvailableOnly bool
}

// NewFilter parses the filter of a product list: typ is dynamic, static, all or
// empty, country has two letters in any case or none. It returns
// INVALID_REQUEST with every fault for other values. A country without products
// is valid.
func NewFilter(typ, country string, availableOnly bool) (Filter, error) {
	var issues []domain.FieldIssue
	switch typ {
	case "all":
		typ = ""
	case "", string(session.Dynamic), string(session.Static):
	default:
		issues = append(issues, domain.FieldIssue{Field: "type", Issue: "must be dynamic, static or all"})
	}
	country = strings.ToUpper(country)
	if country != "" && !IsCountryCode(country) {
		issues = append(issues, domain.FieldIssue{Field: "country_code", Issue: "must be an ISO 3166-1 alpha-2 code"})
	}
	if issues != nil {
		return Filter{}, domain.InvalidFields(issues...)
	}
	return Filter{Type: session.Type(typ), Country: country, AvailableOnly: availableOnly}, nil
}

// Apply returns the products that match, in their order.
func (f Filter) Apply(products []Product) []Product {
	var out []Product
	for _, p := range products {
		if (f.Type == "" || p.Type == f.Type) && (f.Country == "" || p.Sells(f.Country)) && (p.Available ||
			!f.AvailableOnly) {
			out = append(out, p)
		}
	}
	return out
}

// IsCountryCode reports whether s is two upper case letters.
func IsCountryCode(s string) bool {
	return len(s) == 2 && 'A' <= min(s[0], s[1]) && max(s[0], s[1]) <= 'Z'
}
