package compose

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/storage"
	"agentproxy/app"
)

// pass is one thing that is done again and again.
type pass struct {
	name  string
	every time.Duration
	run   func(context.Context) error
	wake  <-chan struct{} // runs it before its time
}

// stuckAfter is when a session that is still creating gets a new job.
const stuckAfter = 5 * time.Minute

func passes(told <-chan struct{}, hub *app.Hub, t *app.Traffic, p *app.Passes, sessions *app.Sessions, webhooks *app.Webhooks) []pass {
	return []pass{
		{name: "poll changes", every: app.PollEvery, run: hub.Poll, wake: told},
		{name: "flush observations", every: app.FlushEvery, run: t.Flush},
		{name: "expire sessions", every: time.Second, run: p.ExpireSessions},
		{name: "take back leases", every: time.Second, run: p.TakeBack},
		{name: "settle", every: 2 * time.Second, run: p.Settle},
		{name: "expire trials", every: 10 * time.Second, run: p.ExpireTrials},
		{name: "tidy", every: time.Minute, run: p.Tidy},
		{name: "remind of sessions", every: time.Minute, run: webhooks.RemindSessions},
		{name: "remind of trials", every: time.Minute, run: webhooks.RemindTrials},
		{name: "sweep deliveries", every: time.Minute, run: webhooks.Sweep},
		{name: "recover", every: stuckAfter, run: func(ctx context.Context) error { return sessions.Recover(ctx, stuckAfter) }},
	}
}

// runPasses runs every pass in a loop of its own for as long as the application
// runs. What the gateway saw last is stored when all have ended.
func runPasses(lc fx.Lifecycle, log *slog.Logger, settings Settings, st *storage.Store, hub *app.Hub, t *app.Traffic, p *app.Passes,
	sessions *app.Sessions, payments *app.Payments, webhooks *app.Webhooks, ledger *proof) {
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan struct{}, 1)
	tell := func() {
		select {
		case told <- struct{}{}:
		default: // the poll that is due will see this too
		}
	}
	var wg sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			all := slices.Concat(passes(told, hub, t, p, sessions, webhooks), paymentPasses(settings.Payments, payments),
				[]pass{{name: "prove the ledger", every: proveEvery, run: ledger.run}})
			for _, pass := range all {
				wg.Go(func() { loop(ctx, pass, log) })
			}
			wg.Go(func() { st.Listen(ctx, tell) })
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
		case <-p.wake:
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
