package wire

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/queue"
	"agentproxy/app/exitlogs"
)

// keepExits stores what the gateway records of exits, and deletes what is old, for as long as the
// application runs. What is recorded last is stored after the gateway has stopped.
func keepExits(lc fx.Lifecycle, recorded *exitlogs.Log, kept *exitlogs.Service, q *queue.Queue,
	registry *prometheus.Registry, log *slog.Logger) error {
	tasks := []task{
		{name: "store the exit log", every: exitlogs.FlushEvery, run: recorded.Flush},
		{name: "purge the exit log", every: 10 * time.Minute, run: kept.Purge, leads: q.Leads},
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.StartStopHook(func() {
		for _, t := range tasks {
			wg.Go(func() { loop(ctx, t, log) })
		}
	}, func(stopping context.Context) error {
		cancel()
		wg.Wait()
		return recorded.Flush(stopping)
	}))
	return registry.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "agentproxy_exit_log_dropped_total",
		Help: "Records of connections that were lost because the database did not take them in time."},
		func() float64 { return float64(recorded.Dropped()) }))
}
