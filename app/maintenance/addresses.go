package maintenance

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/sessions"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// lostAfter is how long no connection could be made from a sold address of this host before its session ends: an
// interface may be down for a while.
const lostAfter = time.Hour

// Addresses ends static sessions whose address is not on this host any more, and gives back their unused days. It is
// of the process that leads: which addresses are missing, and since when, is kept in memory.
type Addresses struct {
	store       ports.Unit[repos]
	clock       ports.Clock
	catalog     *catalogs.Catalog
	transitions *sessions.Transitions
	hub         *changes.Hub
	log         *slog.Logger

	mu      sync.Mutex
	missing map[string]time.Time // since when, by address
}

// NewAddresses returns the task.
func NewAddresses(store ports.Store, clock ports.Clock, c *catalogs.Catalog, transitions *sessions.Transitions,
	hub *changes.Hub, log *slog.Logger) *Addresses {
	return &Addresses{store: narrow(store), clock: clock, catalog: c, transitions: transitions, hub: hub, log: log,
		missing: map[string]time.Time{}}
}

// Check tries every address that is sold.
func (a *Addresses) Check(ctx context.Context) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, p := range a.catalog.Providers() {
		pool, local := p.(ports.ExitPool)
		if !local {
			continue
		}
		var owners map[string]string
		err := a.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			owners, err = tx.Addresses().Owners(ctx, p.Name())
			return err
		})
		if err != nil {
			return err
		}
		if err := a.check(ctx, pool, owners); err != nil {
			return err
		}
	}
	return nil
}

func (a *Addresses) check(ctx context.Context, pool ports.ExitPool, owners map[string]string) error {
	now := a.clock.Now()
	for ip := range a.missing {
		if _, sold := owners[ip]; !sold {
			delete(a.missing, ip)
		}
	}
	for ip, id := range owners {
		addr, err := netip.ParseAddr(ip)
		if err != nil || pool.Serves(addr) {
			delete(a.missing, ip)
			continue
		}
		since, known := a.missing[ip]
		if !known {
			a.missing[ip] = now
			a.log.Error("no connection can be made from a sold address of this host; its session ends in an hour "+
				"unless it is back", "exit", ip, "session_id", id)
			continue
		}
		if now.Sub(since) < lostAfter {
			continue
		}
		if err := a.endSession(ctx, id, now); err != nil {
			return err
		}
	}
	return nil
}

// endSession ends a session whose address is lost.
func (a *Addresses) endSession(ctx context.Context, id string, now time.Time) error {
	err := a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil || s.Status != session.Active {
			return err
		}
		_, err = a.transitions.Terminate(ctx, tx, s, session.ProviderLost, now)
		return err
	})
	if err == nil {
		a.hub.SessionChanged(id)
	}
	return err
}
