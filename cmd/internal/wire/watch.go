package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/adapters/admin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/nats"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/maintenance"
	"agentproxy/app/metering"
	"agentproxy/app/operator"
	"agentproxy/app/ordering"
	"agentproxy/app/payments"
	"agentproxy/app/reconcile"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
)

// checks returns what must hold for this replica to receive requests.
func checks(st *storage.Store, q *queue.Queue, telemetry *nats.Queue) []admin.Check {
	started := time.Now()
	return append(telemetryCheck(telemetry), []admin.Check{
		{Name: "database", Run: st.Ping, Note: func() string { return freeSpace(st) }},
		{Name: "writes", Run: st.ProbeWrite, Note: func() string { return probed(st) }},
		{Name: "migrations", Run: func(ctx context.Context) error {
			err := st.CheckSchema(ctx)
			if errors.Is(err, storage.ErrOlderSchema) || errors.Is(err, storage.ErrNewerSchema) {
				err = admin.Reason(err.Error())
			}
			return err
		}},
		{Name: "leader", Shared: true, Run: func(ctx context.Context) error {
			s, err := q.Status(ctx)
			if err != nil {
				return err
			}
			if age := time.Since(s.LedAt); age > leaderLate && time.Since(started) > leaderLate {
				return admin.Reason("no replica has led for more than " + leaderLate.String())
			}
			return nil
		}},
	}...)
}

// freeSpace returns how much space the database has left, as a text; "" if that is not known.
func freeSpace(st *storage.Store) string {
	free, known, err := st.Free()
	if err != nil || !known {
		return ""
	}
	if st.Pool() != nil {
		return fmt.Sprintf("%.1f GB free of the declared capacity", float64(free)/1e9)
	}
	return fmt.Sprintf("%.1f GB free", float64(free)/1e9)
}

// probed returns what ProbeWrite does not show, as a text; "" on SQLite, whose every commit needs space. PostgreSQL
// updates the row in place and reuses its WAL. A full disk there is no reason to be unready: every replica has it.
func probed(st *storage.Store) string {
	_, known, _ := st.Free()
	switch {
	case st.Pool() == nil:
		return ""
	case st.DiskFull():
		return "a row was updated in place; PostgreSQL's disk was full within the last five minutes"
	case known:
		return "a row was updated in place"
	}
	return "a row was updated in place; whether PostgreSQL's disk has space for new rows is not known"
}

// spaceGauges returns the gauges of free space; that of the bytes where they are known.
func spaceGauges(st *storage.Store) []admin.Gauge {
	list := []admin.Gauge{{Name: "agentproxy_database_scarce", Help: "1 while little space is left for the database: " +
		"outside development mode accounts on trial store nothing more.",
		Read: func(context.Context) (float64, error) {
			if scarce, err := st.Scarce(); !scarce || err != nil {
				return 0, err
			}
			return 1, nil
		}}}
	if _, known, _ := st.Free(); !known {
		return list
	}
	return append(list, admin.Gauge{Name: "agentproxy_database_free_bytes",
		Help: "Space left for the database: on the disk of the SQLite file, or of AGENTPROXY_DATABASE_CAPACITY_MB.",
		Read: func(context.Context) (float64, error) {
			free, _, err := st.Free()
			return float64(free), err
		}})
}

// leaderLate is the most that the leader's last work may be ago: some is due each
// minute, and a leader that was killed has a successor within seconds.
const leaderLate = 5 * time.Minute

// gaugesIn is what gauges are read from.
type gaugesIn struct {
	fx.In

	Store     *storage.Store
	Passes    *maintenance.Tasks
	Traffic   *metering.Service
	Desk      *ordering.Desk
	Watch     *reconcile.Watch
	Providers *reconcile.Service
	Audit     ports.Audit
	Payments  *payments.Watcher
	Orders    *payments.Orders
	Webhooks  *webhooks.Service
	Accounts  *accounts.Service
	Queue     *queue.Queue
	Sessions  *operator.Sessions
	Clock     ports.Clock
}

