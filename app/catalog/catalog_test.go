package catalog_test

import (
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

// availability returns a product's availability in the catalogue; listed is false if it is absent.
func availability(w *apptest.World, no string) (available, listed bool) {
	for _, p := range w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}).Items {
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
	w := apptest.New(t)
	for _, stock := range []procurement.Stock{procurement.StockYes, procurement.StockNo, procurement.StockYes} {
		w.Seller.SetOffers(procurement.Offer{Type: session.Static, Stock: stock})
		apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
		shown, _ := availability(w, apptest.RemoteStatic)
		apptest.Equal(t, "with "+string(stock), shown, stock == procurement.StockYes)
		shown, listed := availability(w, "gone")
		apptest.Equal(t, "what is not sold is listed", listed, true)
		apptest.Equal(t, "what is not sold", shown, false)
	}
}

// A catalogue that the check refuses replaces nothing.
func TestABrokenCatalogueIsNotSold(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	p := w.Seller.Products()[0]
	if err := w.Catalog.Replace([]catalog.Product{p, p}); err == nil {
		t.Error("a product is sold twice")
	}
	w.Buy(w.Register(), apptest.RemoteStatic)
}
