package session_test

import (
	"strings"
	"testing"

	"agentproxy/domain/session"
)

// TestANamedCountryIsMeant checks that a refused country comes with its code.
func TestANamedCountryIsMeant(t *testing.T) {
	for asked, want := range map[string]string{"Germany": "did you mean DE?", "usa": "did you mean US?", "XYZ": "alpha-2 code"} {
		_, err := session.CreateRequest{Type: session.Dynamic, ProductNo: "p", Location: session.Location{Country: asked}}.Check()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", asked, err)
		}
	}
}

// TestDurationsAreNamed checks that a refused duration comes with those that are sold.
func TestDurationsAreNamed(t *testing.T) {
	terms := session.Terms{Type: session.Static, Days: []int{30, 90}, MinQuantity: 1, MaxQuantity: 9}
	_, err := terms.Check(session.Spec{Type: session.Static, Days: 60, Quantity: 1})
	if err == nil || !strings.Contains(err.Error(), "must be a duration that the product lists: 30, 90") {
		t.Error(err)
	}
}
