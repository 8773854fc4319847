package refusal_test

import (
	"testing"

	"agentproxy/adapters/gateway/refusal"
)

func TestEachCodeIsDocumentedOnce(t *testing.T) {
	t.Parallel()
	seen := map[refusal.Code]bool{}
	for _, r := range refusal.Documented() {
		if seen[r.Code] || r.Message == "" || r.HowToFix == "" || r.Status < 400 {
			t.Errorf("%s is there twice or incomplete: %+v", r.Code, r)
		}
		seen[r.Code] = true
	}
	for c := refusal.Code(1); int(c) < refusal.Codes; c++ {
		if !seen[c] {
			t.Errorf("%s is missing: add it to Documented", c)
		}
	}
}
