package main

import (
	"encoding/json"
	"fmt"

	"agentproxy/adapters/apiclient"
)

// requirement is what exits must be. Without any of its flags the rule of the session stays.
type requirement struct {
	RequireAgreed   bool     `help:"Exits that were measured where they are sold."`
	RequireMaxRisk  string   `help:"Exits of this risk at most, 0 to 100."`
	RequireNetwork  []string `help:"Exits in residential, mobile, isp or hosting networks, separated by commas."`
	RequireASN      []string `name:"require-asn" help:"Exits of these autonomous systems, separated by commas."`
	RequireNotIn    []string `help:"Exits in none of these networks (CIDR), separated by commas."`
	RequireAttempts int      `help:"How many exits a seller is asked for, 1 to 10; 3 is the default."`
}

// rule returns what the flags ask for.
func (r requirement) rule() (apiclient.Require, error) {
	rule := apiclient.Require{Agreed: r.RequireAgreed, MaxRisk: json.Number(r.RequireMaxRisk),
		NetworkTypes: r.RequireNetwork, NotIn: r.RequireNotIn, Attempts: r.RequireAttempts}
	for _, n := range r.RequireASN {
		rule.Asns = append(rule.Asns, json.Number(n))
	}
	if !areNumbers(append(rule.Asns, rule.MaxRisk)...) {
		return rule, fmt.Errorf("%w: --require-max-risk and --require-asn take numbers", errMisuse)
	}
	return rule, nil
}

// given reports whether any flag was used.
func (r requirement) given() bool {
	return r.RequireAgreed || r.RequireMaxRisk != "" || r.RequireNetwork != nil || r.RequireASN != nil ||
		r.RequireNotIn != nil || r.RequireAttempts != 0
}
