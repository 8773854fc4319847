package httpapi_test

import (
	"testing"

	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

func TestWhatTrialCreditAndTiersBuy(t *testing.T) {
	t.Parallel()
	own, verified := product("sta_own", session.Static, false, "fake"), product("sta_verified", session.Static, false, "fake")
	own.OwnMoneyOnly, own.FairUse = true, 500*billing.GB
	verified.MinTier = account.VerifiedTier
	w := newWorld(t, options{sell: []catalog.Product{own, verified}})
	a := w.register("Trial")
	list := w.do("GET", "/v1/products?page_size=100", "", a.as)
	list.want(200)
	seen := 0
	for _, item := range list.json["data"].(map[string]any)["items"].([]any) {
		p := item.(map[string]any)
		got := [3]any{p["min_tier"], p["trial_credit"], p["fair_use_gb"]}
		want, listed := map[any][3]any{"sta_own": {"trial", false, 500.0}, "sta_verified": {"verified", true, nil},
			"sta_sync": {"trial", true, nil}}[p["product_no"]]
		if !listed {
			continue
		}
		if seen++; got != want {
			t.Errorf("%v has %v, want %v", p["product_no"], got, want)
		}
	}
	if seen != 3 {
		t.Errorf("%d of 3 products are listed", seen)
	}
	for _, path := range []string{"/v1/sessions", "/v1/sessions?dry_run=true"} {
		refusal := w.do("POST", path, body("sta_own"), a.as)
		refusal.refused(402, "INSUFFICIENT_BALANCE")
		if refusal.at("error.details.trial_credit") != false || refusal.at("error.details.available") != 0.0 {
			t.Errorf("refused with %s", refusal.body)
		}
		refusal = w.do("POST", path, body("sta_verified"), a.as)
		refusal.refused(403, "TIER_REQUIRED")
		if refusal.at("error.details.tier") != "verified" || refusal.at("error.retryable") != false {
			t.Errorf("refused with %s", refusal.body)
		}
	}
}
