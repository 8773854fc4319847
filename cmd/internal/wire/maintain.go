package wire

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/ports"
)

// keepEvery is how often a provider with work of its own is asked whether some is due.
const keepEvery = 5 * time.Second

// keepProviders runs the work of providers that have some, each in a loop of its own, from
// the start of the application on. It starts after the API, whose echo the probes of lists
// call.
func keepProviders(lc fx.Lifecycle, providers Providers, registry *prometheus.Registry, log *slog.Logger) error {
	stock := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "agentproxy_provider_lines",
		Help: "Proxies of lists by provider and state, as this replica sees them."}, []string{"provider", "state"})
	var tasks []task
	for _, p := range providers {
		k, ok := p.(ports.Maintainer)
		if !ok {
			continue
		}
		wake := make(chan struct{}, 1)
		wake <- struct{}{} // at once
		tasks = append(tasks, task{name: "keep " + p.Name(), every: keepEvery, trigger: wake,
			run: func(ctx context.Context) error {
				err := k.Maintain(ctx)
				for state, n := range k.Stock() {
					stock.WithLabelValues(p.Name(), state).Set(float64(n))
				}
				return err
			}})
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		for _, t := range tasks {
			wg.Go(func() { loop(ctx, t, log) })
		}
	}, func() {
		cancel()
		wg.Wait()
	}))
	return registry.Register(stock)
}
