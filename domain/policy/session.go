package policy

import (
	"fmt"

	"agentproxy/domain"
)

// The bounds of the lists.
const (
	MaxRules = 1000      // of a session, allow and deny together
	MaxTrial = 100       // of a session of an account on trial: as MaxRules, and as MaxPorts
	MaxPorts = 1000      // of a session: entries of ports
	MaxHosts = 1_000_000 // of the operator or of a product, in all of their files together
)

// Own is what an agent sets for a session, as it is stored. The zero Own is off.
type Own struct {
	Mode               Mode
	Allow, Deny, Ports []string
}

// WithMode returns the policy with the mode Enforce if it has none.
func (o Own) WithMode() Own {
	if o.Mode == "" {
		o.Mode = Enforce
	}
	return o
}

// InForce reports whether the rules are checked.
func (o Own) InForce() bool { return o.Mode == Report || o.Mode == Enforce }

// Rules returns the number of rules.
func (o Own) Rules() int { return len(o.Allow) + len(o.Deny) + len(o.Ports) }

// Check returns INVALID_REQUEST with every entry that is wrong; prefix precedes the names
// of fields.
func (o Own) Check(prefix string) error {
	_, err := o.build(prefix)
	return err
}

// Compile returns the rules, nil if they are off. It is called for what Check accepted; a
// rule that is wrong all the same is left out.
func (o Own) Compile() *Rules {
	if !o.InForce() {
		return nil
	}
	b, _ := o.build("")
	return b.Rules()
}

// CheckTrial refuses more rules than an account on trial may set. Prefix is as of Check.
func (o Own) CheckTrial(prefix string) error {
	var issues []domain.FieldIssue
	if n := len(o.Allow) + len(o.Deny); n > MaxTrial {
		issues = append(issues, domain.FieldIssue{Field: prefix + "deny",
			Issue: fmt.Sprintf("allow and deny may have %d rules together on trial, not %d; recharge for %d", MaxTrial, n,
				MaxRules)})
	}
	if n := len(o.Ports); n > MaxTrial {
		issues = append(issues, domain.FieldIssue{Field: prefix + "ports",
			Issue: fmt.Sprintf("may have %d entries on trial, not %d; recharge for %d", MaxTrial, n, MaxPorts)})
	}
	if issues != nil {
		return domain.InvalidFields(issues...)
	}
	return nil
}

// build collects the rules, and the issues of those that are wrong.
func (o Own) build(prefix string) (*Builder, error) {
	var b Builder
	var issues []domain.FieldIssue
	add := func(field string, texts []string, add func(string) error) {
		for i, text := range texts {
			if err := add(text); err != nil {
				issues = append(issues, domain.FieldIssue{Field: fmt.Sprintf("%s%s[%d]", prefix, field, i), Issue: err.Error()})
			}
		}
	}
	switch o.Mode {
	case Off, Report, Enforce, "":
	default:
		issues = append(issues, domain.FieldIssue{Field: prefix + "mode", Issue: "must be off, report or enforce"})
	}
	if n := len(o.Allow) + len(o.Deny); n > MaxRules {
		issues = append(issues, domain.FieldIssue{Field: prefix + "deny",
			Issue: fmt.Sprintf("allow and deny may have %d rules together, not %d", MaxRules, n)})
		return &b, domain.InvalidFields(issues...)
	}
	if len(o.Ports) > MaxPorts {
		issues = append(issues, domain.FieldIssue{Field: prefix + "ports",
			Issue: fmt.Sprintf("may have %d entries", MaxPorts)})
		return &b, domain.InvalidFields(issues...)
	}
	add("allow", o.Allow, b.Allow)
	add("deny", o.Deny, b.Deny)
	add("ports", o.Ports, b.Port)
	if issues != nil {
		return &b, domain.InvalidFields(issues...)
	}
	return &b, nil
}

// TrialPorts are the ports that accounts on trial reach unless the configuration sets others: those of the web. Mail
// submission, databases, remote control and the like need an account that has paid.
var TrialPorts = []string{"80", "443", "8080", "8443"}

// DeniedPorts are the ports that the operator denies unless the configuration sets
// others: remote shells and desktops, mail, file shares and IRC.
var DeniedPorts = []string{"22", "23", "25", "110", "143", "445", "465", "587", "993", "995", "3389", "6660-6669"}
