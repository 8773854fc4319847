package products

import (
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/app/catalogs"
)

// UseCases are the use cases that the operations on products call.
type UseCases struct{ Catalog *catalogs.Catalog }

// service serves the operations on products.
type service struct {
	UseCases
	api *endpoint.API
}

// Declare declares the operations on products.
func Declare(a *endpoint.API, u UseCases) {
	s := &service{u, a}
	s.declareProducts()
}