// gauges returns the gauges that are read at each scrape.
func gauges(in gaugesIn) []admin.Gauge {
	st := in.Store
	return slices.Concat(
		[]admin.Gauge{
			{Name: "agentproxy_clock_skew_seconds", Help: "By how much this host's clock is ahead of the database's.",
				Read: func(context.Context) (float64, error) { return st.ClockSkew().Seconds(), nil }},
			{Name: "agentproxy_clock_held", Help: "1 while the clock is far ahead of the last row and the chain does not " +
				"agree with it: nothing expires.",
				Read: func(context.Context) (float64, error) {
					if st.ClockHeld() {
						return 1, nil
					}
					return 0, nil
				}},
			{Name: "agentproxy_database_lock_waits", Help: "Connections to PostgreSQL that wait for a lock.",
				Read: st.LockWaits},
			{Name: "agentproxy_feed_held_seconds", Help: "How old an event is that no agent is shown yet, since a transaction " +
				"that began before it is under way.",
				Read: func(ctx context.Context) (float64, error) {
					held, err := st.FeedHeld(ctx)
					return held.Seconds(), err
				}},
			{Name: "agentproxy_traffic_failing_sessions", Help: "Sessions whose traffic could not be booked in the last " +
				"minute; each is logged.",
				Read: func(context.Context) (float64, error) { return float64(in.Traffic.Failing()), nil }},
			{Name: "agentproxy_trial_granted_usd", Help: "Trial credit granted on the current UTC day.",
				Read: func(ctx context.Context) (float64, error) {
					granted, err := in.Accounts.TrialGranted(ctx)
					return float64(granted) / 1e6, err
				}},
		},
		ledgerGauges(in.Audit), spaceGauges(st), jobGauges(in.Queue, in.Webhooks, in.Passes),
		orderGauges(in.Desk, in.Watch, in.Providers, in.Clock),
		paymentGauges(in.Payments, in.Orders, in.Clock),
		exitGauges(in.Sessions, in.Clock),
	)
}

func jobGauges(q *queue.Queue, webhooks *webhooks.Service, tasks *maintenance.Tasks) []admin.Gauge {
	jobs := func(of func(queue.Status) float64) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			s, err := q.Status(ctx)
			return of(s), err
		}
	}
	return []admin.Gauge{
		{Name: "agentproxy_oldest_job_seconds", Help: "How long the oldest job that could run has waited.",
			Read: jobs(func(s queue.Status) float64 { return s.Waiting.Seconds() })},
		{Name: "agentproxy_parked_jobs", Help: "Jobs that failed every attempt and wait for the operator.",
			Read: jobs(func(s queue.Status) float64 { return float64(s.Parked) })},
		{Name: "agentproxy_settle_lag_seconds", Help: "How long the session that is due longest has waited to be settled.",
			Read: func(ctx context.Context) (float64, error) {
				lag, err := tasks.SettleLag(ctx)
				return lag.Seconds(), err
			}},
		{Name: "agentproxy_outbox_age_seconds", Help: "How long the webhook delivery that is due longest has waited.",
			Read: func(ctx context.Context) (float64, error) {
				age, err := webhooks.Overdue(ctx)
				return age.Seconds(), err
			}},
	}
}

