package procurement_test

import (
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
)

func TestTheMostThatAnOrderMayCost(t *testing.T) {
	for name, c := range map[string]struct {
		below                     bool
		configured, paid          domain.Money
		wantPurchase, wantRenewal domain.Money
	}{
		"a cost that is not configured": {false, 0, 5, 5, 5},
		"a cost below the price":        {false, 3, 5, 3, 5},
		"a cost above the price":        {false, 7, 5, 5, 5},
		"sold below a cost":             {true, 7, 5, 7, 7},
		"sold below an unknown cost":    {true, 0, 5, 0, 0},
	} {
		s := procurement.Source{BelowCost: c.below}
		if got := s.MaxCost(c.configured, c.paid); got != c.wantPurchase {
			t.Errorf("%s: a purchase may cost %s, want %s", name, got, c.wantPurchase)
		}
		if got := s.MaxRenewalCost(c.configured, c.paid); got != c.wantRenewal {
			t.Errorf("%s: a renewal may cost %s, want %s", name, got, c.wantRenewal)
		}
	}
}
