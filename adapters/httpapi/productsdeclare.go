package httpapi

import (
	"agentproxy/app/catalog"
)

// productsUses are the use cases that the operations on products call.
type productsUses struct{ Catalog *catalog.Catalog }

// productsService serves the operations on products.
type productsService struct {
	productsUses
	api *API
}

// declareProductsFamily declares the operations on products.
func declareProductsFamily(a *API, u productsUses) {
	s := &productsService{u, a}
	s.declareProducts()
}
