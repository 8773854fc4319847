package operator

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"agentproxy/app/catalogs"
	"agentproxy/ports"
)

// Unconfigured finds what was sold by providers that are not configured: renamed, removed or mistyped ones.
type Unconfigured struct {
	store   ports.Unit[repos]
	catalog *catalogs.Catalog
	log     *slog.Logger
}

// NewUnconfigured returns the use cases.
func NewUnconfigured(store ports.Store, c *catalogs.Catalog, log *slog.Logger) *Unconfigured {
	return &Unconfigured{narrow(store), c, log}
}

// List returns how much names each provider that is not configured.
func (u *Unconfigured) List(ctx context.Context) (missing map[string]ports.Named, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		missing, err = tx.Overview().Providers(ctx)
		return err
	})
	maps.DeleteFunc(missing, func(name string, _ ports.Named) bool {
		_, known := u.catalog.Provider(name)
		return known
	})
	return missing, err
}

// Check returns an error if live sessions have a provider that is not configured: their agents pay and get nothing,
// and their addresses would be sold again. It logs open orders and claims of one, which the program cannot end
// without it.
func (u *Unconfigured) Check(ctx context.Context) error {
	missing, err := u.List(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		n := missing[name]
		if n.Sessions > 0 {
			return fmt.Errorf("%d live sessions, %d open orders and %d claims of proxies name the provider %q, which is not "+
				"configured: configure it under this name, or end these sessions with agentproxy session end SESSION_ID",
				n.Sessions, n.Orders, n.Claims, name)
		}
		u.log.Error("open orders or claims of proxies name a provider that is not configured; nothing ends them without it",
			"provider", name, "orders", n.Orders, "claims", n.Claims)
	}
	return nil
}
