package configfile

import (
	"reflect"

	"agentproxy/domain/catalog"
	"agentproxy/domain/policy"
	"agentproxy/ports"
)

// CatalogConfig holds the providers and the products of the file. The zero value
// sells the embedded catalog alone.
type CatalogConfig struct {
	// WithoutEmbedded reports whether the embedded catalog is not sold. Its provider
	// stays, for sessions that were sold before.
	WithoutEmbedded bool
	Providers       []Provider        // in the order of the file
	Products        []catalog.Product // in the order of the file
	// Policy is the rules about targets, of the operator and of products.
	Policy *policy.Shared
	// ExitFacts are the sources of facts about exits, by falling rank.
	ExitFacts []ExitSource
}

// Kind returns the kind of a provider, or "" if none has the name.
func (c CatalogConfig) Kind(provider string) string {
	for _, p := range c.Providers {
		if p.Name == provider {
			return p.Kind
		}
	}
	return ""
}

// All returns every product that is sold; embedded are those of the embedded
// provider.
func (c CatalogConfig) All(embedded []catalog.Product) []catalog.Product {
	var all []catalog.Product
	if !c.WithoutEmbedded {
		all = append(all, embedded...)
	}
	return append(all, c.Products...)
}

// ChangedProviders returns the names of the providers whose settings differ from
// those before, and of those that were added or removed.
func (c CatalogConfig) ChangedProviders(before CatalogConfig) (names []string) {
	was := map[string]Provider{}
	for _, p := range before.Providers {
		was[p.Name] = p
	}
	for _, p := range c.Providers {
		if !reflect.DeepEqual(was[p.Name], p) {
			names = append(names, p.Name)
		}
		delete(was, p.Name)
	}
	for _, p := range before.Providers {
		if _, removed := was[p.Name]; removed {
			names = append(names, p.Name)
		}
	}
	return names
}

// loader reads a CatalogConfig out of the file.
type loader struct {
	Rules

	config   CatalogConfig
	warnings []Fault
	names    map[string]bool           // of all providers in the file
	sellers  map[string]ports.Provider // those that could be created, by name
	codes    map[string]int            // lines of products, by code
	asked    map[string]bool           // products that set trial_credit, by code
}
