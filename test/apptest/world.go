package apptest

import (
	"cmp"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/changes"
	"agentproxy/app/feed"
	"agentproxy/app/ledger"
	"agentproxy/app/ordering"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
	"agentproxy/app/webhooks"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/catalog"
	"agentproxy/domain/country"
	"agentproxy/domain/procurement"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// Options are the differences of a world from the default one.
type Options struct {
	SessionLimit    int          // live sessions an agent; 0: no limit
	TrialBalance    domain.Money // 0: 10 dollars, negative: none
	FundedFrom      account.Funding
	Exits           int                    // of the embedded provider, half of them static; 0: 400
	Database        string                 // the path or URL of an existing database; empty: a new one
	RepeatUpdates   bool                   // every update runs once and is rolled back, then runs again
	PerMinute       int                    // requests an agent; 0: the default
	System          bool                   // the real clock, ids and disk
	SellerProducts  []catalog.Product      // in place of the products of the seller
	Providers       []ports.Provider       // of further sellers
	Products        []catalog.Product      // further products
	Accounts        func(*accounts.Config) // changes the configuration of the accounts; may be nil
	EmptyDeliveries bool                   // the seller delivers nothing and reports success
}

// World holds all use cases on one database, with a fake seller ("remote") and the embedded
// provider.
type World struct {
	T        testing.TB
	Database string
	DB       *storage.Store
	Store    *FaultyStore
	Clock    *fake.Clock
	IDs      ports.IDs
	Seller   *fake.Provider
	Embedded *embedded.Provider
	Secrets  *system.Secrets
	*changes.Hub
	UseCases
	Accounts  *accounts.Service
	Referrers *accounts.Referrers
	Other     *ordering.Driver // of another process
	Catalog   *catalogs.Catalog
	Observer  *telemetry.Observer
	Telemetry *telemetry.Service
	Wallet    *ledger.Wallet
	Stats     *ledger.Stats
	Limits    *throttle.Limits
	Webhooks  *webhooks.Service
	Feed      *feed.Service
	Receiver  *WebhookReceiver

	limit   int // live sessions an agent
	funding account.Funding
	exits   embedded.Config
	unbound sync.Map // addresses that cannot be bound any more
}

// Unbind makes an exit of the embedded provider one that cannot be bound.
func (w *World) Unbind(exit netip.Addr) { w.unbound.Store(exit, true) }

// RestartWithout restarts the program on a host without an exit.
func (w *World) RestartWithout(exit netip.Addr) {
	w.T.Helper()
	w.Unbind(exit)
	var err error
	w.Embedded, err = embedded.New(w.exits, slog.New(slog.DiscardHandler))
	OK(w.T, err)
	w.Wire(Options{}, w.Clock, w.IDs)
}

// New opens the default world.
func New(t testing.TB) *World { return Open(t, Options{}) }

// Open opens a world. When the test ends, the accounts are audited and the database closes.
func Open(t testing.TB, s Options) *World {
	t.Helper()
	w, done := Start(t, s)
	t.Cleanup(done)
	return w
}

// Start opens a world and returns a function that audits its accounts and closes it.
func Start(t testing.TB, s Options) (*World, func()) {
	t.Helper()
	if s.Database == "" {
		s.Database = newDatabase(t, s.System)
	}
	w := &World{T: t, Database: s.Database, Clock: fake.NewClock(), Seller: fake.NewProvider("remote", SellerProducts()...)}
	w.Seller.SetClock(w.Clock.Now)
	config := storage.Config{Path: s.Database, Readers: 3, Now: w.Clock.Now}
	if w.Postgres() {
		config = storage.Config{URL: storage.URL(s.Database), MaxConns: 6, Now: w.Clock.Now}
	}
	db := OpenStore(t, config)
	var err error
	w.DB, w.Store = db, &FaultyStore{Store: db, repeat: s.RepeatUpdates}
	w.Secrets, err = system.NewSecrets(RootSecret)
	OK(t, err)
	w.exits = embedded.Config{Everywhere: true, Exits: Exits(max(cmp.Or(s.Exits, 400), 2)),
		Usable: func(a netip.Addr) bool { _, gone := w.unbound.Load(a); return !gone }}
	w.Embedded, err = embedded.New(w.exits, slog.New(slog.DiscardHandler))
	OK(t, err)
	var clock ports.Clock = w.Clock
	var ids ports.IDs = new(fake.IDs)
	if s.System {
		clock, ids = system.Clock{}, new(system.IDs)
	}
	w.Wire(s, clock, ids)
	return w, func() {
		w.Audit()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Wire creates all use cases anew, as a restart of the program does.
func (w *World) Wire(s Options, clock ports.Clock, ids ports.IDs) {
	w.IDs, w.limit, w.funding = ids, s.SessionLimit, s.FundedFrom
	if s.TrialBalance == 0 {
		s.TrialBalance = 10 * domain.Dollar
	}
	var err error
	var seller ports.Provider = w.Seller
	if s.EmptyDeliveries {
		seller = emptySeller{w.Seller}
	}
	sold := w.Seller.Products()
	if s.SellerProducts != nil {
		sold = s.SellerProducts
		for i := range sold {
			sold[i].Sources = []procurement.Source{{Provider: w.Seller.Name()}}
		}
	}
	w.Catalog, err = catalogs.New(append([]ports.Provider{w.Embedded, seller}, s.Providers...),
		slices.Concat(w.Embedded.Products(), sold, s.Products), country.Name)
	OK(w.T, err)
	w.Hub = changes.New(w.Store, clock)
	w.Limits = throttle.New(throttle.Config{RegistrationsPerMinute: 3}, clock, nil, slog.New(slog.DiscardHandler))
	w.Observer = telemetry.NewObserver(w.Store, clock, ids)
	w.Connect(s.SessionLimit, clock, nil, slog.New(slog.DiscardHandler))
	config := accounts.Config{TrialBalance: max(s.TrialBalance, 0), TrialDays: 14, FundedFrom: s.FundedFrom,
		PerMinute: s.PerMinute}
	if s.Accounts != nil {
		s.Accounts(&config)
	}
	base := w.Base()
	base.Clock, base.IDs = clock, ids
	w.Accounts = accounts.New(config, base, system.NewTokens(w.Secrets, ids), w.Transitions, w.Hub)
	w.Referrers = accounts.NewReferrers(w.Store, clock, ids)
	w.Telemetry = telemetry.New(w.Store, clock, ids, w.Observer)
	w.Wallet = ledger.NewWallet(w.Store, clock, ids)
	w.Stats = ledger.NewStats(w.Store, clock)
	w.Receiver = &WebhookReceiver{clock: w.Clock}
	w.Feed = feed.New(w.Store, clock, w.Secrets, 0)
	w.Hub.Watch(w.Feed)
	w.Hub.WatchFeeds(w.Feed)
	w.Webhooks = webhooks.New(w.Store, clock, ids, w.Secrets, w.Receiver, w.Hub, slog.New(slog.DiscardHandler))
}

// Base is what the use cases of the world are made of, without a log.
func (w *World) Base() ports.Base {
	return ports.Base{Store: w.Store, Clock: w.Clock, IDs: w.IDs, Secrets: w.Secrets, Log: slog.New(slog.DiscardHandler)}
}

// Connect creates the use cases that depend on the catalogue.
func (w *World) Connect(limit int, clock ports.Clock, calls ports.CallCounter, log *slog.Logger) {
	w.UseCases = NewUseCases(Dependencies{Store: w.Store, Clock: clock, IDs: w.IDs, Secrets: w.Secrets,
		Catalog: w.Catalog, Hub: w.Hub, Limits: w.Limits, SessionLimit: limit, FundedFrom: w.funding, Calls: calls,
		Log: log})
	base := w.Base()
	base.Clock, base.Log = clock, log
	w.Other = ordering.NewDriver(base, w.Catalog, w.Hub, w.Transitions, w.Fulfilment, w.funding, calls)
}

// Reconnect creates the use cases that depend on the catalogue, with another catalogue.
func (w *World) Reconnect(c *catalogs.Catalog) {
	w.Catalog = c
	w.Connect(0, w.Clock, nil, slog.New(slog.DiscardHandler))
}

// Reprice changes the price of a GB of a product of the embedded provider, as a new configuration does.
func (w *World) Reprice(product string, price domain.Money) {
	w.T.Helper()
	sold := w.Embedded.Products()
	for i := range sold {
		if sold[i].No == product {
			sold[i].Price = price
		}
	}
	c, err := catalogs.New([]ports.Provider{w.Embedded, w.Seller}, append(sold, w.Seller.Products()...), country.Name)
	OK(w.T, err)
	w.Catalog = c
	w.Connect(w.limit, w.Clock, nil, slog.New(slog.DiscardHandler))
}

// SellerProducts returns the products of the seller: those of package fake and one that is
// sold out.
func SellerProducts() []catalog.Product {
	gone := fake.Products()[0]
	gone.No, gone.Available = "gone", false
	return append(fake.Products(), gone)
}

// Exits returns the first n addresses of 10.0.0.0/16.
func Exits(n int) []embedded.Exit {
	list := make([]embedded.Exit, n)
	for i := range list {
		list[i].Addr = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	return list
}
