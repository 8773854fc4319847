package app_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream/country"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/accounts"
	catalogapp "agentproxy/app/catalog"
	"agentproxy/app/changes"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/maintenance"
	procurementapp "agentproxy/app/procurement"
	"agentproxy/app/ratelimit"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/traffic"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake"
	"agentproxy/test/pg"
)

// setup represents how a world differs from the usual one.
type setup struct {
	limit     int // live sessions an agent
	trial     domain.Money
	exits     int // of the embedded provider, half of them static
	path      string
	unruly    bool // every unit runs once for nothing before it counts
	perMinute int
	system    bool // the real clock, ids and disk
	reprice   []catalog.Product
	more      []ports.Provider  // further sellers
	sell      []catalog.Product // further products
	stingy    bool              // the seller delivers nothing and reports success
}

// world is the whole core on a store in a file, with a seller on the other side
// of a network ("remote") and the embedded one.
type world struct {
	t        testing.TB
	path     string
	db       *storage.Store
	store    *unruly
	clock    *fake.Clock
	ids      ports.IDs
	seller   *fake.Provider
	embedded *embedded.Provider
	secrets  *system.Secrets
	*changes.Hub
	accounts  *accounts.Service
	referrers *accounts.Referrers
	catalog   *catalogapp.Catalog
	life      *sessions.Transitions
	access    *fulfilment.Service
	driver    *procurementapp.Driver
	desk      *procurementapp.Desk
	callbacks *procurementapp.Callbacks
	sessions  *sessions.Service
	traffic   *traffic.Service
	observer  *telemetry.Observer
	telemetry *telemetry.Service
	wallet    *ledger.Wallet
	stats     *ledger.Stats
	limits    *ratelimit.Limits
	passes    *maintenance.Tasks
	webhooks  *webhooks.Service
	receiver  *receiver
}

// template is a migrated database that every test copies.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "template")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "t.db")
	st, err := storage.Open(context.Background(), storage.Config{Path: path})
	if err != nil {
		return nil, err
	}
	err = st.Migrate(context.Background())
	if err == nil {
		// Jobs are rows of the unit that inserts them, as in River.
		_, err = st.Writer().Exec(`CREATE TABLE test_jobs (n INTEGER PRIMARY KEY, kind TEXT, session TEXT, due INTEGER)`)
	}
	if err = errors.Join(err, st.Close()); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// database is a new one with a table of jobs: a SQLite file, or PostgreSQL where
// TEST_STORE is postgres.
func database(t testing.TB, disk bool) (path string) {
	if os.Getenv("TEST_STORE") == "postgres" {
		path = pg.Database(t)
		conn, err := pgx.Connect(context.Background(), path)
		ok(t, err)
		defer conn.Close(context.Background())
		_, err = conn.Exec(context.Background(), `CREATE TABLE test_jobs (n BIGSERIAL PRIMARY KEY, kind TEXT, session TEXT, due BIGINT)`)
		ok(t, err)
		return path
	}
	path = filepath.Join(tempDir(t, disk), "app.db")
	text, err := template()
	ok(t, err)
	ok(t, os.WriteFile(path, text, 0o600))
	return path
}

// postgres reports whether the store is one of PostgreSQL.
func (w *world) postgres() bool { return strings.HasPrefix(w.path, "postgres") }

// sql is a statement with its parameters, ? each, as the database numbers them.
func (w *world) sql(statement string) string {
	for n := 1; w.postgres() && strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}

// newWorld opens the usual world; the books are audited when the test ends.
func newWorld(t testing.TB) *world { return open(t, setup{}) }

func open(t testing.TB, s setup) *world {
	t.Helper()
	w, done := build(t, s)
	t.Cleanup(done)
	return w
}

