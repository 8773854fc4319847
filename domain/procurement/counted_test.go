package procurement_test

import (
	"testing"

	"agentproxy/domain/procurement"
)

func TestACountDiffersByMuchMoreThanWhatWasCharged(t *testing.T) {
	for _, c := range []struct {
		seller, charged, uncharged int64
		differs                    bool
	}{
		{0, 0, 0, false}, {100_000_000, 0, 100_000_000, false}, {100_000_001, 0, 100_000_001, true},
		{1_100_000_000, 1_000_000_000, 100_000_000, false}, {2_200_000_000, 2_000_000_000, 200_000_000, false},
		{2_200_000_001, 2_000_000_000, 200_000_001, true}, {1_000_000_000, 9_000_000_000, 0, false},
		{1 << 62, 1 << 61, 1 << 61, true},
	} {
		x := procurement.Counted{Seller: c.seller, Charged: c.charged}
		if x.Uncharged() != c.uncharged || x.Differs() != c.differs {
			t.Errorf("%d counted and %d charged: %d uncharged, differs %v", c.seller, c.charged, x.Uncharged(), x.Differs())
		}
	}
}
