package exit

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"agentproxy/domain"
)

// The bounds of a rule.
const (
	MaxNotIn        = 64
	MaxASNs         = 64
	MaxAttempts     = 10
	DefaultAttempts = 3
)

// Rule is what an exit must be to be used. The zero value takes every exit. A fact that is not known passes no
// condition on it.
type Rule struct {
	Agreed   bool           // the sources agree on the country with each other and with what was sold
	MaxRisk  *int           // 0 to 100; nil: any
	Networks []Network      // it is in one of these; empty: any
	ASNs     []uint32       // it is of one of these; empty: any
	NotIn    []netip.Prefix // it is in none of these
	Attempts int            // how many exits a seller is asked for; 0: DefaultAttempts
}

// Empty reports whether the rule takes every exit.
func (r Rule) Empty() bool {
	return !r.Agreed && r.MaxRisk == nil && len(r.Networks) == 0 && len(r.ASNs) == 0 && len(r.NotIn) == 0
}

// Key returns a text that equal rules have in common.
func (r Rule) Key() string {
	risk := "any"
	if r.MaxRisk != nil {
		risk = strconv.Itoa(*r.MaxRisk)
	}
	r.MaxRisk = nil
	return fmt.Sprint(risk, r)
}

// Tries returns how many exits a seller is asked for.
func (r Rule) Tries() int { return cmp.Or(r.Attempts, DefaultAttempts) }

// Fields are the facts that sources can have.
type Fields struct{ Country, Network, ASN, Listed bool }

// And returns the facts that either of two have.
func (f Fields) And(g Fields) Fields {
	return Fields{f.Country || g.Country, f.Network || g.Network, f.ASN || g.ASN, f.Listed || g.Listed}
}

// Check returns what is wrong with a rule where sources can have some facts, as domain.ErrInvalid. The fields are
// named under prefix.
func (r Rule) Check(prefix string, can Fields) error {
	var issues []domain.FieldIssue
	add := func(field, format string, args ...any) {
		issues = append(issues, domain.FieldIssue{Field: prefix + field, Issue: fmt.Sprintf(format, args...)})
	}
	const unmeasured = "cannot be measured here: the operator has no source of it; leave it out"
	if r.Agreed && !can.Country {
		add("agreed", unmeasured)
	}
	switch {
	case r.MaxRisk == nil:
	case *r.MaxRisk < 0 || *r.MaxRisk > 100:
		add("max_risk", "must be a whole number from 0 to 100")
	case !can.Network && !can.Listed:
		add("max_risk", unmeasured)
	}
	for i, n := range r.Networks {
		if _, err := ParseNetwork(string(n)); err != nil {
			add(fmt.Sprintf("network_types[%d]", i), "%v", err)
		}
	}
	if len(r.Networks) > 0 && !can.Network {
		add("network_types", unmeasured)
	}
	switch {
	case len(r.ASNs) > MaxASNs || slices.Contains(r.ASNs, 0):
		add("asns", "must have at most %d numbers of autonomous systems, 1 to 4294967295", MaxASNs)
	case len(r.ASNs) > 0 && !can.ASN:
		add("asns", unmeasured)
	}
	if len(r.NotIn) > MaxNotIn {
		add("not_in", "must have at most %d networks", MaxNotIn)
	}
	if r.Attempts < 0 || r.Attempts > MaxAttempts {
		add("attempts", "must be a whole number from 1 to %d", MaxAttempts)
	}
	if issues == nil {
		return nil
	}
	return domain.InvalidFields(issues...)
}

// ParseNotIn returns the network of a text, which has no bits set beside its prefix.
func ParseNotIn(text string) (netip.Prefix, error) { return parsePrefix(text) }

// Fails names the condition that an exit does not meet; empty: it meets all.
func (r Rule) Fails(m Measured) string {
	agreed, known := m.Agreed()
	if r.Agreed && !(known && agreed) {
		return "agreed"
	}
	if risk, known := m.Risk(); r.MaxRisk != nil && (!known || risk > *r.MaxRisk) {
		return "max_risk"
	}
	if len(r.Networks) > 0 && !slices.Contains(r.Networks, m.Network) {
		return "network_types"
	}
	if len(r.ASNs) > 0 && !slices.Contains(r.ASNs, m.ASN) {
		return "asns"
	}
	if slices.ContainsFunc(r.NotIn, func(p netip.Prefix) bool { return p.Contains(m.IP.Unmap()) }) {
		return "not_in"
	}
	return ""
}

// ErrNotMet refuses a call when no exit meets its rule.
var ErrNotMet = &domain.Error{Kind: domain.Conflict, Code: "EXIT_QUALITY_NOT_MET",
	Message: "no exit of this place meets require; ask for less, or choose another place or product"}
