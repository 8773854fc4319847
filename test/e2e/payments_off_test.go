package e2e_test

import (
	"strings"
	"testing"
)

// Outside development mode the money of the development chain is not taken for real.
func TestWithoutAnAccountKeyNothingIsPaid(t *testing.T) {
	t.Parallel()
	s := serve(t, "AGENTPROXY_DEV=false")
	key, _ := s.register("payer")
	r := s.must(503, "POST", "/billing/recharge", key, `{"amount":10}`)
	if r.code() != "PAYMENTS_OFF" || strings.Contains(string(r.body), `"retryable":true`) || r.header.Get("Retry-After") != "" {
		t.Errorf("a recharge is answered %s, Retry-After %q", r.body, r.header.Get("Retry-After"))
	}
	s.must(503, "POST", "/billing/recharge?dry_run=true", key, `{"amount":10}`)
	if r := s.must(200, "GET", "/billing/recharge", key, ""); strings.Contains(string(r.body), "wallet_address") {
		t.Errorf("an address is shown: %s", r.body)
	}
	s.must(200, "GET", "/products", key, "")
	s.logs("AGENTPROXY_TRON_XPUB: is not set, so recharges are refused")
	s.logs("payments   off")
	if out, err := s.run("devchain", "send", "--to", "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", "--amount", "1"); exit(err) != 1 || !strings.Contains(out, "development mode") {
		t.Errorf("devchain send: %v\n%s", err, out)
	}
}
