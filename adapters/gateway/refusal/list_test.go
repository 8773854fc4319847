package refusal_test

import (
	"testing"
	"time"

	"agentproxy/adapters/gateway/refusal"
	"agentproxy/domain/diagnose"
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

// An agent that has the code, or whose session's event log has it, can look the cause up.
func TestEachCodeHasACause(t *testing.T) {
	t.Parallel()
	live := diagnose.Session{Status: "active"}
	causes := map[string]refusal.Code{}
	for _, r := range refusal.Documented() {
		feed := []diagnose.Event{{Age: time.Second, Source: "gateway", Type: "failed", Host: "shop.example", Status: r.Status,
			Code: r.Code.String(), HowToFix: r.HowToFix}}
		if r.Unobserved {
			feed = nil
		}
		seen := diagnose.Observation{Error: "CONNECT failed: " + r.Code.String() + ": " + r.Message, Status: r.Status}
		byFeed := diagnose.Observation{Status: r.Status}
		first := diagnose.Causes(seen, live, feed)[0]
		if first.Name == "unknown" || first.Certainty != diagnose.Certain || first.Do == "" {
			t.Errorf("%s has the cause %+v", r.Code, first)
		}
		if feed == nil {
			continue
		}
		if c := diagnose.Causes(byFeed, live, feed)[0]; c.Name != first.Name || c.Certainty == diagnose.Possible {
			t.Errorf("%s by the feed has the cause %+v, by the text %s", r.Code, c, first.Name)
		}
		if other, twice := causes[first.Name]; twice {
			t.Errorf("%s and %s have the cause %s", r.Code, other, first.Name)
		}
		causes[first.Name] = r.Code
	}
}
