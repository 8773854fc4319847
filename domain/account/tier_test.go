package account_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

func TestTier(t *testing.T) {
	for _, c := range []struct {
		agent    account.Agent
		credited domain.Money
		from     account.Funding
		want     account.Tier
	}{
		{account.Agent{}, 0, 0, account.TrialTier},
		{account.Agent{}, 1, 0, account.FundedTier},
		{account.Agent{}, 1, account.Funding(domain.Dollar), account.TrialTier},
		{account.Agent{}, domain.Dollar - 1, account.Funding(domain.Dollar), account.TrialTier},
		{account.Agent{}, domain.Dollar, account.Funding(domain.Dollar), account.FundedTier},
		{account.Agent{VerifiedFor: "contract 12"}, 0, 0, account.VerifiedTier},
		{account.Agent{VerifiedFor: "contract 12"}, 1, account.Funding(domain.Dollar), account.VerifiedTier},
	} {
		if got := c.agent.Tier(c.credited, c.from); got != c.want {
			t.Errorf("%+v, credited %s of %d, is %s, want %s", c.agent, c.credited, c.from, got, c.want)
		}
	}
}

func TestATierIncludesThoseBelow(t *testing.T) {
	for i, least := range account.Tiers {
		for j, has := range account.Tiers {
			err := has.Require(least)
			if (err == nil) != (j >= i) {
				t.Errorf("%s for %s: %v", has, least, err)
			}
			if e, _ := errors.AsType[*domain.Error](err); e != nil && (!e.Is(account.ErrTierRequired) || e.Details["tier"] != string(least)) {
				t.Errorf("%s for %s: %v %v", has, least, err, e.Details)
			}
		}
	}
	if err := account.TrialTier.Require(""); err != nil {
		t.Errorf("a product without a tier: %v", err)
	}
}

func TestSetTier(t *testing.T) {
	verified := account.Agent{VerifiedFor: "contract 12"}
	for _, c := range []struct {
		claim    string
		agent    account.Agent
		to       account.Tier
		evidence string
		credited domain.Money
		want     string   // the evidence afterwards
		faults   []string // of a refusal
	}{
		{"with evidence it is verified", account.Agent{}, account.VerifiedTier, " contract 12 ", domain.Dollar - 1, "contract 12", nil},
		{"without evidence it is not", account.Agent{}, account.VerifiedTier, "  ", domain.Dollar, "", []string{"evidence"}},
		{"evidence is bounded", account.Agent{}, account.VerifiedTier, strings.Repeat("x", 501), domain.Dollar, "", []string{"evidence"}},
		{"evidence has no control characters", account.Agent{}, account.VerifiedTier, "a\x1b[2J", domain.Dollar, "", []string{"evidence"}},
		{"an account with money goes back to funded", verified, account.FundedTier, "", domain.Dollar, "", nil},
		{"one without goes back to trial", verified, account.TrialTier, "", domain.Dollar - 1, "", nil},
		{"money that never came is not claimed", verified, account.FundedTier, "", domain.Dollar - 1, "contract 12", []string{"tier"}},
		{"money that came is not forgotten", verified, account.TrialTier, "", domain.Dollar, "contract 12", []string{"tier"}},
		{"an unknown tier is refused", verified, "gold", "", domain.Dollar, "contract 12", []string{"tier"}},
		{"evidence for another tier is refused", verified, account.FundedTier, "x", domain.Dollar, "contract 12", []string{"evidence"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			got, err := c.agent.SetTier(c.to, c.evidence, c.credited, account.Funding(domain.Dollar))
			if got.VerifiedFor != c.want || !slices.Equal(faults(t, err), c.faults) {
				t.Errorf("got %q, %v", got.VerifiedFor, err)
			}
		})
	}
}
