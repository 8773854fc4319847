package configfile

import (
	"fmt"
	"log/slog"
	"reflect"

	"agentproxy/adapters/upstream"
	"agentproxy/domain/catalog"
	"agentproxy/ports"
)

// Shelf is what the configuration file says of providers and products. The zero
// Shelf sells the embedded catalogue and nothing else.
//
// The settings of the providers, their secrets among them, are behind a function:
// neither fmt, nor JSON, nor a log prints them.
type Shelf struct {
	// WithoutEmbedded: the embedded catalogue is not sold. Its provider stays, for
	// sessions that were sold before.
	WithoutEmbedded bool
	Products        []catalog.Product // in the order of the file
	Warnings        []Fault           // what the operator should know and may leave

	specs func() []upstream.Spec // in the order of the file; nil: none
	make  MakeProvider
}

func (s Shelf) list() []upstream.Spec {
	if s.specs == nil {
		return nil
	}
	return s.specs()
}

// MakeProvider makes a provider as it was configured. Its error names every
// fault of the settings, each with its path ("options.zone is missing"), and no
// secret.
type MakeProvider func(upstream.Spec, *slog.Logger) (ports.Provider, error)

// Sellers are the configured providers, in the order of the file.
type Sellers []ports.Provider

// Sellers makes the providers. They were made once when the file was read, so
// it does not fail for what the operator wrote.
func (s Shelf) Sellers(log *slog.Logger) (Sellers, error) {
	list := make(Sellers, len(s.list()))
	for i, spec := range s.list() {
		p, err := s.make(spec, log)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
		}
		list[i] = p
	}
	return list, nil
}

// Providers counts the configured providers.
func (s Shelf) Providers() int { return len(s.list()) }

// Kind is the kind of a configured provider; empty when there is none of the
// name.
func (s Shelf) Kind(provider string) string {
	for _, spec := range s.list() {
		if spec.Name == provider {
			return spec.Kind
		}
	}
	return ""
}

// Sold is the whole catalogue, of which embedded is the embedded provider's.
func (s Shelf) Sold(embedded []catalog.Product) []catalog.Product {
	var all []catalog.Product
	if !s.WithoutEmbedded {
		all = append(all, embedded...)
	}
	return append(all, s.Products...)
}

// Changed names the providers whose settings differ from what they were, and
// those that are new or gone.
func (s Shelf) Changed(was Shelf) (names []string) {
	before := map[string]upstream.Spec{}
	for _, spec := range was.list() {
		before[spec.Name] = spec
	}
	for _, spec := range s.list() {
		if !reflect.DeepEqual(before[spec.Name], spec) {
			names = append(names, spec.Name)
		}
		delete(before, spec.Name)
	}
	for _, spec := range was.list() {
		if _, gone := before[spec.Name]; gone {
			names = append(names, spec.Name)
		}
	}
	return names
}

// shelfReader reads a Shelf out of the configuration file.
type shelfReader struct {
	make MakeProvider
	// running are the providers since the start when the file is read again: no
	// other ones can be sold then. Nil at the start.
	running Sellers

	shelf   Shelf
	specs   []upstream.Spec
	written map[string]bool           // every name of a provider in the file
	sellers map[string]ports.Provider // those that could be made, by name
	codes   map[string]int            // of products, and the lines of these
}

// read reads the three keys of the shelf.
func (r *shelfReader) read(root fields) Shelf {
	r.written, r.sellers, r.codes = map[string]bool{}, map[string]ports.Provider{}, map[string]int{}
	r.shelf = Shelf{WithoutEmbedded: !root.get("embedded").truth(true), make: r.make}
	for _, v := range root.get("providers").items() {
		r.provider(v)
	}
	if r.running != nil {
		clear(r.sellers)
		for _, p := range r.running {
			if r.written[p.Name()] { // else the file would be refused at the next start
				r.sellers[p.Name()] = p
			}
		}
	}
	r.shelf.specs = func() []upstream.Spec { return r.specs }
	var places []value
	for _, v := range root.get("products").items() {
		if p, ok := r.product(v); ok {
			r.shelf.Products, places = append(r.shelf.Products, p), append(places, v)
		}
	}
	r.check(places)
	return r.shelf
}
