package httpapi_test

import (
	"testing"

	"agentproxy/app/accounts"
	"agentproxy/app/throttle"
	"agentproxy/domain/account"
)

// An account reads what it may still do; what is unlimited is null.
func TestWhatAnAccountMayStillDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{perMinute: 60, stored: throttle.StoredConfig{Trial: 1_000_000_000},
		config: func(c *accounts.Config) {
			c.Bounds = accounts.Bounds{Sessions: 3, TrialConnections: 5, ConnectionRate: 40, TrialConnectionRate: 2,
				TrialPorts: []string{"443", "8000-8010"}}
		}})
	a := w.register("Trial")
	w.do("PUT", "/v1/billing/budget", `{"daily_limit":5}`, a.as).want(200)
	w.do("POST", "/v1/sessions", body("dyn_sync"), a.as).want(201)
	read := func(want string) {
		t.Helper()
		r := w.do("GET", "/v1/account/limits", "", a.as).want(200)
		left := r.at("data.stored_today")
		if m, ok := left.(map[string]any); ok {
			if m["limit_bytes"] != 1e9 || m["left_bytes"].(float64) >= 1e9 || m["left_bytes"].(float64) < 999_000_000 {
				t.Errorf("stored: %v", m)
			}
			delete(m, "left_bytes")
		}
		requests := r.at("data.requests").(map[string]any)
		delete(requests, "reset_at")
		if got := text(r.json["data"]); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
	read(`{"balance":9.5,"budget":{"left_today":4.5,"left_total":null,"paused":false},` +
		`"gateway":{"connections":5,"connections_per_second":2,"ports":["443","8000-8010"]},` +
		`"requests":{"left":57,"per_minute":60},"sessions":{"limit":3,"live":1},"stored_today":{"limit_bytes":1000000000},"tier":"trial"}`)
	_, err := w.accounts.SetTier(t.Context(), a.ID, account.VerifiedTier, "contract 12")
	w.must(err)
	read(`{"balance":9.5,"budget":{"left_today":4.5,"left_total":null,"paused":false},` +
		`"gateway":{"connections":null,"connections_per_second":40,"ports":null},` +
		`"requests":{"left":56,"per_minute":60},"sessions":{"limit":3,"live":1},"stored_today":null,"tier":"verified"}`)
}