// build is open for tests that end a world themselves.
func build(t testing.TB, s setup) (*world, func()) {
	t.Helper()
	if s.path == "" {
		s.path = database(t, s.system)
	}
	w := &world{t: t, path: s.path, clock: fake.NewClock(), seller: fake.NewProvider("remote", products()...)}
	w.seller.SetClock(w.clock.Now)
	config := storage.Config{Path: s.path, Readers: 3, Now: w.clock.Now}
	if w.postgres() {
		config = storage.Config{URL: storage.URL(s.path), MaxConns: 6, Now: w.clock.Now}
	}
	db, err := storage.Open(context.Background(), config)
	ok(t, err)
	db.SetJobInserter(func(ctx context.Context, tx storage.JobTx, j ports.Job, now time.Time) error {
		_, err := tx.Conn.ExecContext(ctx, `INSERT INTO test_jobs (kind, session, due) VALUES ($1, $2, $3)`, j.Kind,
			j.SessionID+j.AgentID+j.DeliveryID, cmp.Or(j.At, now.Add(j.After)).UnixMicro())
		return err
	})
	w.db, w.store = db, &unruly{Store: db, twice: s.unruly}
	w.secrets, err = system.NewSecrets(system.Root("0123456789abcdefghijklmnopqrstuvwxyz"))
	ok(t, err)
	w.embedded, err = embedded.New(embedded.Config{Exits: exits(max(s.exits, 2)),
		Usable: func(netip.Addr) bool { return true }}, slog.New(slog.DiscardHandler))
	ok(t, err)
	if s.exits == 0 {
		w.embedded, err = embedded.New(embedded.Config{Exits: exits(400),
			Usable: func(netip.Addr) bool { return true }}, slog.New(slog.DiscardHandler))
		ok(t, err)
	}
	var clock ports.Clock = w.clock
	var ids ports.IDs = new(fake.IDs)
	if s.system {
		clock, ids = system.Clock{}, new(system.IDs)
	}
	w.wire(s, clock, ids)
	return w, func() {
		w.audit()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// tempDir is in memory where the system has such a place: what is tested here is
// not the disk. A benchmark wants the disk.
func tempDir(t testing.TB, disk bool) string {
	if disk {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "agentproxy")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (w *world) wire(s setup, clock ports.Clock, ids ports.IDs) {
	w.ids = ids
	if s.trial == 0 {
		s.trial = 10 * domain.Dollar
	}
	var err error
	var seller ports.Provider = w.seller
	if s.stingy {
		seller = stingy{w.seller}
	}
	sold := w.seller.Products()
	if s.reprice != nil {
		sold = s.reprice
		for i := range sold {
			sold[i].Sources = []procurement.Source{{Provider: w.seller.Name()}}
		}
	}
	w.catalog, err = catalogapp.New(append([]ports.Provider{w.embedded, seller}, s.more...),
		slices.Concat(w.embedded.Products(), sold, s.sell), country.Name)
	ok(w.t, err)
	w.Hub = changes.New(w.store, clock)
	w.limits = ratelimit.New(ratelimit.Config{RegistrationsPerMinute: 3}, clock, nil, slog.New(slog.DiscardHandler))
	w.observer = telemetry.NewObserver(w.store, clock, ids)
	w.connect(s.limit, clock, nil, slog.New(slog.DiscardHandler))
	w.accounts = accounts.New(accounts.Config{TrialBalance: max(s.trial, 0), TrialDays: 14, PerMinute: s.perMinute},
		w.store, clock, ids, w.secrets, system.NewTokens(w.secrets, ids), w.life, w.Hub)
	w.referrers = accounts.NewReferrers(w.store, clock, ids)
	w.telemetry = telemetry.New(w.store, clock, ids, w.observer)
	w.wallet = ledger.NewWallet(w.store, clock, ids)
	w.stats = ledger.NewStats(w.store, clock)
	w.receiver = &receiver{clock: w.clock}
	w.webhooks = webhooks.New(w.store, clock, ids, w.secrets, w.receiver, w.Hub, slog.New(slog.DiscardHandler))
}

// connect makes the use cases that depend on the catalogue.
func (w *world) connect(limit int, clock ports.Clock, calls procurementapp.Counter, log *slog.Logger) {
	w.access = fulfilment.New(w.store, w.secrets, w.catalog, log)
	w.life = sessions.NewTransitions(w.ids, w.catalog, w.access)
	w.driver = procurementapp.NewDriver(w.store, clock, w.ids, w.catalog, w.Hub, w.life, w.access, calls, log)
	w.desk = procurementapp.NewDesk(w.store, w.driver)
	w.callbacks = procurementapp.NewCallbacks(w.store, clock, w.catalog, w.driver)
	w.sessions = sessions.New(sessions.Config{Limit: limit}, w.store, clock, w.ids, w.secrets, w.catalog, w.life, w.driver,
		w.access, w.Hub, log)
	w.traffic = traffic.New(w.store, clock, w.ids, w.sessions, w.life, w.access, w.Hub)
	w.passes = maintenance.New(w.store, clock, w.ids, w.life, w.traffic, w.Hub, w.limits)
}

// reconnect is connect with another catalogue.
func (w *world) reconnect(c *catalogapp.Catalog) {
	w.catalog = c
	w.connect(0, w.clock, nil, slog.New(slog.DiscardHandler))
}

// products are those of the seller: the usual ones, and one that is sold out.
func products() []catalog.Product {
	gone := fake.Products()[0]
	gone.No, gone.Available = "gone", false
	return append(fake.Products(), gone)
}

// exits are the first n addresses of 10.0.0.0/16.
func exits(n int) []netip.Addr {
	list := make([]netip.Addr, n)
	for i := range list {
		list[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	return list
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused demands an error that equals a sentinel.
func refused(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// same demands that two values are equal.
func same[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func dollars(text string) domain.Money { return domain.MustMoney(text) }
