package proxyseller_test

import (
	"fmt"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake/proxyseller"
	"agentproxy/test/fake/seller"
)

// TestOutcomesMatchSales makes every second call fail. A success means that the seller
// sold once, Ambiguous that it may have, and any other error that it did not. The fake
// fails the test if anything is sold twice.
func TestOutcomesMatchSales(t *testing.T) {
	t.Parallel()
	faults := append([]seller.Fault{seller.Expired, seller.Forbidden, seller.OutOfStock, seller.NoFunds, seller.None, seller.None}, seller.Mixed...)
	for claim, c := range map[string]struct {
		section string
		tries   int
		call    func(p ports.Provider, key, ref string) error
	}{
		"orders": {"isp", 120, func(p ports.Provider, key, _ string) error {
			_, err := p.Order(t.Context(), ispIntent(key, 1))
			return err
		}},
		"renewals": {"isp", 40, func(p ports.Provider, key, ref string) error {
			done, err := p.(ports.Static).Renew(t.Context(), ref, ispIntent(key, 1))
			if err == nil && done[0].Err != nil {
				return done[0].Err
			}
			return err
		}},
		"packages": {"resident", 60, func(p ports.Provider, key, _ string) error {
			_, err := p.Order(t.Context(), gigabyte(key))
			return err
		}},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			s := proxyseller.New(t)
			s.SetBalance(100000 * domain.Dollar)
			s.SetDelay(0)
			ref := ""
			if claim == "renewals" {
				d, err := open(t, specOf(s, "isp")).Order(t.Context(), ispIntent("ord_first", 1))
				if err != nil {
					t.Fatal(err)
				}
				ref = d.Ref
			}
			seen := map[procurement.Class]int{}
			s.Sometimes(7, 0.5, faults...)
			for n := range c.tries {
				before := s.Sales()
				// A new provider for each call keeps the circuit breaker out of the test.
				err := c.call(open(t, specOf(s, c.section)), fmt.Sprintf("ord_%d", n), ref)
				sold, class := s.Sales()-before, procurement.ClassOf(err)
				seen[class]++
				if sold > 1 || class == "" && sold != 1 || class != "" && class != procurement.Ambiguous && sold != 0 {
					t.Errorf("%d: %d were sold, and the outcome is %v", n, sold, err)
				}
			}
			if seen[""] == 0 || seen[procurement.Ambiguous] == 0 || len(seen) < 5 {
				t.Errorf("the faults were too few: %v", seen)
			}
		})
	}
}
