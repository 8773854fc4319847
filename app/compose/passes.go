package compose

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/app"
)

// pass is one thing that is done again and again.
type pass struct {
	name  string
	every time.Duration
	run   func(context.Context) error
}

// stuckAfter is when a session that is still creating gets a new job.
const stuckAfter = 5 * time.Minute

func passes(hub *app.Hub, t *app.Traffic, p *app.Passes, sessions *app.Sessions) []pass {
	return []pass{
		{"poll changes", app.PollEvery, hub.Poll},
		{"flush observations", app.FlushEvery, t.Flush},
		{"expire sessions", time.Second, p.ExpireSessions},
		{"take back leases", time.Second, p.TakeBack},
		{"settle", 2 * time.Second, p.Settle},
		{"expire trials", 10 * time.Second, p.ExpireTrials},
		{"tidy", time.Minute, p.Tidy},
		{"recover", stuckAfter, func(ctx context.Context) error { return sessions.Recover(ctx, stuckAfter) }},
	}
}

// runPasses runs every pass in a loop of its own for as long as the application
// runs. What the gateway saw last is stored when all have ended.
func runPasses(lc fx.Lifecycle, log *slog.Logger, settings Settings, hub *app.Hub, t *app.Traffic, p *app.Passes,
	sessions *app.Sessions, payments *app.Payments) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			all := slices.Concat(passes(hub, t, p, sessions), paymentPasses(settings.Payments, payments))
			for _, pass := range all {
				wg.Go(func() { loop(ctx, pass, log) })
			}
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			wg.Wait()
			return t.FlushAll(stopping)
		},
	})
}

// loop runs a pass until the context ends. A pass that fails is logged and
// tried again at its next turn; one that fails again and again is logged at
// growing distances.
func loop(ctx context.Context, p pass, log *slog.Logger) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := p.run(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failed = 0
		default:
			if failed++; failed&(failed-1) == 0 {
				log.Error("pass failed", "pass", p.name, "times", failed, "err", err)
			}
		}
	}
}
