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
	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/maintenance"
	"agentproxy/app/ordering"
	paymentsapp "agentproxy/app/payments"
	"agentproxy/app/reconcile"
	"agentproxy/app/telemetry"
	"agentproxy/domain/eventlog"
)

// task is work that is repeated periodically.
type task struct {
	name    string
	every   time.Duration
	run     func(context.Context) error
	trigger <-chan struct{} // each value runs it now
	leads   func() bool     // reports whether this process is the leader, who alone runs it; nil: every replica does
	atOnce  bool            // runs it within lookEvery of the time at which this process begins to lead
}

// lookEvery is how often a task with atOnce asks whether this process leads.
const lookEvery = time.Second

// wait returns the time to the next run, or to the next question whether this process leads.
func (t task) wait(leads bool) time.Duration {
	if t.atOnce && !leads {
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

// tasksIn is what the tasks run on.
type tasksIn struct {
	fx.In

	Settings  configfile.Settings
	Store     *storage.Store
	Hub       *changes.Hub
	Observer  *telemetry.Observer
	Passes    *maintenance.Tasks
	Addresses *maintenance.Addresses
	Queue     *queue.Queue
	Payments  *paymentsapp.Watcher
	Orders    *paymentsapp.Orders
	Driver    *ordering.Driver
	Catalog   *catalogs.Catalog
	Accounts  *accounts.Service
	Watch     *reconcile.Watch
	Ledger    *maintenance.Proof
	Log       *slog.Logger
}

// list returns the tasks of every replica, and those of the leader alone.
func (in tasksIn) list(changed <-chan struct{}, leads func() bool) []task {
	return []task{
		{name: "poll changes", every: changes.PollEvery, run: in.Hub.Poll, trigger: changed},
		{name: "flush observations", every: telemetry.FlushEvery, run: in.Observer.Flush},
		{name: "store key uses", every: accounts.KeyUsesEvery, run: in.Accounts.Keys.StoreUses},
		{name: "reclaim leases", every: time.Second, run: in.Passes.Reclaim, leads: leads},
		{name: "expire sessions", every: time.Second, run: in.Passes.ExpireSessions, leads: leads},
		{name: "expire trials", every: time.Second, run: in.Passes.ExpireTrials, leads: leads},
		{name: "settle sessions", every: time.Second, run: in.Passes.Settle, leads: leads},
		{name: "archive sessions", every: archiveEvery, run: in.Passes.Archive, leads: leads},
		{name: "reconcile orders", every: time.Second, run: in.Driver.DriveDue, leads: leads},
		{name: "watch providers", every: time.Minute, run: in.Watch.Run, leads: leads},
		{name: "check sold addresses", every: time.Minute, run: in.Addresses.Check, leads: leads},
		{name: "measure the clock", every: measureClockEvery, run: in.Store.MeasureClock},
		{name: "keep partitions of events", every: keepPartitionsEvery, leads: leads,
			run: func(ctx context.Context) error { return in.Store.KeepPartitions(ctx, eventlog.Retention) }},
		{name: "count what ended", every: countEndedEvery, run: in.Store.SumUp, leads: leads, atOnce: true},
		{name: "prove the ledger", every: maintenance.ProveEvery, run: in.Ledger.Run, leads: leads},
		{name: "refresh stock", every: time.Minute, run: in.Catalog.RefreshStock},
		watchPayments(in.Settings.Payments, in.Payments, leads),
		{name: "leave out lost payment addresses", every: measureClockEvery, run: in.Orders.Indexes.Resume},
	}
}

// tasks returns the tasks that the leader inserts as jobs, which any replica runs.
func (in jobsIn) tasks() []queue.PeriodicTask {
	return []queue.PeriodicTask{
		{Name: "purge", Every: time.Minute, Run: in.Passes.Purge},
		{Name: "purge-accounts", Every: 10 * time.Minute, Run: in.Accounts.Purge},
		{Name: "audit-payments", Every: auditEvery,
			Run: func(ctx context.Context) error { return in.Payments.Audit(ctx, auditAtOnce) }},
		{Name: "remind-of-sessions", Every: time.Minute, Run: in.Webhooks.RemindSessions},
		{Name: "remind-of-trials", Every: time.Minute, Run: in.Webhooks.RemindTrials},
		{Name: "sweep-deliveries", Every: time.Minute, Run: in.Webhooks.Sweep},
		// Often, because the period begins anew at each start; each provider once in 24 hours.
		{Name: "reconcile-providers", Every: 10 * time.Minute, Run: in.Reconcile.RunDue},
		{Name: "compare-usage", Every: 10 * time.Minute, Run: in.Reconcile.CountDue},
		{Name: "recover", Every: stuckAfter,
			Run: func(ctx context.Context) error { return in.Driver.Recover(ctx, stuckAfter) }},
	}
}

// runTasks runs every task in a loop of its own for as long as the application
// runs. It stores the last observations of the gateway when all have ended.
func runTasks(lc fx.Lifecycle, in tasksIn) {
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
			for _, t := range in.list(changed, in.Queue.Leads) {
				wg.Go(func() { loop(ctx, t, in.Log) })
			}
			wg.Go(func() { in.Store.Listen(ctx, signal) })
			wg.Go(func() { in.Store.NoteEvents(ctx) })
			return nil
		},
		OnStop: func(stopping context.Context) error {
			cancel()
			wg.Wait()
			err := errors.Join(in.Observer.FlushAll(stopping), in.Accounts.Keys.StoreUses(stopping))
			// What is on its way at a provider is stored if it ends in time; else its outcome is
			// unknown, and the provider is asked after the next start.
			within, stop := context.WithTimeout(stopping, driveOutWithin)
			defer stop()
			_ = in.Driver.Wait(within)
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
		leads := t.leads == nil || t.leads()
		if t.atOnce {
			tick.Reset(t.wait(leads))
		}
		if !leads {
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
