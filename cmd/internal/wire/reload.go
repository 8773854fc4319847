package wire

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/catalogs"
	"agentproxy/app/operator"
	"agentproxy/app/policies"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Reloader replaces the products, the policy and the facts about exits by those that the configuration file has now.
type Reloader struct {
	loader    Loader
	start     configfile.Settings
	providers Providers
	embedded  []catalog.Product
	to        Reloaded
	live      func(ctx context.Context, product string) (int, error) // sessions
	users     func() (int, error)                                    // of the admin listener; nil: none
	log       *slog.Logger
}

// Reloaded is what a Reloader replaces.
type Reloaded struct {
	Catalog *catalogs.Catalog
	Policy  *policies.Published
	Facts   *exitfacts.Facts
}

func newReloaded(c *catalogs.Catalog, p *policies.Published, f *exitfacts.Facts) Reloaded {
	return Reloaded{c, p, f}
}

// NewReloader creates a Reloader of a service that runs with the settings and
// providers of its start, which change only by a restart. embedded are the
// products of the embedded provider. live counts the live sessions of a product.
func NewReloader(l Loader, start configfile.Settings, providers Providers, embedded []catalog.Product,
	to Reloaded, live func(context.Context, string) (int, error), log *slog.Logger) *Reloader {
	return &Reloader{loader: l, start: start, providers: providers, embedded: embedded, to: to, live: live, log: log}
}

// Reload reads the file again and replaces what may change as a whole; sessions
// go on as they are. If the file has a fault it logs each, changes nothing, and
// returns false.
func (r *Reloader) Reload() bool {
	before := r.to.Catalog.All()
	now, err := r.loader.reload(append(Providers{}, r.providers...)) // not nil, even if empty
	if err == nil {
		err = r.to.Catalog.Replace(now.Catalog.All(r.embedded))
	}
	if err != nil {
		for _, f := range configfile.FaultsOf(err) {
			r.log.Error("configuration not reloaded: it has a fault", "fault", f.Error())
		}
		return false
	}
	r.to.Policy.Replace(now.Catalog.Policy)
	r.to.Facts.Replace(exitSources(now.Catalog.ExitFacts))
	r.reloadUsers()
	changes := catalog.Compare(before, r.to.Catalog.All())
	r.log.Info("the products were reloaded", "products", len(now.Catalog.Products), "embedded",
		!now.Catalog.WithoutEmbedded, "added", changes.Added, "removed", changes.Removed, "changed", changes.Changed)
	for _, text := range changes.Jumps {
		r.log.Warn("a price is ten times or a tenth of what it was: check it", "product", text)
	}
	r.warnOfLive(changes.Removed)
	r.warn(now)
	if names := now.Catalog.ChangedProviders(r.start.Catalog); len(names) > 0 {
		r.log.Warn("changed settings of providers take effect after a restart", "providers", names)
	}
	if !reflect.DeepEqual(withoutCatalog(r.start), withoutCatalog(now)) {
		r.log.Warn("changed settings other than products, the policy and exit_facts take effect after a restart")
	}
	return true
}

// reloadUsers reads the users of the admin listener again.
func (r *Reloader) reloadUsers() {
	if r.users == nil {
		return
	}
	n, err := r.users()
	if err != nil {
		r.log.Error("the users of the admin listener are as before: their file has a fault", "fault", err)
		return
	}
	r.log.Info("the users of the admin listener were reloaded", "users", n)
}

// warnOfLive logs products that are sold no more and have live sessions.
func (r *Reloader) warnOfLive(removed []string) {
	ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
	defer cancel()
	for _, no := range removed {
		n, err := r.live(ctx, no)
		switch {
		case err != nil:
			r.log.Warn("the live sessions of a product that is sold no more could not be counted", "product", no, "error", err)
		case n > 0:
			r.log.Warn("a product that is sold no more has live sessions: they go on, and cannot be renewed or get more traffic",
				"product", no, "sessions", n)
		}
	}
}

// countTimeout bounds the counting of sessions, which the file does not wait for.
const countTimeout = time.Minute

// liveSessions returns how many sessions of a product are live.
func liveSessions(sessions *operator.Sessions) func(context.Context, string) (int, error) {
	return func(ctx context.Context, product string) (n int, err error) {
		for _, status := range []session.Status{session.Creating, session.Active} {
			filter := ports.OverviewFilter{ProductNo: product, Status: status}
			list, err := sessions.List(ctx, filter, domain.Page{Number: 1, Size: 1})
			if err != nil {
				return 0, err
			}
			n += list.Total
		}
		return n, nil
	}
}

func withoutCatalog(s configfile.Settings) configfile.Settings {
	s.Catalog, s.Warnings = configfile.CatalogConfig{}, nil
	return s
}

func (r *Reloader) warn(s configfile.Settings) {
	for _, w := range s.Warnings {
		r.log.Warn("doubtful configuration", "setting", w.Error())
	}
}

// reloadIn is what a reload compares and changes.
type reloadIn struct {
	fx.In

	Loader    Loader
	Settings  configfile.Settings
	Providers Providers
	Embedded  *embedded.Provider
	To        Reloaded
	Sessions  *operator.Sessions
	Gate      *signin.Gate
	Log       *slog.Logger
}

func newReloader(in reloadIn) *Reloader {
	r := NewReloader(in.Loader, in.Settings, slices.Clone(in.Providers), in.Embedded.Products(), in.To,
		liveSessions(in.Sessions), in.Log)
	r.users = reloadUsers(in.Settings, in.Gate)
	return r
}

// reloadOnHangup reloads at each SIGHUP for as long as the application runs.
func reloadOnHangup(lc fx.Lifecycle, r *Reloader) {
	hangups := make(chan os.Signal, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		r.warn(r.start)
		for _, w := range r.start.Payments.Warnings() {
			r.log.Warn("doubtful configuration", "setting", w.Error())
		}
		signal.Notify(hangups, syscall.SIGHUP)
		wg.Go(func() {
			for {
				select {
				case <-hangups:
					r.Reload()
				case <-ctx.Done():
					return
				}
			}
		})
	}, func() {
		signal.Stop(hangups)
		cancel()
		wg.Wait()
	}))
}
