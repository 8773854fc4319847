package reconcile

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// Watch reports providers that do not show many of their orders. Whether
// those end is decided where they are read; see procurement.Owed.
type Watch struct {
	store ports.Unit[repos]
	log   *slog.Logger

	mu      sync.Mutex
	atFault map[string]bool // providers that were reported
}

// NewWatch returns a Watch.
func NewWatch(store ports.Store, log *slog.Logger) *Watch {
	return &Watch{store: narrow(store), log: log, atFault: map[string]bool{}}
}

// Owed counts, by provider, the orders that are owed.
func (u *Watch) Owed(ctx context.Context) (owed map[string]procurement.Owed, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		owed, err = tx.Orders().Owed(ctx)
		return err
	})
	return owed, err
}

// Run logs an error once when a provider begins to miss many of its orders, and once
// more when it shows them again.
func (u *Watch) Run(ctx context.Context) error {
	owed, err := u.Owed(ctx)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, provider := range slices.Sorted(maps.Keys(owed)) {
		w := owed[provider]
		if w.SellersFault() && !u.atFault[provider] {
			u.atFault[provider] = true
			u.log.Error("the provider does not show many of its orders; their sessions go on and they are looked for again",
				"provider", provider, "missing", w.Missing, "orders", w.Live)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(u.atFault)) {
		if w := owed[provider]; !w.SellersFault() {
			delete(u.atFault, provider)
			u.log.Info("the provider shows its orders again", "provider", provider, "missing", w.Missing, "orders", w.Live)
		}
	}
	return nil
}
