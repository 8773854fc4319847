package procurement_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/ledger"
	"agentproxy/app/throttle"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
	"agentproxy/test/sqlitetest"
)

// world is one seed: one database, two replicas of the service and all sellers.
type world struct {
	tally
	t    *testing.T
	seed uint64
	rng  *rand.Rand // the script; used between batches only

	*sellers
	clock    *fake.Clock
	ids      *fake.IDs
	secrets  *system.Secrets
	db       *storage.Store
	path     string
	log      *record
	replicas [2]*replica
	finished bool

	agents   []string
	keys     int
	vanished map[string]bool // "provider ref"
	operated map[string]bool // orders that the operator decided

	mu       sync.Mutex
	answered map[string]map[string]bool // by key: the sessions that callers were answered with
}

// replica is one process of the service.
type replica struct {
	apptest.UseCases
	store   *store
	catalog *catalogs.Catalog
}

// record is the log of the service and the errors of its callers.
type record struct {
	mu sync.Mutex
	bytes.Buffer
}

func (r *record) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Buffer.Write(b)
}

func open(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{tally: tally{counts: map[string]int{}}, t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), clock: fake.NewClock(),
		ids: new(fake.IDs), log: new(record), vanished: map[string]bool{}, operated: map[string]bool{}, answered: map[string]map[string]bool{}}
	w.sellers = openSellers(t, seed)
	w.path = sqlitetest.InMemory(t)
	w.db = apptest.OpenStore(t, storage.Config{Path: w.path, Readers: 4, Now: w.clock.Now})
	t.Cleanup(func() { _ = w.db.Close() })
	var err error
	w.secrets, err = system.NewSecrets(system.Root("0123456789abcdefghijklmnopqrstuvwxyz"))
	apptest.OK(t, err)
	w.start(0)
	w.start(1)
	w.register(4)
	w.injectFaults(seed, *chance)
	return w
}

// start begins a process: new adapters, with closed breakers, and new use cases.
func (w *world) start(n int) {
	w.t.Helper()
	log := slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var providers []ports.Provider
	for _, spec := range w.specs() {
		log.Info("a provider is configured", "spec", spec)
		p, err := upstream.New(spec, log)
		apptest.OK(w.t, err)
		providers = append(providers, p)
	}
	r := &replica{store: &store{Store: w.db, count: w.count, rng: rand.New(rand.NewPCG(w.seed, w.rng.Uint64())), odds: usual, lives: -1}}
	if w.finished {
		r.store.stopFaults()
	}
	var err error
	r.catalog, err = catalogs.New(providers, products(), country.Name)
	apptest.OK(w.t, err)
	hub := changes.New(r.store, w.clock)
	counted := func(_, operation string, class procurement.Class) {
		w.count("calls", 1)
		if class != "" {
			w.count("calls that failed", 1)
		}
		if operation == "order" && class == procurement.Ambiguous {
			w.count("order unknown", 1)
		}
	}
	limits := throttle.New(throttle.Config{RegistrationsPerMinute: 3}, w.clock, nil, log)
	r.UseCases = apptest.NewUseCases(apptest.Dependencies{Store: r.store, Clock: w.clock, IDs: w.ids, Secrets: w.secrets,
		Catalog: r.catalog, Hub: hub, Limits: limits, Calls: counted, Log: log})
	w.replicas[n] = r
}

// register opens accounts with plenty of money.
func (w *world) register(n int) {
	w.t.Helper()
	hub := changes.New(w.db, w.clock)
	opened := accounts.New(accounts.Config{TrialBalance: 10 * domain.Dollar, TrialDays: 14}, ports.Base{Store: w.db, Clock: w.clock, IDs: w.ids, Secrets: w.secrets},
		system.NewTokens(w.secrets, w.ids), nil, hub)
	wallet := ledger.NewWallet(w.db, w.clock, w.ids)
	for range n {
		r, err := opened.Register(w.t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"}})
		apptest.OK(w.t, err)
		_, err = wallet.Adjust(w.t.Context(), r.Agent.ID, 9_000*domain.Dollar, "for the campaign")
		apptest.OK(w.t, err)
		for range 20 {
			_, err = wallet.Adjust(w.t.Context(), r.Agent.ID, 9_000*domain.Dollar, "for the campaign")
			apptest.OK(w.t, err)
		}
		w.agents = append(w.agents, r.Agent.ID)
	}
}

// recordError records the error of a caller.
func (w *world) recordError(err error) {
	if err != nil {
		_, _ = w.log.Write([]byte(err.Error() + "\n"))
	}
}

// rows returns the result of a query as texts.
func (w *world) rows(query string, args ...any) (all [][]string) {
	w.t.Helper()
	rows, err := w.db.Writer().Query(query, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	apptest.OK(w.t, err)
	for rows.Next() {
		line, into := make([]string, len(columns)), make([]any, len(columns))
		for i := range line {
			into[i] = &line[i]
		}
		apptest.OK(w.t, rows.Scan(into...))
		all = append(all, line)
	}
	apptest.OK(w.t, rows.Err())
	return all
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func atoi(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}
