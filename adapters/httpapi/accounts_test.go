package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
)

func TestReferrals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	_, err := accounts.NewReferrers(w.store, w.clock, w.ids).Add(t.Context(), "Partner", "PARTNER-1")
	w.must(err)
	r := w.do("POST", "/v1/account/register", `{"name":"Referred","referral_code":"  PARTNER-1 "}`).want(201).golden("register-referred")
	if r.str("data.referral.name") != "Partner" || r.str("data.referral.code") != "PARTNER-1" {
		t.Errorf("%s", r.body)
	}
	a := agent{Key: r.str("data.api_key")}
	if got := w.do("GET", "/v1/account/info", "", a.as).want(200).str("data.referral.name"); got != "Partner" {
		t.Errorf("referral %q", got)
	}
	plain := w.do("POST", "/v1/account/register", `{"name":"Plain"}`).want(201)
	if _, there := plain.at("data").(map[string]any)["referral"]; there {
		t.Errorf("%s", plain.body)
	}
	b := agent{Key: plain.str("data.api_key")}
	if got := w.do("GET", "/v1/account/info", "", b.as).want(200).str("data.referral.name"); got != "openAgent" {
		t.Errorf("referral %q", got)
	}
	w.do("POST", "/v1/account/register", `{"name":"ab","referral_code":"partner-1"}`).refused(400, "INVALID_REFERRAL_CODE")
}

func TestAccountChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	a := w.register("Before")
	r := w.do("PUT", "/v1/account/info", `{"name":"  After ","contact_email":"ops@example.com","webhook_url":"https://example.com/hook","description":"x"}`, a.as).want(200)
	if r.str("data.name") != "After" || !strings.HasPrefix(r.str("data.webhook_secret"), "whsec_") {
		t.Errorf("%s", r.body)
	}
	r = w.do("PUT", "/v1/account/info", `{"contact_email":"","webhook_url":null,"balance":1000,"status":"disabled","rate_limit":0,"agent_id":"agt_x"}`, a.as).want(200)
	if r.at("data.contact_email") != nil || r.at("data.webhook_url") != nil || r.str("data.description") != "x" ||
		r.str("data.status") != "active" ||
		r.str("data.agent_id") != a.ID ||
		r.at("data.webhook_secret") != nil {
		t.Errorf("%s", r.body)
	}
	w.clock.Advance(14 * 24 * time.Hour)
	if r := w.do("GET", "/v1/account/info", "", a.as).want(200); r.at("data.trial.is_trial") != false {
		t.Errorf("%s", r.body)
	}
}
