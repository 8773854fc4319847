package app

import (
	"fmt"
	"sync/atomic"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/ports"
)

// Catalog is what is sold, and by whom.
type Catalog struct {
	offer  atomic.Pointer[offer]
	nameOf func(country string) string
}

// offer is one state of the catalogue, replaced as a whole.
type offer struct {
	products  []catalog.Product
	byNo      map[string]int
	providers map[string]ports.OldProvider
}

// NewCatalog collects the products of the providers and checks them as a whole.
// nameOf is the English name of an ISO 3166-1 alpha-2 code.
func NewCatalog(providers []ports.OldProvider, nameOf func(country string) string) (*Catalog, error) {
	o := &offer{byNo: map[string]int{}, providers: map[string]ports.OldProvider{}}
	for _, p := range providers {
		o.providers[p.Name()] = p
		o.products = append(o.products, p.Products()...)
	}
	if err := catalog.Check(o.products); err != nil {
		return nil, err
	}
	for i, p := range o.products {
		o.byNo[p.No] = i
	}
	c := &Catalog{nameOf: nameOf}
	c.offer.Store(o)
	return c, nil
}

// Replace checks products and sells them instead of all others from now on. Each
// must come from providers that are here since the start. A fault changes
// nothing.
func (c *Catalog) Replace(products []catalog.Product) error {
	o := &offer{products: products, byNo: map[string]int{}, providers: c.offer.Load().providers}
	if err := catalog.Check(products); err != nil {
		return err
	}
	for i, p := range products {
		o.byNo[p.No] = i
		for _, s := range p.Sources {
			if o.providers[s.Provider] == nil {
				return fmt.Errorf("product %s: the provider %s is not running", p.No, s.Provider)
			}
		}
	}
	c.offer.Store(o)
	return nil
}

// Products lists what fits the filter, in the order of the providers.
func (c *Catalog) Products(f catalog.Filter, page domain.Page) domain.List[catalog.Product] {
	return paged(f.Apply(c.offer.Load().products), page)
}

// Regions lists the countries that something is sold in, by code.
func (c *Catalog) Regions() []catalog.Region {
	return catalog.Regions(c.offer.Load().products, c.nameOf)
}

// Recommend ranks the products for a wish, best first.
func (c *Catalog) Recommend(w catalog.Wish) ([]catalog.Recommendation, error) {
	return catalog.Recommend(c.offer.Load().products, w)
}

// product finds a product and who delivers it.
func (c *Catalog) product(no string) (catalog.Product, ports.OldProvider, error) {
	o := c.offer.Load()
	i, ok := o.byNo[no]
	if !ok {
		return catalog.Product{}, nil, catalog.ErrProductNotFound
	}
	p := o.products[i]
	return p, o.providers[p.Provider], nil
}

// provider finds who delivered a session.
func (c *Catalog) provider(name string) (ports.OldProvider, bool) {
	p, ok := c.offer.Load().providers[name]
	return p, ok
}

// allLocal reports that no provider does IO, so that nothing need be asked
// before a unit.
func (c *Catalog) allLocal() bool {
	for _, p := range c.offer.Load().providers {
		if !p.Local() {
			return false
		}
	}
	return true
}

// paged cuts one page out of a list that is in memory.
func paged[T any](all []T, page domain.Page) domain.List[T] {
	from := min(page.Offset(), len(all))
	to := min(from+page.Size, len(all))
	return domain.List[T]{Items: all[from:to], Page: page, Total: len(all)}
}
