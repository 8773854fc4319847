package session_test

import (
	"math"
	"testing"

	"agentproxy/domain/session"
)

func TestARenewalExtendsTheFairUse(t *testing.T) {
	for what, c := range map[string]struct{ had, added, whole, used, want int64 }{
		"more of the same":                  {100, 30, 90, 40, 130},
		"a product without a limit":         {100, 0, 0, 40, 0},
		"none before and none now":          {0, 0, 0, 40, 0},
		"the first limit counts from here":  {0, 30, 90, 40, 130},
		"a sum beyond what can be stored":   {math.MaxInt64 - 1, 30, 90, 40, math.MaxInt64},
		"a first limit beyond that as well": {0, 30, math.MaxInt64, 40, math.MaxInt64},
	} {
		s := session.Session{Type: session.Static, Status: session.Active, FairUse: c.had}
		if got := s.ExtendFairUse(c.added, c.whole, c.used).FairUse; got != c.want {
			t.Errorf("%s: the fair use is %d, want %d", what, got, c.want)
		}
	}
}
