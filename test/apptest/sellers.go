package apptest

import (
	"context"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// SharedProduct returns a product of a type with several sources.
func SharedProduct(no string, typ session.Type, sources ...procurement.Source) catalog.Product {
	p := fake.Products()[0]
	if typ == session.Static {
		p = fake.Products()[2]
	}
	p.No, p.Sources = no, sources
	return p
}

// TwoSellers returns a world with a second seller, and that seller. Products sta_both,
// dyn_mixed, sta_placed and sta_priced have several sources or costs.
func TwoSellers(t *testing.T) (*World, *fake.Provider) {
	t.Helper()
	second := fake.NewProvider("second")
	w := Open(t, Options{Providers: []ports.Provider{second}, Products: []catalog.Product{
		SharedProduct("sta_both", session.Static, procurement.Source{Provider: "remote", SKU: "r"}, procurement.Source{Provider: "second", SKU: "s", Preference: 1}),
		SharedProduct("dyn_mixed", session.Dynamic, procurement.Source{Provider: "remote"}, procurement.Source{Provider: "embedded", Preference: 1}),
		SharedProduct("sta_placed", session.Static, procurement.Source{Provider: "remote", Countries: []string{"DE"}},
			procurement.Source{Provider: "second", Countries: []string{"FR", "US"}}),
		SharedProduct("sta_priced", session.Static, procurement.Source{Provider: "remote", SKU: "r", Costs: []procurement.Term{{Days: 30, Cost: domain.Dollar / 2}}}),
	}})
	second.SetClock(w.Clock.Now)
	return w, second
}

// WaitForCall waits until the seller has had a number of calls of an operation.
func (w *World) WaitForCall(op fake.Op, times int) {
	w.T.Helper()
	for deadline := time.Now().Add(2 * time.Minute); w.Seller.Calls(op) < times; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.T.Fatalf("the seller was not called %d times", times)
		}
	}
}

// emptySeller is a seller that delivers no address and reports success.
type emptySeller struct{ *fake.Provider }

func (s emptySeller) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := s.Provider.Order(ctx, in)
	d.IPs = nil
	return d, err
}
