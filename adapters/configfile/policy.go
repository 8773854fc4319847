package configfile

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"golang.org/x/net/idna"

	"agentproxy/domain/policy"
)

// defaultPolicy returns the rules of an operator who configures none.
func defaultPolicy() *policy.Shared {
	var b policy.Builder
	for _, port := range policy.DeniedPorts {
		_ = b.Deny(port) // as the tests prove, each is a rule
	}
	return &policy.Shared{Operator: b.Rules()}
}

// trialPolicy returns the rules for accounts on trial and their ports; nil if they reach every port.
func (c *check) trialPolicy(texts []string, dev bool) (*policy.Rules, []string) {
	if len(texts) == 0 && !dev {
		texts = policy.TrialPorts
	}
	if len(texts) == 1 && strings.TrimSpace(texts[0]) == "all" {
		return nil, nil
	}
	var b policy.Builder
	var ports []string
	for _, text := range texts {
		ports = append(ports, strings.TrimSpace(text))
		if err := b.Port(strings.TrimSpace(text)); err != nil {
			c.fault("AGENTPROXY_TRIAL_PORTS", "%v, or all alone", err)
		}
	}
	return b.Rules(), ports
}

// operatorPolicy reads the rules for all sessions. Ports that the operator does not name
// are denied by default.
func (l *loader) operatorPolicy(v value) *policy.Rules {
	var b policy.Builder
	m := v.fields(policyKeys)
	denied := m.get("denied_ports")
	if !denied.given() {
		for _, port := range policy.DeniedPorts {
			_ = b.Deny(port)
		}
	}
	for _, item := range denied.items() {
		text, ok := item.scalar()
		if !ok {
			continue
		}
		var ports policy.Builder // which takes ports alone
		if err := ports.Port(text); err != nil {
			item.fault("%v", err)
		} else {
			_ = b.Deny(text)
		}
	}
	return l.rules(m, &b)
}

// productPolicy reads the rules for sessions of one product; nil if there are none.
func (l *loader) productPolicy(v value) *policy.Rules {
	return l.rules(v.fields(productPolicyKeys), &policy.Builder{})
}

// rules reads the lists that all layers have.
func (l *loader) rules(m fields, b *policy.Builder) *policy.Rules {
	inFiles := 0
	ruleList(m.get("allow"), &inFiles, b.Allow)
	ruleList(m.get("deny"), &inFiles, b.Deny)
	for _, item := range m.get("ports").items() {
		if text, ok := item.scalar(); ok {
			if err := b.Port(text); err != nil {
				item.fault("%v", err)
			}
		}
	}
	return b.Rules()
}

// ruleList reads rules, and files of them. inFiles counts the rules in files.
func ruleList(v value, inFiles *int, add func(string) error) {
	for _, item := range v.items() {
		if _, ok := item.node.(*ast.MappingNode); ok {
			ruleFile(item.fields(ruleFileKeys).need("file"), inFiles, add)
			continue
		}
		if text, ok := item.scalar(); ok {
			if err := addRule(text, add); err != nil {
				item.fault("%v", err)
			}
		}
	}
}

// ruleFile reads a file with a rule in each line. Empty lines and those that begin with #
// are passed over. A relative name starts at the folder of the configuration.
func ruleFile(v value, inFiles *int, add func(string) error) {
	name, ok := v.scalar()
	if !ok {
		return
	}
	faults := 0
	fileLines(v, name, func(n int, text string) bool {
		if *inFiles++; *inFiles > policy.MaxHosts {
			v.fault("has more than %d rules, those of other files included", policy.MaxHosts)
			return false
		}
		err := addRule(text, add)
		return err == nil || v.lineFault(&faults, n, err)
	})
}

// addRule adds a rule, whose name may be an international one.
func addRule(text string, add func(string) error) error {
	if strings.ContainsFunc(text, func(c rune) bool { return c > 0x7e }) {
		name, below := strings.CutPrefix(text, ".")
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return fmt.Errorf("%+q is not an international name", text)
		}
		if text = ascii; below {
			text = "." + ascii
		}
	}
	return add(text)
}
