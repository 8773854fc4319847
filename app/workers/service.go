package workers

import (
	"log/slog"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/exitgate"
	"agentproxy/app/fulfilment"
	"agentproxy/ports"
)

// Service is the use cases of workers.
type Service struct {
	// Gate holds exits to the rules of sessions; nil: none meets any.
	Gate    *exitgate.Gate
	store   ports.Unit[Repos]
	clock   ports.Clock
	ids     ports.IDs
	catalog *catalogs.Catalog
	access  *fulfilment.Service
	hub     *changes.Hub
	log     *slog.Logger
	first   queue
}

// New returns the use cases.
func New(store ports.Store, clock ports.Clock, ids ports.IDs, catalog *catalogs.Catalog, access *fulfilment.Service,
	hub *changes.Hub, log *slog.Logger) *Service {
	u := &Service{store: narrow(store), clock: clock, ids: ids, catalog: catalog, access: access, hub: hub, log: log}
	u.first.run = u.useAll
	return u
}
