package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/feed"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/metering"
	"agentproxy/app/ordering"
	"agentproxy/app/payments"
	"agentproxy/app/policies"
	"agentproxy/app/replacements"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
	"agentproxy/app/webhooks"
	"agentproxy/app/workers"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
	"agentproxy/test/fake"
	"agentproxy/test/pg"
	"agentproxy/test/sqlitetest"
)

// options are what a test may choose about its world.
type options struct {
	perMinute     int
	registrations int
	sessionLimit  int
	trusted       []netip.Prefix
	trial         domain.Money
	realTime      bool
	config        func(*accounts.Config)
	tls           bool             // the gateway takes TLS
	onlyTLS       bool             // it takes nothing else
	limits        throttle.Config  // registrations is set in it
	more          []ports.Provider // further sellers
	tools         httpapi.Tools
	sell          []catalog.Product // further products
	database      storage.URL       // the zero value is a new one
	tagged        bool              // keys are as the service makes them, not the same on every run
	stored        throttle.StoredConfig
	file          string // of a SQLite database whose space is watched
	capacity      int64  // in bytes, of a PostgreSQL database whose space is watched
}

// world is a whole service without listeners: the API over the real use cases
// on SQLite, with a clock and ids to set, and a seller to script.
type world struct {
	t        testing.TB
	clock    *fake.Clock
	ids      *fake.IDs
	provider *fake.Provider
	prober   *prober
	facts    *exitfacts.Facts
	store    *storage.Store
	stored   *throttle.Stored
	counting ports.Store // what it stores is counted
	sessions *sessions.Service
	reveals  *reveals.Service
	driver   *ordering.Driver
	observer *telemetry.Observer
	accounts *accounts.Service
	traffic  *metering.Service
	payments *payments.Watcher
	webhooks *webhooks.Service
	feed     *feed.Service
	sender   *sender
	chain    *fake.Chain
	hub      *changes.Hub
	server   *httpapi.Server
	log      *logs
	doc      *document

	mu   sync.Mutex
	jobs []ports.Job
}

// database returns a new database: PostgreSQL if TEST_STORE is postgres, else SQLite.
func database(t testing.TB, now func() time.Time) storage.Config {
	if os.Getenv("TEST_STORE") == "postgres" {
		return storage.Config{URL: storage.URL(pg.Database(t)), MaxConns: 6, Now: now}
	}
	return storage.Config{Path: sqlitetest.File(t), Now: now}
}

