package sim_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/storage"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/fake"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

const (
	usdt    = domain.Dollar
	network = "tron-sim"
)

type billingEntry = billing.Entry

// world is one seed: everything that lives in it, and what it does wrong.
type world struct {
	seed       uint64
	rng        *rand.Rand // the script
	faults     *injector  // the faults
	concurrent bool       // watchers run side by side
	skewed     bool       // the clock of the service jumps
	multiDay   bool       // days may pass

	clock *fake.Clock
	skew  time.Duration
	chain *fake.Chain
	db    *storage.Store
	store *store
	ids   *fake.IDs
	keys  int // number of account keys so far

	recharges *payments.Orders
	watchers  [2]*payments.Watcher

	agents   []string
	orders   []recharge.Order      // that an agent was answered with
	wallets  []wallet              // addresses that an agent was answered with
	calls    int                   // Idempotency-Keys used
	hidden   []recharge.Key        // from histories
	orphaned map[recharge.Key]bool // whose block was replaced
	rescans  int
	cursor   recharge.ScanCursor

	mu       sync.Mutex
	log      []string
	failures []string
	counts   map[string]int
}

type wallet struct{ agent, address string }

// databaseFunc returns the configuration of a new database, which is dropped when the test ends.
type databaseFunc func(*testing.T) storage.Config

func newFile(t *testing.T) storage.Config {
	return storage.Config{Path: sqlitetest.InMemory(t), Readers: 2}
}

func newServer(t *testing.T) storage.Config {
	return storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 4}
}

// play runs one seed to its end.
func play(t *testing.T, seed uint64, database databaseFunc) *world {
	t.Helper()
	w, err := newWorld(seed, database(t))
	if err != nil {
		t.Errorf("seed %d: %v", seed, err)
		return &world{seed: seed}
	}
	defer w.db.Close()
	for range 2 * len(w.agents) / 3 * (1 + len(w.agents)/10) { // enough of many for reading by blocks
		w.create()
	}
	for range 30 + w.rng.IntN(50) {
		w.step()
		w.checkNow()
		if len(w.violations()) > 0 {
			return w
		}
	}
	w.finish()
	return w
}

func newWorld(seed uint64, config storage.Config) (w *world, err error) {
	w = &world{seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), clock: fake.NewClock(), ids: new(fake.IDs),
		chain: fake.NewChain(network, fake.Start), counts: map[string]int{}, orphaned: map[recharge.Key]bool{}}
	w.faults = &injector{w: w, rng: rand.New(rand.NewPCG(seed, 2))}
	w.concurrent, w.skewed, w.multiDay = w.rng.IntN(4) == 0, w.rng.IntN(3) == 0, w.rng.IntN(12) == 0
	w.faults.call = pick(w.rng, 0, 0.02, 0.1, 0.3)
	w.faults.unit = pick(w.rng, 0, 0.02, 0.1, 0.25)
	w.faults.move = pick(w.rng, 0, 0.02, 0.2)
	config.Now = w.clock.Now
	if w.db, err = storage.Open(context.Background(), config); err != nil {
		return nil, err
	}
	w.db.SetJobInserter(func(context.Context, storage.JobTx, []ports.Job, time.Time) error { return nil })
	w.store = &store{Store: w.db, w: w, matched: map[string][]recharge.Key{}}
	for n := range pick(w.rng, 1, 2, 3, 5, 14, 18) {
		if err := w.addAgent(n + 1); err != nil {
			return nil, err
		}
	}
	w.newKey()
	w.restart(0)
	w.restart(1)
	w.chain.OnCall(w.faults.onCall)
	w.faults.set(true)
	w.logf("%d agents, faults of calls %g, of units %g, of the chain's standing still %g, concurrent %t, skewed %t, multi-day %t",
		len(w.agents), w.faults.call, w.faults.unit, w.faults.move, w.concurrent, w.skewed, w.multiDay)
	return w, nil
}

func (w *world) addAgent(n int) error {
	id := fmt.Sprintf("agt_%d", n)
	w.agents = append(w.agents, id)
	return w.db.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		a := account.Agent{ID: id, BillingUserID: "usr_" + id, Name: "Agent " + id, Status: account.Active, WebhookURL: "https://example.com/hook",
			KeyHash: []byte("key of " + id), SecretHash: []byte("secret of " + id), TokenVersion: 1,
			CreatedAt: fake.Start, UpdatedAt: fake.Start}
		var err error
		if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
			return err
		}
		if err := tx.Agents().Insert(ctx, a); err != nil {
			return err
		}
		return tx.Ledger().Open(ctx, billing.Wallet{AgentID: id})
	})
}

// newKey gives the service another account key: agents get new addresses.
func (w *world) newKey() {
	w.keys++
	w.recharges = payments.NewOrders(payments.Config{}, w.store, w.clock, w.ids, w.chain, fake.NewKeys(fmt.Sprintf("key%d", w.keys)))
}

// restart replaces a watcher by one with empty caches.
func (w *world) restart(n int) {
	w.watchers[n] = payments.NewWatcher(w.store, w.clock, w.ids, w.chain, slog.New(slog.DiscardHandler))
}

// mine adds blocks to the chain and advances the clock of the service.
func (w *world) mine(blocks int) {
	w.chain.Mine(blocks)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock.Set(w.chain.Now().Add(w.skew))
}

func (w *world) logf(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf("%s  ", w.chain.Now().Sub(fake.Start))+fmt.Sprintf(format, args...))
}

// fail notes what must not be.
func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

func (w *world) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

func (w *world) violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failures
}

func (w *world) logText() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.log, "\n")
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// injector decides the faults. It may be used by many goroutines.
type injector struct {
	w          *world
	call, unit float64 // how many calls of the chain and units of work fail
	move       float64 // the share of calls during which the chain grows or forks

	mu     sync.Mutex
	rng    *rand.Rand
	on     bool
	outage bool // no call is answered
	cancel context.CancelFunc
}

var errChain = errors.New("the chain does not answer")

// set turns all faults on or off.
func (d *injector) set(on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.on, d.outage = on, false
}

func (d *injector) upTo(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

func (d *injector) storeFault() fault {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.on || d.rng.Float64() >= d.unit {
		return none
	}
	return pick(d.rng, notBegun, rolledBack, answerLost, answerLost, twice, statement, statement)
}

// onCall runs before every call of the chain and returns the error that it fails with.
func (d *injector) onCall(call string) error {
	switch call {
	case "incoming", "history":
		d.w.count("read by " + map[string]string{"incoming": "block", "history": "address"}[call])
	}
	d.mu.Lock()
	if !d.on {
		d.mu.Unlock()
		return nil
	}
	fails := d.outage || d.rng.Float64() < d.call
	cancelled := fails && !d.outage && d.rng.IntN(4) == 0
	moves, blocks, depth, remine := d.rng.Float64() < d.move, d.rng.IntN(4), d.rng.IntN(5), d.rng.IntN(2) == 0
	cancel := d.cancel
	d.mu.Unlock()
	switch {
	case cancelled && cancel != nil:
		d.w.count("call cancelled")
		cancel() // the chain notices
		return nil
	case fails:
		d.w.count("call failed")
		return errChain
	case moves:
		d.w.count("chain moved during a call")
		if depth > 0 {
			d.w.fork(depth*3, remine)
		}
		d.w.mine(blocks)
	}
	return nil
}

// injected reports whether the simulation caused an error.
func injected(err error) bool {
	return errors.Is(err, errStore) || errors.Is(err, errChain) || errors.Is(err, context.Canceled)
}
