package codec

import (
	"encoding/json"
	"net/netip"

	"agentproxy/domain/exit"
)

// storedRule is a rule of exits in a column. What is not asked for is left out.
type storedRule struct {
	Agreed   bool           `json:"agreed,omitempty"`
	MaxRisk  *int           `json:"max_risk,omitempty"`
	Networks []exit.Network `json:"networks,omitempty"`
	ASNs     []uint32       `json:"asns,omitempty"`
	NotIn    []netip.Prefix `json:"not_in,omitempty"`
	Attempts int            `json:"attempts,omitempty"`
}

// JoinRule writes a rule; empty for one that takes every exit.
func JoinRule(r exit.Rule) string {
	if r.Empty() {
		return ""
	}
	text, err := json.Marshal(storedRule(r))
	if err != nil {
		panic("codec: a rule of exits is not JSON: " + err.Error())
	}
	return string(text)
}

// SplitRule reads what JoinRule wrote.
func SplitRule(stored string) (exit.Rule, error) {
	var r storedRule
	if stored == "" {
		return exit.Rule{}, nil
	}
	err := json.Unmarshal([]byte(stored), &r)
	return exit.Rule(r), err
}
