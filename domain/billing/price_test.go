package billing_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

func TestPrices(t *testing.T) {
	cents := func(n domain.Money) domain.Money { return n * domain.Dollar / 100 }
	for _, c := range []struct {
		claim     string
		got, want domain.Money
	}{
		{"a GB costs its price", billing.TrafficHold(billing.GB, cents(25)), cents(25)},
		{"a hold rounds up", billing.TrafficHold(1, cents(25)), 1},
		{"a charge rounds down", billing.TrafficCharge(billing.GB-1, cents(25)), cents(25) - 1},
		{"a byte is free until it makes a micro-dollar", billing.TrafficCharge(3999, cents(25)), 0},
		{"and then it is not", billing.TrafficCharge(4000, cents(25)), 1},
		{"no traffic costs nothing", billing.TrafficHold(0, cents(25)), 0},
		{"a product beyond 64 bits", billing.TrafficHold(1_000_000*billing.GB, 1000*domain.Dollar), 1_000_000_000 * domain.Dollar},
		{"IPs", billing.IPCost(100, cents(270)), cents(27000)},
		{"what cannot be counted is clamped", billing.IPCost(100, math.MaxInt64), math.MaxInt64},
		{"29 of 30 days back", billing.UnusedDays(cents(100), 30, 29), 966_666},
		{"all of them", billing.UnusedDays(cents(100), 30, 30), cents(100)},
		{"never more than all", billing.UnusedDays(cents(100), 30, 31), cents(100)},
		{"none left is no refund", billing.UnusedDays(cents(100), 30, 0), 0},
		{"nor is a session without days", billing.UnusedDays(cents(100), 0, 5), 0},
		{"time that ran backwards costs nothing", billing.UnusedDays(cents(100), 30, -1), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.claim, c.got, c.want)
		}
	}
}

// However often a session is settled, the charges sum to one floor, and that is
// never more than was held.
func TestItDoesNotMatterHowOftenTrafficIsSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		price := domain.Money(rapid.Int64Range(1, 1000*int64(domain.Dollar)).Draw(t, "price"))
		bought := rapid.Int64Range(1, 1000*billing.GB).Draw(t, "bought")
		var used int64
		var charged domain.Money
		for _, part := range rapid.SliceOfN(rapid.Int64Range(0, bought), 0, 20).Draw(t, "parts") {
			used = min(used+part, bought)
			due := billing.TrafficCharge(used, price) - charged
			if due < 0 {
				t.Fatalf("a settlement of %s", due)
			}
			charged += due
		}
		if charged != billing.TrafficCharge(used, price) || charged > billing.TrafficHold(bought, price) {
			t.Errorf("charged %s for %d bytes of %d at %s a GB", charged, used, bought, price)
		}
	})
}
