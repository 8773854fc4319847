package catalogs_test

import (
	"errors"
	"fmt"
	"strings"
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
	const yes, no, unknown = procurement.StockYes, procurement.StockNo, procurement.StockUnknown
	for _, c := range []struct {
		offers []procurement.Stock // of one product, in the seller's order
		want   bool
	}{
		{[]procurement.Stock{yes}, true}, {[]procurement.Stock{no}, false}, {[]procurement.Stock{yes}, true},
		{[]procurement.Stock{no, no}, false}, {[]procurement.Stock{no, yes}, true}, {[]procurement.Stock{unknown}, true},
		{[]procurement.Stock{no, unknown}, true}, {[]procurement.Stock{unknown, no}, true}, {nil, true},
	} {
		var offers []procurement.Offer
		for _, stock := range c.offers {
			offers = append(offers, procurement.Offer{Type: session.Static, Stock: stock})
		}
		w.Seller.SetOffers(offers...)
		apptest.OK(t, w.Catalog.RefreshStock(t.Context()))
		shown, _ := availability(w, apptest.RemoteStatic)
		apptest.Equal(t, fmt.Sprint("with the stock ", c.offers), shown, c.want)
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

// The catalogue is read on after a product wherever it is now.
func TestProductsAfter(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	numbers := func(list domain.List[catalog.Product]) (out []string) {
		for _, p := range list.Items {
			out = append(out, p.No)
		}
		return out
	}
	all := numbers(w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}))
	page := domain.Page{Number: 1, Size: 4}
	first, err := w.Catalog.ProductsAfter(catalog.Filter{}, page)
	apptest.OK(t, err)
	apptest.Equal(t, "the first page", strings.Join(numbers(first), " "), strings.Join(all[:4], " "))
	added := w.Seller.Products()[0]
	added.No = "added"
	sold := w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}).Items
	apptest.OK(t, w.Catalog.Replace(append([]catalog.Product{added}, sold...)))
	page.After = first.Next
	second, err := w.Catalog.ProductsAfter(catalog.Filter{}, page)
	apptest.OK(t, err)
	apptest.Equal(t, "the second page", strings.Join(numbers(second), " "), strings.Join(all[4:8], " "))
	apptest.Equal(t, "in all", second.Total, len(all)+1)
	page.After = second.Next
	last, err := w.Catalog.ProductsAfter(catalog.Filter{}, page)
	apptest.OK(t, err)
	apptest.Equal(t, "the last page", strings.Join(numbers(last), " "), strings.Join(all[8:], " "))
	apptest.Equal(t, "what follows it", last.Next, 0)

	// The product of the cursor need not match the filter; it must be sold.
	page.After = domain.PlaceOf(all[0])
	static, err := w.Catalog.ProductsAfter(catalog.Filter{Type: session.Static}, page)
	apptest.OK(t, err)
	want := numbers(w.Catalog.Products(catalog.Filter{Type: session.Static}, domain.Page{Number: 1, Size: 4}))
	apptest.Equal(t, "after one of another type", strings.Join(numbers(static), " "), strings.Join(want, " "))
	apptest.OK(t, w.Catalog.Replace(sold[1:]))
	_, err = w.Catalog.ProductsAfter(catalog.Filter{}, page)
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}

func TestAMisspeltProductNamesTheOneThatIsMeant(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	for no, want := range map[string]any{"dyn_fast1": []string{apptest.Local}, "DYN-FAST-1": []string{apptest.Local},
		"something": nil, strings.Repeat("x", 100_000): nil} {
		_, err := w.Catalog.Product(no)
		e, ok := errors.AsType[*domain.Error](err)
		if !ok || !errors.Is(err, catalog.ErrProductNotFound) || fmt.Sprint(e.Details["nearest"]) != fmt.Sprint(want) {
			t.Errorf("%.20s: %v, want %v", no, err, want)
		}
	}
}
