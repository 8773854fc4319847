package account

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentproxy/domain"
)

// Tier is how far an account is trusted.
type Tier string

// The tiers, the lowest first.
const (
	TrialTier    Tier = "trial"
	FundedTier   Tier = "funded"   // own money of at least a Funding was credited
	VerifiedTier Tier = "verified" // the operator has evidence of who the agent is
)

// Tiers lists every tier, the lowest first.
var Tiers = []Tier{TrialTier, FundedTier, VerifiedTier}

// ErrTierRequired refuses a purchase to an account of a lower tier than the product's.
var ErrTierRequired = &domain.Error{Kind: domain.Forbidden, Code: "TIER_REQUIRED",
	Message: "this product is for accounts of a higher tier; recharge, or ask the operator to verify the account"}

// MaxEvidence is the largest number of characters of the evidence for a verification.
const MaxEvidence = 500

// Funding is the sum of own money, credited by transfers and positive adjustments, from which an account is
// funded: a payment of next to nothing is not enough. At 0 any amount is.
type Funding domain.Money

// Tier returns the tier of the account; credited is the sum of own money that was ever credited to it.
func (a Agent) Tier(credited domain.Money, from Funding) Tier {
	switch {
	case a.VerifiedFor != "":
		return VerifiedTier
	case credited > 0 && credited >= domain.Money(from):
		return FundedTier
	}
	return TrialTier
}

// Require returns ErrTierRequired if the tier is lower than the least one. An empty least is trial.
func (t Tier) Require(least Tier) error {
	if slices.Index(Tiers, t) >= slices.Index(Tiers, least) {
		return nil
	}
	return ErrTierRequired.With("tier", string(least))
}

// SetTier verifies the account with the operator's evidence, or withdraws the verification: the other
// tiers follow from the money that was credited, so they are accepted only as what is left then.
func (a Agent) SetTier(to Tier, evidence string, credited domain.Money, from Funding) (Agent, error) {
	evidence = strings.TrimSpace(evidence)
	if to == VerifiedTier {
		if evidence == "" || utf8.RuneCountInString(evidence) > MaxEvidence || hasControl(evidence, "") {
			return a, domain.InvalidField("evidence", "must have 1 to %d characters and no control characters", MaxEvidence)
		}
		a.VerifiedFor = evidence
		return a, nil
	}
	without := a
	without.VerifiedFor = ""
	switch left := without.Tier(credited, from); {
	case evidence != "":
		return a, domain.InvalidField("evidence", "is for the tier verified alone")
	case !slices.Contains(Tiers, to):
		return a, domain.InvalidField("tier", "must be trial, funded or verified")
	case to != left:
		return a, domain.InvalidField("tier", "must be %s or verified: without a verification the tier follows "+
			"from the money that was credited", left)
	}
	return without, nil
}
