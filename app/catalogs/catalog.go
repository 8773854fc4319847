// Package catalogs holds what is sold, and the providers that deliver it.
package catalogs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sync/atomic"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/domain/spelling"
	"agentproxy/ports"
)

// Catalog is what is sold, and the providers that deliver it.
type Catalog struct {
	providers map[string]ports.Provider
	offer     atomic.Pointer[offer]
	stock     atomic.Pointer[map[string][]procurement.Offer] // by provider
	nameOf    func(country string) string
}

// offer is one state of the catalogue, replaced as a whole.
type offer struct {
	products []catalog.Product
	byNo     map[string]int
}

// New checks the products as a whole. nameOf is the English name of an
// ISO 3166-1 alpha-2 code.
func New(providers []ports.Provider, products []catalog.Product, nameOf func(country string) string) (*Catalog, error) {
	c := &Catalog{providers: map[string]ports.Provider{}, nameOf: nameOf}
	for _, p := range providers {
		c.providers[p.Name()] = p
	}
	c.stock.Store(&map[string][]procurement.Offer{})
	return c, c.Replace(products)
}

// Replace sells other products from now on. It changes nothing if it returns an
// error. Sessions keep what they were sold.
func (c *Catalog) Replace(products []catalog.Product) error {
	if err := catalog.Check(products); err != nil {
		return err
	}
	o := &offer{products: products, byNo: make(map[string]int, len(products))}
	for i, p := range products {
		o.byNo[p.No] = i
		for _, s := range p.Sources {
			if c.providers[s.Provider] == nil {
				return fmt.Errorf("product %d (%s): there is no provider %q; a new one needs a restart", i+1, p.No, s.Provider)
			}
		}
	}
	c.offer.Store(o)
	return nil
}

// All returns the products as they are configured. They must not be changed.
func (c *Catalog) All() []catalog.Product { return c.offer.Load().products }

// Products lists the products that match a filter, in the order of the configuration.
func (c *Catalog) Products(f catalog.Filter, page domain.Page) domain.List[catalog.Product] {
	return domain.Paged(f.Apply(c.visible()), page)
}

// ProductsAfter is like Products with pages that go on after a product wherever that is now, and
// whether or not it still matches. It returns INVALID_REQUEST if it is sold no more.
func (c *Catalog) ProductsAfter(f catalog.Filter, page domain.Page) (domain.List[catalog.Product], error) {
	all, asked := c.visible(), page
	if page.After > 0 {
		last := slices.IndexFunc(all, func(p catalog.Product) bool { return domain.PlaceOf(p.No) == page.After })
		if last < 0 {
			return domain.List[catalog.Product]{Page: page},
				domain.InvalidField("cursor", "names a product that is sold no more; begin again without it")
		}
		page.After = int64(len(f.Apply(all[:last+1])))
	}
	list := domain.Paged(f.Apply(all), page)
	if list.Page = asked; list.Next > 0 {
		list.Next = domain.PlaceOf(list.Items[len(list.Items)-1].No)
	}
	return list, nil
}

// visible returns the products with their availability at the moment.
func (c *Catalog) visible() []catalog.Product {
	products := c.offer.Load().products
	if len(*c.stock.Load()) == 0 {
		return products
	}
	products = slices.Clone(products)
	for i, p := range products {
		products[i].Available = p.Available && len(c.Sources(p, session.Location{}, 0)) > 0
	}
	return products
}

// Regions lists the countries that something is sold in, by code.
func (c *Catalog) Regions() []catalog.Region {
	return catalog.Regions(c.offer.Load().products, c.nameOf)
}

// Recommend ranks the products by criteria, the best first.
func (c *Catalog) Recommend(w catalog.Criteria) ([]catalog.Recommendation, error) {
	return catalog.Recommend(c.visible(), w)
}

// Product returns a product that is sold, or catalog.ErrProductNotFound.
func (c *Catalog) Product(no string) (catalog.Product, error) {
	o := c.offer.Load()
	i, ok := o.byNo[no]
	if !ok {
		return catalog.Product{}, o.unknown(no)
	}
	return o.products[i], nil
}