func orderGauges(desk *ordering.Desk, watch *reconcile.Watch, providers *reconcile.Service,
	clock ports.Clock) []admin.Gauge {
	owed := func(of func(procurement.Owed) float64) func(context.Context) (map[string]float64, error) {
		return func(ctx context.Context) (map[string]float64, error) {
			all, err := watch.Owed(ctx)
			values := map[string]float64{}
			for provider, w := range all {
				values[provider] = of(w)
			}
			return values, err
		}
	}
	compared := func(of func(ports.Reconciliation) float64) func(context.Context) (map[string]float64, error) {
		return func(ctx context.Context) (map[string]float64, error) {
			last, err := providers.Last(ctx)
			values := map[string]float64{}
			for provider, r := range last {
				values[provider] = of(r)
			}
			return values, err
		}
	}
	return []admin.Gauge{
		{Name: "agentproxy_upstream_orders_open", Help: "Orders at providers whose outcome is not known yet.",
			Read: func(ctx context.Context) (float64, error) {
				open, _, err := desk.Tally(ctx)
				return float64(open), err
			}},
		{Name: "agentproxy_upstream_orders_frozen", Help: "Orders at providers that the operator has to decide.",
			Read: func(ctx context.Context) (float64, error) {
				_, frozen, err := desk.Tally(ctx)
				return float64(frozen), err
			}},
		{Name: "agentproxy_upstream_orders_missing", Help: "Live orders that their provider did not show when it " +
			"was last read.",
			ByProvider: owed(func(w procurement.Owed) float64 { return float64(w.Missing) })},
		{Name: "agentproxy_upstream_orders_late", Help: "Orders that were not delivered for a day, or not settled for an " +
			"hour after the end.",
			ByProvider: owed(func(w procurement.Owed) float64 { return float64(w.Late) })},
		{Name: "agentproxy_upstream_provider_at_fault", Help: "1 while too many orders are missing for a session to be " +
			"ended for it.",
			ByProvider: owed(func(w procurement.Owed) float64 {
				if w.SellersFault() {
					return 1
				}
				return 0
			})},
		{Name: "agentproxy_upstream_orphans", Help: "What a provider has and no order is known for, when it was " +
			"last reconciled.",
			ByProvider: compared(func(r ports.Reconciliation) float64 { return float64(r.Orphans) })},
		{Name: "agentproxy_upstream_reconciled_age_seconds", Help: "Time since a provider was last reconciled.",
			ByProvider: compared(func(r ports.Reconciliation) float64 { return clock.Now().Sub(r.At).Seconds() })},
		{Name: "agentproxy_upstream_uncharged_bytes", Help: "Bytes of live sessions that a provider has counted and " +
			"agents are not charged for, when it was last compared.",
			ByProvider: func(ctx context.Context) (map[string]float64, error) {
				last, err := providers.Counted(ctx)
				values := map[string]float64{}
				for provider, c := range last {
					values[provider] = float64(c.Uncharged())
				}
				return values, err
			}},
	}
}

func paymentGauges(watcher *payments.Watcher, orders *payments.Orders, clock ports.Clock) []admin.Gauge {
	status := func(of func(payments.Status) float64) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			s, err := watcher.Status(ctx)
			return of(s), err
		}
	}
	return []admin.Gauge{
		{Name: "agentproxy_payments_lag_seconds", Help: "Time since the chain was last read completely.",
			Read: status(func(s payments.Status) float64 {
				if s.ReadAt.IsZero() {
					return 0
				}
				return clock.Now().Sub(s.ReadAt).Seconds()
			})},
		{Name: "agentproxy_payments_seen", Help: "Transfers that wait to become final.",
			Read: status(func(s payments.Status) float64 { return float64(s.Seen) })},
		{Name: "agentproxy_payments_drifting", Help: "Addresses whose balance on the chain differs from the recorded one.",
			Read: status(func(s payments.Status) float64 { return float64(s.Drifting) })},
		{Name: "agentproxy_payments_drift_usd", Help: "The sum of the absolute differences.",
			Read: status(func(s payments.Status) float64 { return float64(s.Drift) / 1e6 })},
		{Name: "agentproxy_payments_indexes_skipped", Help: "Payment addresses that this process left out because " +
			"they are used.",
			Read: func(ctx context.Context) (float64, error) {
				n, err := orders.Indexes.Skipped(ctx)
				return float64(n), err
			}},
		{Name: "agentproxy_payments_set_aside", Help: "Final transfers that could not be booked; each is tried again.",
			Read: status(func(s payments.Status) float64 { return float64(s.Aside) })},
		{Name: "agentproxy_payments_own_moves", Help: "Transfers between two payment addresses, ever; none was credited.",
			Read: status(func(s payments.Status) float64 { return float64(s.OwnMoves) })},
	}
}

