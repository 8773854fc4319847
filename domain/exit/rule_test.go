package exit_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/exit"
)

var everything = exit.Fields{Country: true, Network: true, ASN: true, Listed: true}

// What is not known passes no condition on it.
func TestRuleFails(t *testing.T) {
	t.Parallel()
	ip := netip.MustParseAddr("192.0.2.7")
	good := exit.Measured{IP: ip, Declared: "DE", Known: exit.Known{Country: "DE", ASN: 7, Network: exit.Residential, Listed: []string{}}}
	listed, elsewhere, unknown := good, good, exit.Measured{IP: ip}
	listed.Listed, elsewhere.Country = []string{"a"}, "LT"
	for name, c := range map[string]struct {
		rule exit.Rule
		m    exit.Measured
		want string
	}{
		"no rule":                     {exit.Rule{}, unknown, ""},
		"agreed":                      {exit.Rule{Agreed: true}, good, ""},
		"elsewhere":                   {exit.Rule{Agreed: true}, elsewhere, "agreed"},
		"place unknown":               {exit.Rule{Agreed: true}, unknown, "agreed"},
		"risk at the bound":           {exit.Rule{MaxRisk: new(40)}, listed, ""},
		"risk above it":               {exit.Rule{MaxRisk: new(39)}, listed, "max_risk"},
		"no risk":                     {exit.Rule{MaxRisk: new(0)}, good, ""},
		"risk unknown":                {exit.Rule{MaxRisk: new(100)}, unknown, "max_risk"},
		"one of the networks":         {exit.Rule{Networks: []exit.Network{exit.Mobile, exit.Residential}}, good, ""},
		"another network":             {exit.Rule{Networks: []exit.Network{exit.Mobile}}, good, "network_types"},
		"network unknown":             {exit.Rule{Networks: exit.Networks}, unknown, "network_types"},
		"one of the systems":          {exit.Rule{ASNs: []uint32{1, 7}}, good, ""},
		"another system":              {exit.Rule{ASNs: []uint32{1}}, good, "asns"},
		"in none of the networks":     {exit.Rule{NotIn: []netip.Prefix{netip.MustParsePrefix("192.0.3.0/24")}}, good, ""},
		"in one of them":              {exit.Rule{NotIn: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, unknown, "not_in"},
		"in one, written in IPv6":     {exit.Rule{NotIn: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}, exit.Measured{IP: netip.MustParseAddr("::ffff:192.0.2.7")}, "not_in"},
		"the first that fails":        {exit.Rule{Agreed: true, ASNs: []uint32{1}}, good, "asns"},
		"all conditions, all of them": {exit.Rule{Agreed: true, MaxRisk: new(0), Networks: exit.Networks, ASNs: []uint32{7}}, good, ""},
	} {
		if got := c.rule.Fails(c.m); got != c.want {
			t.Errorf("%s: fails %q, want %q", name, got, c.want)
		}
	}
}

// What is out of bounds or cannot be measured is refused by its field, and nothing is ignored.
func TestRuleCheck(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		rule exit.Rule
		can  exit.Fields
	}{
		"":                            {exit.Rule{Agreed: true, MaxRisk: new(100), Networks: exit.Networks, ASNs: []uint32{1}, Attempts: 10}, everything},
		"require.agreed":              {exit.Rule{Agreed: true}, exit.Fields{Network: true, ASN: true, Listed: true}},
		"require.max_risk":            {exit.Rule{MaxRisk: new(5)}, exit.Fields{Country: true, ASN: true}},
		"require.max_risk ":           {exit.Rule{MaxRisk: new(101)}, everything},
		"require.max_risk  ":          {exit.Rule{MaxRisk: new(-1)}, everything},
		"require.network_types":       {exit.Rule{Networks: exit.Networks}, exit.Fields{Country: true, ASN: true, Listed: true}},
		"require.network_types[1]":    {exit.Rule{Networks: []exit.Network{exit.ISP, "unknown"}}, everything},
		"require.asns":                {exit.Rule{ASNs: []uint32{1}}, exit.Fields{Country: true, Network: true, Listed: true}},
		"require.asns ":               {exit.Rule{ASNs: make([]uint32, 65)}, everything},
		"require.not_in":              {exit.Rule{NotIn: make([]netip.Prefix, 65)}, everything},
		"require.attempts":            {exit.Rule{Attempts: 11}, everything},
		"require.attempts ":           {exit.Rule{Attempts: -1}, everything},
		"require.agreed,require.asns": {exit.Rule{Agreed: true, ASNs: []uint32{0}}, exit.Fields{}},
	} {
		var e *domain.Error
		var fields []string
		if errors.As(c.rule.Check("require.", c.can), &e) {
			for _, issue := range e.Details["fields"].([]domain.FieldIssue) {
				fields = append(fields, issue.Field)
			}
		}
		if got := strings.Join(fields, ","); got != strings.TrimRight(want, " ") {
			t.Errorf("%+v: %q, want %q", c.rule, got, want)
		}
	}
	if !(exit.Rule{Attempts: 3}).Empty() || (exit.Rule{MaxRisk: new(100)}).Empty() {
		t.Error("a rule is empty that has a condition, or the other way round")
	}
}
