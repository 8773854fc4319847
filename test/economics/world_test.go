package economics_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"agentproxy/app/reconcile"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// world is one history: one database, two replicas of the service and the shops.
type world struct {
	*apptest.World
	*census
	t        *testing.T
	rng      *rand.Rand
	shops    []*shop
	replicas [2]*replica
	agents   []string
	keys     int
	depth    int // of calls in which something happens
	orphans  map[string]bool
	excess   domain.Money
	log      *slog.Logger
}

// replica is one process of the service.
type replica struct {
	apptest.UseCases
	store     *apptest.FaultyStore
	reconcile *reconcile.Service
}

// skewed is a clock that is wrong by a time.
type skewed struct {
	ports.Clock
	by time.Duration
}

func (c skewed) Now() time.Time { return c.Clock.Now().Add(c.by) }

// The shops: one that takes everything back and keeps keys, one that executes each key once,
// one without keys that takes nothing back, and one that sells accesses to traffic.
const (
	kind, repeating, stubborn, tap = "kind", "repeating", "stubborn", "tap"
)

// The products. Agents pay a dollar for an IP for 30 days and half a dollar for a GB.
const (
	oneShop, twoShops, belowCost, direct, metered = "sta_one", "sta_two", "sta_loss", "dyn_direct", "dyn_metered"
)

func products() []catalog.Product {
	static := apptest.SharedProduct(oneShop, session.Static, procurement.Source{Provider: stubborn, SKU: "isp"})
	two := apptest.SharedProduct(twoShops, session.Static,
		procurement.Source{Provider: stubborn, SKU: "isp", Costs: []procurement.Term{{Days: 30, Cost: ipCost}, {Days: 90, Cost: 3 * ipCost}}},
		procurement.Source{Provider: repeating, SKU: "isp", Preference: 1}, procurement.Source{Provider: kind, SKU: "isp", Preference: 2})
	loss := apptest.SharedProduct(belowCost, session.Static, procurement.Source{Provider: kind, SKU: "isp", BelowCost: true})
	access := apptest.SharedProduct(direct, session.Dynamic, procurement.Source{Provider: tap, SKU: "direct"})
	access.Direct, access.MinBytes, access.StepBytes = true, billing.GB, billing.GB
	gateway := apptest.SharedProduct(metered, session.Dynamic, procurement.Source{Provider: tap, SKU: "gb"},
		procurement.Source{Provider: kind, SKU: "gb", Preference: 1})
	return []catalog.Product{static, two, loss, access, gateway}
}

// open opens a history. What differs between histories is what the shops can, how wrong
// the clock of the second replica is, and everything that happens.
func open(t *testing.T, seed uint64, all *census) *world {
	w := &world{census: all, t: t, rng: rand.New(rand.NewPCG(seed, 7)), orphans: map[string]bool{}, log: slog.New(slog.DiscardHandler)}
	if *story {
		w.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	exits := 0
	add := func(name string, caps procurement.Capabilities) *shop {
		caps.ViaUpstream, caps.Renews = true, true
		s := &shop{name: name, caps: caps, quotes: w.rng.IntN(4) > 0, reports: w.rng.IntN(2) == 0, dearer: w.rng.IntN(4) == 0, price: 100,
			rng: rand.New(rand.NewPCG(seed, uint64(len(w.shops)))), during: w.during, count: all.add, exits: &exits}
		w.shops = append(w.shops, s)
		return s
	}
	add(kind, procurement.Capabilities{KeepsOrderKey: true, Cancels: true})
	add(repeating, procurement.Capabilities{Idempotent: true, KeepsOrderKey: true})
	add(stubborn, procurement.Capabilities{Async: true})
	add(tap, procurement.Capabilities{KeepsTrafficOrderKey: true, CancelsTraffic: true, Direct: true, CapUnit: billing.GB, CounterLag: counterLag})
	var providers []ports.Provider
	for _, s := range w.shops {
		providers = append(providers, s)
	}
	w.World = apptest.Open(t, apptest.Options{Providers: providers, Products: products()})
	for _, s := range w.shops {
		s.clock = w.Clock
	}
	skews := []time.Duration{0, 2 * time.Second, -2 * time.Second, 15 * time.Second, -15 * time.Second}
	w.start(0, 0)
	w.start(1, skews[w.rng.IntN(len(skews))])
	for range 2 {
		w.agents = append(w.agents, w.RegisterFunded(9_000))
	}
	return w
}

// start begins a process whose clock is wrong by a time.
func (w *world) start(n int, skew time.Duration) {
	r := &replica{store: &apptest.FaultyStore{Store: w.DB}}
	clock := skewed{w.Clock, skew}
	r.UseCases = apptest.NewUseCases(apptest.Dependencies{Store: r.store, Clock: clock, IDs: w.IDs, Secrets: w.Secrets,
		Catalog: w.Catalog, Hub: w.Hub, Limits: w.Limits, Log: w.log})
	r.Driver.CountExcess(func(_ string, x domain.Money) { w.excess += x }, nil)
	r.reconcile = reconcile.New(r.store, clock, w.Catalog, r.Desk, nil, w.log)
	w.replicas[n] = r
}

// replica returns one of the two.
func (w *world) replica() *replica { return w.replicas[w.rng.IntN(2)] }

// shop returns the shop of a name.
func (w *world) shop(name string) *shop {
	return w.shops[slices.IndexFunc(w.shops, func(s *shop) bool { return s.name == name })]
}

// drive takes the steps that are due by the clock of a replica, one session after the
// other, so that a seed is always the same history.
func (w *world) drive(r *replica) {
	ctx := context.Background()
	for _, id := range w.Column(fmt.Sprintf(`SELECT session FROM test_jobs WHERE kind = 'drive-orders' AND due <= %d ORDER BY n`, w.Clock.Now().UnixMicro())) {
		if _, err := r.Driver.Drive(ctx, id); err == nil {
			w.Exec(`DELETE FROM test_jobs WHERE n = (SELECT MIN(n) FROM test_jobs WHERE session = ? AND kind = 'drive-orders')`, id)
		}
	}
	driven := map[string]bool{}
	for _, id := range w.Column(fmt.Sprintf(`SELECT session_id FROM upstream_orders WHERE next_at > 0 AND next_at <= %d ORDER BY next_at, seq`, w.Clock.Now().UnixMicro())) {
		if driven[id] {
			continue
		}
		driven[id] = true
		if _, err := r.Driver.Drive(ctx, id); err != nil {
			w.log.Info("drive", "err", err)
		}
	}
	for _, task := range []func(context.Context) error{r.Tasks.ExpireSessions, r.Tasks.Settle, r.Tasks.Reclaim} {
		if err := task(ctx); err != nil {
			w.log.Info("task", "err", err)
		}
	}
}

// reconciled compares all shops, and takes note of the orders that are reported.
func (w *world) reconciled(r *replica) {
	reports, err := r.reconcile.Run(context.Background(), "")
	if err != nil {
		return
	}
	for _, report := range reports {
		for _, f := range report.Findings {
			if f.Disposition == procurement.Orphan || f.Disposition == procurement.Surplus {
				w.orphans[f.Ref] = true
			}
		}
	}
}
