package app_test

import (
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
)

// available returns a product's availability in the catalogue; listed is false if it is absent.
func (w *world) available(no string) (available, listed bool) {
	for _, p := range w.catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}).Items {
		if p.No == no {
			return p.Available, true
		}
	}
	return false, false
}

// A seller's stock changes what is shown while the seller reports it, and makes
// nothing available that the operator does not sell.
func TestStockIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, stock := range []procurement.Stock{procurement.StockYes, procurement.StockNo, procurement.StockYes} {
		w.seller.SetOffers(procurement.Offer{Type: session.Static, Stock: stock})
		ok(t, w.catalog.RefreshStock(t.Context()))
		shown, _ := w.available(remoteStatic)
		same(t, "with "+string(stock), shown, stock == procurement.StockYes)
		shown, listed := w.available("gone")
		same(t, "what is not sold is listed", listed, true)
		same(t, "what is not sold", shown, false)
	}
}

// A catalogue that the check refuses replaces nothing.
func TestABrokenCatalogueIsNotSold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.seller.Products()[0]
	if err := w.catalog.Replace([]catalog.Product{p, p}); err == nil {
		t.Error("a product is sold twice")
	}
	w.buy(w.register(), remoteStatic)
}