func newWorld(t testing.TB, o options) *world {
	t.Helper()
	w := &world{
		t:        t,
		clock:    fake.NewClock(),
		ids:      &fake.IDs{},
		provider: fake.NewProvider("fake"),
		prober:   &prober{},
		log:      &logs{},
		chain:    fake.NewChain("tron-test", fake.Start),
	}
	w.provider.SetInProcess(true)
	var err error
	config := storage.Config{URL: o.database, MaxConns: 6, Now: w.clock.Now, Capacity: o.capacity}
	if o.database == "" {
		config = database(t, w.clock.Now)
	}
	if o.file != "" {
		config = storage.Config{Path: o.file, Now: w.clock.Now}
	}
	w.store, err = storage.Open(context.Background(), config)
	w.must(err)
	t.Cleanup(func() { _ = w.store.Close() })
	w.store.SetJobInserter(func(_ context.Context, _ storage.JobTx, jobs []ports.Job, _ time.Time) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.jobs = append(w.jobs, jobs...)
		return nil
	})
	root, err := system.ParseRoot("0123456789abcdefghijklmnopqrstuvwxyzABCDEF")
	w.must(err)
	real, err := system.NewSecrets(root)
	w.must(err)
	var clock ports.Clock = w.clock
	if o.realTime {
		clock = system.Clock{}
	}
	secrets := &countedSecrets{Secrets: real, ids: w.ids, tagged: o.tagged}
	if o.trial == 0 {
		o.trial = domain.MustMoney("10")
	}
	if o.sessionLimit == 0 {
		o.sessionLimit = 200
	}
	w.hub = changes.New(w.store, clock)
	cat, err := catalogs.New(
		append([]ports.Provider{w.provider}, o.more...),
		append(w.provider.Products(), o.sell...),
		func(code string) string {
			return map[string]string{"DE": "Germany", "FR": "France", "US": "United States"}[code]
		},
	)
	w.must(err)
	log := slog.New(slog.NewJSONHandler(w.log, nil))
	base := ports.Base{Store: w.store, Clock: clock, IDs: w.ids, Secrets: secrets, Log: log}
	access := fulfilment.New(w.store, secrets, cat, log)
	transitions := sessions.NewTransitions(w.ids, cat, access)
	w.driver = ordering.NewDriver(base, cat, w.hub, transitions, access, 0, nil)
	rules := accounts.Config{TrialBalance: o.trial, TrialDays: 14, Dev: true, PerMinute: o.perMinute}
	if o.config != nil {
		o.config(&rules)
	}
	o.limits.RegistrationsPerMinute = o.registrations
	w.accounts = accounts.New(rules, base, system.NewTokens(real, w.ids), transitions, w.hub)
	limits := throttle.New(o.limits, clock, nil, log)
	if o.file != "" || o.capacity > 0 {
		o.stored.Scarce = w.store.Scarce
		w.must(w.store.Migrate(context.Background()))
	}
	limits.Stored = throttle.NewStored(o.stored, w.store, clock, limits, log)
	counting := limits.Stored.Count(w.store)
	w.stored, w.counting, base.Store = limits.Stored, counting, counting
	w.facts = exitfacts.New(nil)
	w.sessions = sessions.New(sessions.Config{Limit: o.sessionLimit, Measures: w.facts.Any}, base, cat, transitions,
		w.driver, access, w.hub)
	w.reveals = reveals.New(w.store, clock, w.ids, secrets, w.sessions, w.accounts)
	w.payments = payments.NewWatcher(w.store, clock, w.ids, w.chain, log)
	w.sender = &sender{status: 204}
	w.feed = feed.New(counting, clock, secrets, 20)
	w.hub.Watch(w.feed)
	w.hub.WatchFeeds(w.feed)
	w.webhooks = webhooks.New(w.store, clock, w.ids, secrets, w.sender, w.hub, log)
	w.traffic = metering.New(ports.Base{Store: w.store, Clock: clock, IDs: w.ids, Log: slog.New(slog.DiscardHandler)}, w.sessions, transitions, access, w.hub)
	w.observer = telemetry.NewObserver(w.store, clock, w.ids)
	w.server = httpapi.New(
		httpapi.Config{
			Addr:           "127.0.0.1:0",
			GatewayHost:    "proxy.test",
			GatewayPort:    8081,
			GatewayTLS:     o.tls,
			GatewayOnlyTLS: o.onlyTLS,
			TrustedProxies: o.trusted,
			Version:        "1.2.3",
			Shop:           "Proxies of Anna",
			AbuseContact:   "mailto:abuse@example.com",
			ToolTable:      toolTable(),
			GatewayErrors:  gatewayErrors(),
		},
		httpapi.Deps{
			Accounts:     w.accounts,
			Catalog:      cat,
			Sessions:     w.sessions,
			Policies:     policies.New(counting, w.hub),
			Workers:      workers.New(counting, clock, w.ids, cat, access, w.hub, log),
			Callbacks:    ordering.NewCallbacks(w.store, clock, cat, w.driver),
			Checks:       sessions.NewChecks(w.sessions, w.prober, w.facts, clock),
			Telemetry:    telemetry.New(counting, clock, w.ids, w.observer),
			Wallet:       ledger.NewWallet(w.store, clock, w.ids),
			Recharges:    payments.NewOrders(payments.Config{}, w.store, clock, w.ids, w.chain, fake.NewKeys("test")),
			Webhooks:     w.webhooks,
			Feed:         w.feed,
			Stats:        ledger.NewStats(w.store, clock),
			Reveals:      w.reveals,
			Replacements: replacements.New(base, cat, w.sessions, transitions, w.driver, access, w.hub),
			Tools:        o.tools,
			Console:      noPages,
			Limits:       limits,
			Book:         w.traffic.Book,
			Store:        w.store,
			Clock:        clock,
			IDs:          w.ids,
			Log:          log,
		},
	)
	if _, bench := t.(*testing.B); !bench {
		w.doc = newDocument(t, w.server)
	}
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// work does the jobs that were inserted so far.
func (w *world) work() {
	w.t.Helper()
	w.mu.Lock()
	jobs := w.jobs
	w.jobs = nil
	w.mu.Unlock()
	for _, j := range jobs {
		switch j.Kind {
		case ports.DriveOrdersJob:
			w.must(w.driver.DriveSession(context.Background(), j.SessionID))
		case ports.DeliverJob:
			w.must(w.webhooks.Deliver(context.Background(), j.DeliveryID, j.At))
		}
	}
}

