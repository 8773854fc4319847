package wire

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/app"
)

// pass is one thing that is done again and again.
type pass struct {
	name  string
	every time.Duration
	run   func(context.Context) error
	wake  <-chan struct{} // runs it before its time
	only  func() bool     // whether it is this process's turn; nil: always
}

// stuckAfter is when a session that is still creating gets a new job.
const stuckAfter = 5 * time.Minute

// passes run on every replica; those that one alone need do, on the leader.
func passes(told <-chan struct{}, leads func() bool, hub *app.Hub, o *app.Observer, p *app.Passes,
	driver *app.Driver, catalog *app.Catalog) []pass {
	return []pass{
		{name: "poll changes", every: app.PollEvery, run: hub.Poll, wake: told},
		{name: "flush observations", every: app.FlushEvery, run: o.Flush},
		{name: "reclaim leases", every: time.Second, run: p.Reclaim, only: leads},
		{name: "drive orders", every: time.Second, run: driver.DriveDue, only: leads},
		{name: "refresh stock", every: time.Minute, run: catalog.RefreshStock},
	}
}

// jobPasses are begun by the leader and done by any replica, as jobs.
func jobPasses(p *app.Passes, driver *app.Driver, payments *app.Payments, webhooks *app.Webhooks, ledger *proof) []queue.Pass {
	return []queue.Pass{
		{Name: "sweep", Every: time.Minute, AtStart: true, Run: p.Sweep},
		{Name: "tidy", Every: time.Minute, Run: p.Purge},
		{Name: "audit-payments", Every: auditEvery, Run: func(ctx context.Context) error { return payments.Audit(ctx, auditAtOnce) }},
		{Name: "remind-of-sessions", Every: time.Minute, Run: webhooks.RemindSessions},
		{Name: "remind-of-trials", Every: time.Minute, Run: webhooks.RemindTrials},
		{Name: "sweep-deliveries", Every: time.Minute, Run: webhooks.Sweep},
		{Name: "prove-ledger", Every: proveEvery, Run: ledger.run},
		{Name: "recover", Every: stuckAfter, Run: func(ctx context.Context) error { return driver.Recover(ctx, stuckAfter) }},
	}
}

// runPasses runs every pass in a loop of its own for as long as the application
// runs. What the gateway saw last is stored when all have ended.
func runPasses(lc fx.Lifecycle, log *slog.Logger, settings configfile.Settings, st *storage.Store, hub *app.Hub, o *app.Observer, p *app.Passes,
	q *queue.Queue, payments *app.Payments, driver *app.Driver, catalog *app.Catalog) {
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
			all := append(passes(told, q.Leads, hub, o, p, driver, catalog), watchPayments(settings.Payments, payments, q.Leads))
			for _, pass := range all {
				wg.Go(func() { loop(ctx, pass, log) })
			}
			wg.Go(func() { st.Listen(ctx, tell) })
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			wg.Wait()
			return o.FlushAll(stopping)
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
		if p.only != nil && !p.only() {
			failed = 0
			continue
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