func ledgerGauges(audit ports.Audit) []admin.Gauge {
	return []admin.Gauge{
		{Name: "agentproxy_ledger_drift", Help: "Rows that broke a rule of the ledger when it was last verified.",
			Read: proofGauge(audit, func(p ports.Proof) float64 { return float64(p.Faults) })},
		{Name: "agentproxy_ledger_proved_timestamp_seconds", Help: "When the last complete proof of the ledger that found " +
			"no fault ended; 0 before the first.",
			Read: proofGauge(audit, func(p ports.Proof) float64 { return unixSeconds(p.SucceededAt) })},
		{Name: "agentproxy_ledger_new_proved_timestamp_seconds", Help: "Until when the entries of the ledger were last " +
			"proved one by one; 0 before the first.",
			Read: proofGauge(audit, func(p ports.Proof) float64 { return unixSeconds(p.NewAt) })},
		{Name: "agentproxy_ledger_head", Help: "The first 12 hexadecimal digits of the last published head of the " +
			"ledger's proof, as a number; 0 before the first.",
			Read: proofGauge(audit, func(p ports.Proof) float64 { return headNumber(p.Head.Head) })},
		{Name: "agentproxy_ledger_head_entries", Help: "How many entries that head is of.",
			Read: proofGauge(audit, func(p ports.Proof) float64 { return float64(p.Head.Entries) })},
	}
}

// proofGauge returns a gauge of the proof. The result is in the database, so that every replica shows it, whichever
// proved.
func proofGauge(audit ports.Audit, of func(ports.Proof) float64) func(context.Context) (float64, error) {
	return func(ctx context.Context) (float64, error) {
		state, err := audit.Proof(ctx)
		return of(state), err
	}
}

// unixSeconds returns a time in seconds since 1970; 0 for none.
func unixSeconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}

// headNumber returns the first 48 bits of a head, which a gauge shows exactly; 0 for none.
func headNumber(head string) float64 {
	n, err := strconv.ParseUint(head[:min(len(head), 12)], 16, 64)
	if err != nil {
		return 0
	}
	return float64(n)
}

// newCatalog returns the catalog of all products and the providers of each.
func newCatalog(s configfile.Settings, embedded *embedded.Provider, providers Providers) (*catalogs.Catalog, error) {
	return catalogs.New(append([]ports.Provider{embedded}, providers...), s.Catalog.All(embedded.Products()), country.Name)
}

// counterIn holds the parameters of newCounter; the operator's commands have no
// registry.
type counterIn struct {
	fx.In

	Registry *prometheus.Registry `optional:"true"`
}

// newCounter counts the calls of providers if there is a registry.
func newCounter(in counterIn) (ports.CallCounter, error) {
	if in.Registry == nil {
		return nil, nil
	}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_provider_calls_total",
		Help: "Calls of providers by operation and result."}, []string{"provider", "operation", "result"})
	count := func(provider, operation string, result procurement.Class) {
		calls.WithLabelValues(provider, operation, cmp.Or(string(result), "ok")).Inc()
	}
	return count, in.Registry.Register(calls)
}

// countExcess counts what orders cost above the most that they were to cost, and counters that began anew.
func countExcess(driver *ordering.Driver, registry *prometheus.Registry) error {
	excess := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_provider_excess_usd_total",
		Help: "What providers charged for orders above the most that they were to cost."}, []string{"provider"})
	restarts := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "agentproxy_provider_counter_restarts_total",
		Help: "Counters of direct sessions that began anew at their provider."}, []string{"provider"})
	driver.CountExcess(func(provider string, x domain.Money) {
		excess.WithLabelValues(provider).Add(float64(x) / float64(domain.Dollar))
	}, func(provider string) { restarts.WithLabelValues(provider).Inc() })
	return errors.Join(registry.Register(excess), registry.Register(restarts))
}
