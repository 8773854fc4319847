package wire

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.uber.org/fx"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/app/accounts"
	"agentproxy/app/catalog"
	"agentproxy/app/changes"
	"agentproxy/app/maintenance"
	paymentsapp "agentproxy/app/payments"
	"agentproxy/app/procurement"
	"agentproxy/app/reconcile"
	"agentproxy/app/telemetry"
	"agentproxy/app/webhooks"
	"agentproxy/domain/eventlog"
)

// task is work that is repeated periodically.
type task struct {
	name    string
	every   time.Duration
	run     func(context.Context) error
	trigger <-chan struct{} // runs it at once
	only    func() bool     // reports whether this process runs it; nil if it always does
	atOnce  bool            // runs it within lookEvery of the time from which only reports so
}

// lookEvery is how often a task that runs at once asks whether this process runs it now.
const lookEvery = time.Second

// wait returns the time to the next run, or to the next look whether there is one.
func (t task) wait(runs bool) time.Duration {
	if t.atOnce && !runs {
		return min(lookEvery, t.every)
	}
	return t.every
}

// stuckAfter is the age at which a session that is still creating gets a new job.
const stuckAfter = 5 * time.Minute

// measureClockEvery is how often a replica compares its clock with the database's. In this time a
// monotonic clock drifts by less than a millisecond.
const measureClockEvery = 2 * time.Second

// keepPartitionsEvery is how often the partitions of the event log are looked after; a day is one.
const keepPartitionsEvery = 10 * time.Minute

// countEndedEvery is how often sessions and hours that ended are counted. What is not counted yet is counted
// by each call that needs it, so a new leader counts at once: after an upgrade that may be much.
const countEndedEvery = 20 * time.Second

// archiveEvery is how often the workers of sessions that ended long ago are archived, those of up to 500 sessions.
const archiveEvery = time.Minute

// driveOutWithin is how long a process that stops waits for calls of providers.
const driveOutWithin = 15 * time.Second

// tasks returns the tasks of every replica, and those of the leader alone.
func tasks(st *storage.Store, changed <-chan struct{}, leads func() bool, hub *changes.Hub, o *telemetry.Observer,
	p *maintenance.Tasks, driver *procurement.Driver, catalog *catalog.Catalog, keys *accounts.Service,
	watch *reconcile.Watch, ledger *proof, addresses *maintenance.Addresses) []task {
	return []task{
		{name: "poll changes", every: changes.PollEvery, run: hub.Poll, trigger: changed},
		{name: "flush observations", every: telemetry.FlushEvery, run: o.Flush},
		{name: "store key uses", every: accounts.KeyUsesEvery, run: keys.Keys.StoreUses},
		{name: "reclaim leases", every: time.Second, run: p.Reclaim, only: leads},
		{name: "expire sessions", every: time.Second, run: p.ExpireSessions, only: leads},
		{name: "expire trials", every: time.Second, run: p.ExpireTrials, only: leads},
		{name: "settle sessions", every: time.Second, run: p.Settle, only: leads},
		{name: "archive sessions", every: archiveEvery, run: p.Archive, only: leads},
		{name: "reconcile orders", every: time.Second, run: driver.DriveDue, only: leads},
		{name: "watch providers", every: time.Minute, run: watch.Run, only: leads},
		{name: "check sold addresses", every: time.Minute, run: addresses.Check, only: leads},
		{name: "measure the clock", every: measureClockEvery, run: st.MeasureClock},
		{name: "keep partitions of events", every: keepPartitionsEvery, only: leads,
			run: func(ctx context.Context) error { return st.KeepPartitions(ctx, eventlog.Retention) }},
		{name: "count what ended", every: countEndedEvery, run: st.SumUp, only: leads, atOnce: true},
		{name: "prove the ledger", every: proveTick, run: ledger.run, only: leads},
		{name: "refresh stock", every: time.Minute, run: catalog.RefreshStock},
	}
}

// jobTasks returns the tasks that the leader inserts as jobs, which any replica
// runs.
func jobTasks(p *maintenance.Tasks, driver *procurement.Driver, payments *paymentsapp.Watcher,
	webhooks *webhooks.Service, accounts *accounts.Service, reconcile *reconcile.Service) []queue.PeriodicTask {
	return []queue.PeriodicTask{
		{Name: "purge", Every: time.Minute, Run: p.Purge},
		{Name: "purge-accounts", Every: 10 * time.Minute, Run: accounts.Purge},
		{Name: "audit-payments", Every: auditEvery,
			Run: func(ctx context.Context) error { return payments.Audit(ctx, auditAtOnce) }},
		{Name: "remind-of-sessions", Every: time.Minute, Run: webhooks.RemindSessions},
		{Name: "remind-of-trials", Every: time.Minute, Run: webhooks.RemindTrials},
		{Name: "sweep-deliveries", Every: time.Minute, Run: webhooks.Sweep},
		// Often, because the period begins anew at each start; each provider once in 24 hours.
		{Name: "reconcile-providers", Every: 10 * time.Minute, Run: reconcile.RunDue},
		{Name: "compare-usage", Every: 10 * time.Minute, Run: reconcile.CountDue},
		{Name: "recover", Every: stuckAfter, Run: func(ctx context.Context) error { return driver.Recover(ctx, stuckAfter) }},
	}
}

// runTasks runs every task in a loop of its own for as long as the application
// runs. It stores the last observations of the gateway when all have ended.
func runTasks(lc fx.Lifecycle, log *slog.Logger, settings configfile.Settings, st *storage.Store, hub *changes.Hub,
	o *telemetry.Observer, p *maintenance.Tasks, q *queue.Queue, payments *paymentsapp.Watcher, driver *procurement.Driver,
	catalog *catalog.Catalog, keys *accounts.Service, watch *reconcile.Watch, ledger *proof,
	addresses *maintenance.Addresses, orders *paymentsapp.Orders) {
	ctx, cancel := context.WithCancel(context.Background())
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default: // the poll that is due covers this change too
		}
	}
	var wg sync.WaitGroup
	lc.Append(fx.Hook{
		OnStart: func(context.Context) error {
			all := append(tasks(st, changed, q.Leads, hub, o, p, driver, catalog, keys, watch, ledger, addresses),
				watchPayments(settings.Payments, payments, q.Leads),
				task{name: "leave out lost payment addresses", every: measureClockEvery, run: orders.Indexes.Resume})
			for _, t := range all {
				wg.Go(func() { loop(ctx, t, log) })
			}
			wg.Go(func() { st.Listen(ctx, signal) })
			wg.Go(func() { st.NoteEvents(ctx) })
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			wg.Wait()
			err := errors.Join(o.FlushAll(stopping), keys.Keys.StoreUses(stopping))
			// What is on its way at a provider is stored if it ends in time; else its outcome is
			// unknown, and the provider is asked after the next start.
			within, stop := context.WithTimeout(stopping, driveOutWithin)
			defer stop()
			_ = driver.Wait(within)
			return err
		},
	})
}

// loop runs a task until the context ends. A task that fails runs again after its
// period; of repeated failures the first, second, fourth, eighth and so on are
// logged.
func loop(ctx context.Context, t task, log *slog.Logger) {
	tick := time.NewTicker(t.wait(false))
	defer tick.Stop()
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.trigger:
		}
		runs := t.only == nil || t.only()
		if t.atOnce {
			tick.Reset(t.wait(runs))
		}
		if !runs {
			failed = 0
			continue
		}
		err := t.run(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			failed = 0
		default:
			if failed++; failed&(failed-1) == 0 {
				log.Error("periodic task failed", "task", t.name, "times", failed, "err", err)
			}
		}
	}
}