// mine adds blocks to the chain, moves the clock to the newest, and lets the
// watcher look.
func (w *world) mine(blocks int) {
	w.t.Helper()
	w.chain.Mine(blocks)
	if now := w.chain.Now(); now.After(w.clock.Now()) {
		w.clock.Set(now)
	}
	w.must(w.payments.Watch(context.Background()))
}

// countedSecrets makes keys that are the same on every run.
type countedSecrets struct {
	ports.Secrets
	ids    *fake.IDs
	tagged bool
}

func (s *countedSecrets) NewKey() string {
	if s.tagged {
		return s.Secrets.NewKey()
	}
	random := strings.TrimPrefix(s.ids.New("ak_"), "ak_")
	return account.EarlyAPIKey(random + strings.Repeat("z", account.KeyRandom-len(random)))
}
func (s *countedSecrets) NewSecret() string { return s.ids.New("sk_") + "zzzzzzzzzzzzzzzzzzzzzzzz" }

// prober answers checks as a test sets it.
type prober struct{ err error }

func (p *prober) Probe(context.Context, exit.Ref) (ports.Probe, error) {
	return ports.Probe{ExitIP: "203.0.113.1", Latency: 42 * time.Millisecond}, p.err
}

// sender answers every webhook alike.
type sender struct{ status int }

func (*sender) Body(webhook.Event) []byte { return nil }

func (s *sender) Send(_ context.Context, m ports.Message) (webhook.Outcome, error) {
	return webhook.Outcome{URL: m.URL, StatusCode: s.status}, nil
}

// logs keeps what was logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}

// agent is a registered account.
type agent struct{ ID, Key, Secret string }

func (w *world) register(name string) agent {
	w.t.Helper()
	r := w.do("POST", "/v1/account/register", fmt.Sprintf(`{"name":%q}`, name))
	r.want(http.StatusCreated)
	return agent{r.str("data.agent_id"), r.str("data.api_key"), r.str("data.api_secret")}
}

// as is a request with the agent's key.
func (a agent) as(r *http.Request) { r.Header.Set("X-API-Key", a.Key) }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func bearer(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

// token issues a token with the given scopes.
func (w *world) token(a agent, scopes ...account.Scope) string {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"api_key": a.Key, "api_secret": a.Secret, "permissions": scopes})
	r := w.do("POST", "/v1/auth/token", string(body))
	r.want(http.StatusOK)
	return r.str("data.access_token")
}

// do sends a request and holds the answer against the document.
func (w *world) do(method, path, body string, with ...func(*http.Request)) *answer {
	w.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, "/", in)
	r.Host = "localhost"
	u, err := url.ParseRequestURI(path)
	w.must(err)
	r.URL = u
	r.RequestURI = path
	r.RemoteAddr = "192.0.2.1:4711"
	for _, f := range with {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, r)
	a := &answer{t: w.t, method: method, path: path, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
	if err := json.Unmarshal(a.body, &a.json); err != nil && rec.Header().Get("Content-Type") == "application/json" {
		w.t.Fatalf("%s %s: the answer is not JSON: %v: %s", method, path, err, a.body)
	}
	if w.doc != nil {
		w.doc.check(w.t, r, a)
	}
	return a
}

// answer is what came back.
type answer struct {
	t            testing.TB
	method, path string
	status       int
	header       http.Header
	body         []byte
	json         map[string]any
}

func (a *answer) want(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("%s %s: status %d, want %d: %s", a.method, a.path, a.status, status, a.body)
	}
	return a
}

// refused checks for a status and an error code.
func (a *answer) refused(status int, code string) *answer {
	a.t.Helper()
	if a.status != status || a.str("error.code") != code {
		a.t.Fatalf("%s %s: %d %s, want %d %s: %s", a.method, a.path, a.status, a.str("error.code"), status, code, a.body)
	}
	return a
}

// at is the value at a path such as data.items.0.name; nil when there is none.
func (a *answer) at(path string) any {
	var v any = a.json
	for key := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[key]
		case []any:
			var i int
			if _, err := fmt.Sscan(key, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

func (a *answer) str(path string) string { s, _ := a.at(path).(string); return s }

func (a *answer) num(path string) float64 { n, _ := a.at(path).(float64); return n }
