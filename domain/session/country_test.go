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
