package wire

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"sync"
	"syscall"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app"
	"agentproxy/domain/catalog"
)

// newSellers makes the configured providers.
func newSellers(s configfile.Settings, log *slog.Logger) (configfile.Sellers, error) {
	return s.Shelf.Sellers(log)
}

// Reloader replaces the products by those that the configuration file has now.
type Reloader struct {
	start    configfile.Settings
	sellers  configfile.Sellers
	embedded []catalog.Product
	catalog  *app.Catalog
	log      *slog.Logger
}

// NewReloader remembers what cannot be changed without a restart: the settings
// and the providers of the start, and what the embedded one sells.
func NewReloader(start configfile.Settings, sellers configfile.Sellers, embedded []catalog.Product, c *app.Catalog, log *slog.Logger) *Reloader {
	return &Reloader{start, sellers, embedded, c, log}
}

// Reload reads the file again and replaces the products as a whole; sessions go
// on as they are. A file with a fault changes nothing, and each fault is logged.
func (r *Reloader) Reload() bool {
	now, err := configfile.LoadRunning(r.start.Shelf, append(configfile.Sellers{}, r.sellers...))
	if err == nil {
		err = r.catalog.Replace(now.Shelf.Sold(r.embedded))
	}
	if err != nil {
		for _, f := range configfile.FaultsOf(err) {
			r.log.Error("the configuration has a fault, so nothing was reloaded", "fault", f.Error())
		}
		return false
	}
	r.log.Info("the products were reloaded", "products", len(now.Shelf.Products), "embedded", !now.Shelf.WithoutEmbedded)
	r.warn(now.Shelf)
	if names := now.Shelf.Changed(r.start.Shelf); len(names) > 0 {
		r.log.Warn("settings of providers changed; they need a restart", "providers", names)
	}
	was := r.start
	was.Shelf, now.Shelf = configfile.Shelf{}, configfile.Shelf{}
	if !reflect.DeepEqual(was, now) {
		r.log.Warn("settings beside the products changed; they need a restart")
	}
	return true
}

func (r *Reloader) warn(s configfile.Shelf) {
	for _, w := range s.Warnings {
		r.log.Warn("the configuration has a gap", "gap", w.Error())
	}
}

func newReloader(s configfile.Settings, sellers configfile.Sellers, embedded *embedded.Provider, c *app.Catalog, log *slog.Logger) *Reloader {
	return NewReloader(s, sellers, embedded.Products(), c, log)
}

// reloadOnHangup reloads at each SIGHUP for as long as the application runs.
func reloadOnHangup(lc fx.Lifecycle, r *Reloader) {
	told := make(chan os.Signal, 1)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		r.warn(r.start.Shelf)
		signal.Notify(told, syscall.SIGHUP)
		wg.Go(func() {
			for {
				select {
				case <-told:
					r.Reload()
				case <-ctx.Done():
					return
				}
			}
		})
	}, func() {
		signal.Stop(told)
		cancel()
		wg.Wait()
	}))
}