// unknown returns the refusal of a code, with the one of a product that was probably meant.
func (o *offer) unknown(no string) error {
	var codes []string
	for _, p := range o.products {
		codes = append(codes, p.No)
	}
	if len(no) > maxCode {
		return catalog.ErrProductNotFound
	}
	meant := spelling.Meant(no, codes)
	if meant == "" {
		return catalog.ErrProductNotFound
	}
	return catalog.ErrProductNotFound.With("nearest", []string{meant})
}

// maxCode bounds the codes that are compared with those of products.
const maxCode = 64

// Provider returns a provider by its name; false if it is not configured.
func (c *Catalog) Provider(name string) (ports.Provider, bool) {
	p, ok := c.providers[name]
	return p, ok
}

// Providers returns all providers, in no order.
func (c *Catalog) Providers() []ports.Provider { return slices.Collect(maps.Values(c.providers)) }

// InProcess returns a provider that does no IO; false if there is none of this name.
func (c *Catalog) InProcess(name string) (ports.Provider, bool) {
	p, ok := c.providers[name]
	return p, ok && p.Capabilities().InProcess
}

// SellsDirect reports whether sessions of a product get the provider's own proxy. It
// is false for one that is not sold.
func (c *Catalog) SellsDirect(no string) bool {
	p, err := c.Product(no)
	return err == nil && p.Direct
}

// Sources returns the sources that may deliver a product in a place, the best first.
func (c *Catalog) Sources(p catalog.Product, l session.Location, days int) []procurement.Source {
	stock := *c.stock.Load()
	return procurement.Choose(p.Sources, l, days, func(s procurement.Source) procurement.Condition {
		provider, ok := c.providers[s.Provider]
		if !ok {
			return procurement.Condition{Stock: procurement.StockNo}
		}
		return procurement.Condition{Ready: provider.Ready(), Stock: inStock(stock[s.Provider], p.Type, s.SKU, l.Country)}
	})
}

// inStock returns what a provider's offers have of an SKU in a country; of an empty
// one in any.
func inStock(offers []procurement.Offer, typ session.Type, sku, country string) procurement.Stock {
	found := procurement.Stock("")
	for _, o := range offers {
		if o.Type != typ || sku != "" && o.SKU != "" && o.SKU != sku ||
			country != "" && o.Location.Country != "" && o.Location.Country != country {
			continue
		}
		switch {
		case o.Stock == procurement.StockYes:
			return procurement.StockYes
		case o.Stock == procurement.StockNo && found == "":
			found = procurement.StockNo
		case o.Stock != procurement.StockNo:
			found = procurement.StockUnknown
		}
	}
	if found == "" {
		return procurement.StockUnknown
	}
	return found
}

// RefreshStock reads the offers of every provider. The stock of one that does not
// answer is unknown.
func (c *Catalog) RefreshStock(ctx context.Context) error {
	stock := map[string][]procurement.Offer{}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(c.providers)) {
		p := c.providers[name]
		if p.Capabilities().InProcess {
			continue
		}
		offers, err := p.Offers(ctx)
		if err != nil {
			faults = append(faults, fmt.Errorf("stock of %s: %w", name, err))
			continue
		}
		if len(offers) > 0 {
			stock[name] = offers
		}
	}
	c.stock.Store(&stock)
	return errors.Join(faults...)
}

// Workers reports whether the sessions of a product carry workers, whichever source delivers them, and
// how many different addresses a target outside this host sees at most; -1 if that is not known.
func (c *Catalog) Workers(p catalog.Product) (carries bool, unique int) {
	if p.Type != session.Dynamic || p.Direct || len(p.Sources) == 0 {
		return false, -1
	}
	unique = math.MaxInt
	for _, from := range p.Sources {
		provider, known := c.providers[from.Provider]
		if !known || !provider.Capabilities().Workers {
			return false, -1
		}
		if local, ok := provider.(ports.ExitPool); ok {
			unique = min(unique, visible(local.Exits(session.Location{})))
		} else {
			unique = -1
		}
	}
	return true, unique
}

// visible returns how many different addresses a target outside this host sees of exits: what is sent from
// a loopback address leaves from the host's own.
func visible(exits []netip.Addr) int {
	n, own := 0, 0
	for _, exit := range exits {
		if exit.IsLoopback() {
			own = 1
		} else {
			n++
		}
	}
	return n + own
}
