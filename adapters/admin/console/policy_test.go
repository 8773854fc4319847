package console_test

import (
	"strings"
	"testing"

	"agentproxy/domain/policy"
)

func TestThePolicyPageListsTheRules(t *testing.T) {
	w := open(t)
	if _, body := w.get("/policy"); !strings.Contains(body, "nothing") {
		t.Errorf("without rules the page is\n%s", body)
	}
	var own, product policy.Builder
	for _, rule := range append([]string{"10.0.0.0/8", ".ads.example"}, policy.DeniedPorts...) {
		if err := own.Deny(rule); err != nil {
			t.Fatal(err)
		}
	}
	if err := product.Allow(".shop.example"); err != nil {
		t.Fatal(err)
	}
	w.rules.Replace(&policy.Shared{Operator: own.Rules(), Products: map[string]*policy.Rules{"dyn_fast_1": product.Rules()}})
	_, body := w.get("/policy")
	for _, want := range []string{"3389, 6660-6669, 10.0.0.0/8, .ads.example", "Rules of the product dyn_fast_1", ".shop.example"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not have %q:\n%s", want, body)
		}
	}
}
