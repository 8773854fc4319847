package sessionview

import (
	"fmt"

	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/exit"
)

// Require is what an exit must be, as a call asks for it. Its risk is a number, since clients that are generated leave
// out an integer of 0.
type Require struct {
	Agreed       bool            `json:"agreed,omitempty" doc:"Measured where it was sold."`
	MaxRisk      value.Decimal   `json:"max_risk,omitempty" minimum:"0" maximum:"100" doc:"Of exit.risk; a whole number."`
	NetworkTypes []string        `json:"network_types,omitempty" nullable:"true" maxItems:"4" doc:"One of these."`
	ASNs         []value.Decimal `json:"asns,omitempty" nullable:"true" maxItems:"64" doc:"One of these autonomous systems."`
	NotIn        []string        `json:"not_in,omitempty" nullable:"true" maxItems:"64" doc:"Networks (CIDR) that have it not."`
	Attempts     value.Decimal   `json:"attempts,omitempty" minimum:"1" maximum:"10" multipleOf:"1" doc:"Exits that a seller is asked for; 3 is the default."`
}

// Rule returns what is asked for; nil if nothing is given.
func (r *Require) Rule() (*exit.Rule, error) {
	if r == nil {
		return nil, nil
	}
	rule := exit.Rule{Agreed: r.Agreed}
	var issues []domain.FieldIssue
	add := func(field, issue string) {
		issues = append(issues, domain.FieldIssue{Field: "require." + field, Issue: issue})
	}
	if r.MaxRisk.Given() {
		if rule.MaxRisk = r.MaxRisk.Integer(); *rule.MaxRisk < 0 {
			add("max_risk", "must be a whole number from 0 to 100")
		}
	}
	if r.Attempts.Given() {
		if rule.Attempts = *r.Attempts.Integer(); rule.Attempts < 1 {
			add("attempts", "must be a whole number from 1 to 10")
		}
	}
	for _, n := range r.NetworkTypes {
		rule.Networks = append(rule.Networks, exit.Network(n))
	}
	for i, d := range r.ASNs {
		n := d.Integer()
		if n == nil || *n < 1 || *n > 1<<32-1 {
			add(fmt.Sprintf("asns[%d]", i), "must be the number of an autonomous system, 1 to 4294967295")
			continue
		}
		rule.ASNs = append(rule.ASNs, uint32(*n))
	}
	for i, text := range r.NotIn {
		p, err := exit.ParseNotIn(text)
		if err != nil {
			add(fmt.Sprintf("not_in[%d]", i), err.Error())
		}
		rule.NotIn = append(rule.NotIn, p)
	}
	if issues != nil {
		return nil, domain.InvalidFields(issues...)
	}
	return &rule, nil
}
