// Package wire connects the service: the fx graph, the periodic
// tasks, and the reload of the configuration. It is the one package that names
// every adapter.
package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"agentproxy/adapters/admin"
	desk "agentproxy/adapters/admin/console"
	"agentproxy/adapters/certificate"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/conns"
	"agentproxy/adapters/console"
	"agentproxy/adapters/exitfacts"
	"agentproxy/adapters/gateway"
	"agentproxy/adapters/gateway/dial"
	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/mcp"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/adapters/webhook"
	"agentproxy/app/accounts"
	"agentproxy/app/changes"
	"agentproxy/app/exitlogs"
	"agentproxy/app/feed"
	"agentproxy/app/fulfilment"
	"agentproxy/app/ledger"
	"agentproxy/app/maintenance"
	"agentproxy/app/metering"
	"agentproxy/app/operator"
	"agentproxy/app/ordering"
	"agentproxy/app/overview"
	"agentproxy/app/payments"
	"agentproxy/app/playmoney"
	"agentproxy/app/policies"
	"agentproxy/app/reconcile"
	"agentproxy/app/replacements"
	"agentproxy/app/reveals"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/throttle"
	"agentproxy/app/webhooks"
	"agentproxy/app/workers"
	"agentproxy/cmd/internal/version"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/egress"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Core returns the graph without listeners and periodic tasks, for the operator's
// commands. They run beside a service that may be an older program, so they refuse
// a database whose schema is not theirs.
func Core(s configfile.Settings, log *slog.Logger) fx.Option {
	return core(s, log, storage.MigratedModule)
}

// Migration returns Core on a database that it migrates.
func Migration(s configfile.Settings, log *slog.Logger) fx.Option {
	return core(s, log, storage.Module)
}

func core(s configfile.Settings, log *slog.Logger, database fx.Option) fx.Option {
	return fx.Options(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(s, log, Loader{}),
		system.Module,
		database,
		embedded.Module,
		webhook.Module,
		chainModule(s.Payments),
		fx.Provide(
			rootSecrets, newQueue, newJobObserver, maintenance.NewProof, webhookConfig,
			storageConfig,
			embeddedConfig,
			newCatalog,
			func(l Loader, s configfile.Settings, store ports.Store) (Providers, error) {
				return l.Providers(s.Catalog, upstream.Env{Store: store, EchoURL: EchoURL(s)}, log)
			},
			accountsConfig,
			paymentsConfig, paymentNetwork, playmoney.New,
			newExitFacts,
			func(s configfile.Settings, facts *exitfacts.Facts) sessions.Config {
				return sessions.Config{Limit: s.SessionLimit, FundedFrom: s.FundedFrom, Measures: facts.Any}
			},
			func(s configfile.Settings) account.Funding { return s.FundedFrom },
			func(st ports.Store, clock ports.Clock, ids ports.IDs, secrets ports.Secrets, log *slog.Logger) ports.Base {
				return ports.Base{Store: st, Clock: clock, IDs: ids, Secrets: secrets, Log: log}
			},
			newCounter,
			func(l *sessions.Transitions) ordering.Lifecycle { return l },
			sharedLimits,
			func(s configfile.Settings) exitlogs.Config { return exitlogs.Config{Days: s.ExitLogDays} }, exitlogs.New,
			func(s configfile.Settings) maintenance.Config {
				return maintenance.Config{ClientDays: s.ClientAddressDays, ArchiveDays: s.ArchiveDays}
			},
			policies.New, workers.New, changes.New, accounts.New, accounts.NewReferrers, sessions.NewTransitions,
			fulfilment.New, ordering.NewDriver, ordering.NewDesk, ordering.NewCallbacks,
			reconcile.NewWatch, reconcile.New, sessions.New, replacements.New,
			metering.New, telemetry.NewObserver, newTelemetryQueue,
			newTelemetry,
			ledger.NewWallet, ledger.NewStats, newLimits, maintenance.New, maintenance.NewAddresses, payments.NewOrders,
			payments.NewWatcher, webhooks.New, operator.NewTrail, newJobs,
			operator.NewSessions, operator.NewMoney, operator.NewUnconfigured,
		),
		fx.Decorate(decorateStore),
		fx.Invoke(checkRoot, insertJobs),
	)
}

// Service returns the whole graph: Migration, the gateway, the API, the jobs and
// the periodic tasks. Parts start in the order of the list and stop in reverse.
func Service(s configfile.Settings, log *slog.Logger) fx.Option {
	return fx.Options(
		Migration(s, log),
		admin.Module,
		admin.ProvideChecks(checks),
		admin.ProvideGauges(gauges),
		fx.Provide(openTracer, traceRequests),
		fx.Decorate(newTimedSender, reportScans),
		fx.Invoke(registerBuild, checkPlay, checkProviders, holdClock),
		fx.Provide(
			func() conns.Budget { return conns.Divide(conns.Descriptors()) },
			consoleHost, newConsoleJobs, desk.New, newGate, adminConfig,
			func(s configfile.Settings) *policies.Published { return policies.Publish(s.Catalog.Policy) },
			exitlogs.NewLog,
			newCertificate, newScans, gatewayConfig, gatewayDeps, apiConfig, newProber, newReloader, newReloaded,
			sessions.NewChecks,
			reveals.New, newFeed, newTools, overview.New, consoleConfig, console.New,
			func(c *console.Console) httpapi.Console { return c.Serve },
			func(t *metering.Service) httpapi.Book { return t.Book },
		),
		// A module of its own, so that it starts before the listeners and stops
		// after them: the last observations of the gateway are stored too.
		fx.Module("background", fx.Invoke(
			func(st *storage.Store, r *prometheus.Registry) error { return r.Register(st) },
			countExcess, registerLeader, recoverFirst, startDevchain, resumeIndexes,
			func(lc fx.Lifecycle, q *queue.Queue) { lc.Append(fx.StartStopHook(q.Start, q.Stop)) },
			keepExits, disableScanners, runTasks, foldTelemetry, reloadOnHangup,
			func(hub *changes.Hub, g *gateway.Gateway) { hub.Watch(watcher{g}) },
			func(hub *changes.Hub, st *storage.Store) { hub.Watch(st.Remember()) },
			holdExits, measureExits,
		)),
		gateway.Module,
		httpapi.Module,
		// Before the API waits for the end of its calls.
		fx.Invoke(func(lc fx.Lifecycle, f *feed.Service) { lc.Append(fx.StopHook(f.Stop)) }),
		certificate.Module, // after the listeners, which answer an authority
		fx.Invoke(redirectPlain),
		fx.Invoke(keepProviders),
		admin.Announce,
		fx.StartTimeout(time.Minute), fx.StopTimeout(s.DrainDelay+time.Minute),
	)
}

// perAddress returns how many connections without a credential one client address may have. In
// development mode every client has the same address.
func perAddress(s configfile.Settings) int {
	if s.Dev {
		return 0
	}
	return conns.PerAddress
}

// embeddedConfig returns the exits of the embedded provider. In development mode they are sold as
// being in every country; elsewhere agents are sold the declared places alone.
func embeddedConfig(s configfile.Settings) embedded.Config {
	exits := make([]embedded.Exit, len(s.Exits))
	for i, e := range s.Exits {
		exits[i] = embedded.Exit(e)
	}
	return embedded.Config{Exits: exits, Everywhere: s.Dev}
}

// newFeed returns the feeds of agents, woken by the changes of every process. Calls that wait take half of the API's
// connections at most.
func newFeed(store ports.Store, clock ports.Clock, secrets ports.Secrets, hub *changes.Hub,
	b conns.Budget) *feed.Service {
	f := feed.New(store, clock, secrets, b.API/2)
	hub.Watch(f)
	hub.WatchFeeds(f)
	return f
}

// jobsIn is what jobs call.
type jobsIn struct {
	fx.In

	Trace     tracerIn
	Store     *storage.Store
	Driver    *ordering.Driver
	Passes    *maintenance.Tasks
	Payments  *payments.Watcher
	Webhooks  *webhooks.Service
	Accounts  *accounts.Service
	Reconcile *reconcile.Service
	Observe   queue.Observer
	Log       *slog.Logger
}

func newQueue(in jobsIn) (*queue.Queue, error) {
	handlers := queue.Handlers{DriveOrders: in.Driver.DriveSession, Deliver: in.Webhooks.Deliver,
		AbandonCreation: in.Driver.AbandonCreation, Observe: in.Observe, Tasks: in.tasks()}
	if in.Trace.Tracer != nil {
		handlers.Trace = in.Trace.Tracer.Job
	}
	if pool := in.Store.Pool(); pool != nil {
		return queue.NewPostgres(pool, handlers, in.Log)
	}
	return queue.New(in.Store.Writer(), handlers, in.Log)
}

// insertJobs lets transactions of the store insert jobs.
func insertJobs(st *storage.Store, q *queue.Queue) {
	st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, jobs []ports.Job, now time.Time) error {
		return q.Insert(ctx, tx.Conn, tx.Tx, jobs, now)
	})
}

// webhookConfig returns which addresses webhooks reach. Development mode opens
// loopback, where an agent's own receiver runs, but no listener of the service.
func webhookConfig(s configfile.Settings) webhook.Config {
	policy := egress.Policy{Allow: s.WebhookAllow, IsLocal: localAddresses()}
	for _, text := range []string{s.HTTPAddr, s.GatewayAddr, s.AdminAddr, s.TLS.RedirectAddr} {
		if own, err := configfile.ParseListener(text); err == nil {
			policy.Refuse = append(policy.Refuse, own)
		}
	}
	return webhook.Config{Policy: policy, Dev: s.Dev}
}

// authFailureLimit is how many wrong proxy credentials an address may try in a
// minute.
const authFailureLimit = 1000

// trialPart is the part of the gateway's places that trial accounts have together: they cost a
// stranger nothing, so others have three of four however many of them there are.
const trialPart = 4

func gatewayConfig(s configfile.Settings, b conns.Budget, secrets *system.Secrets,
	k *certificate.Keeper) gateway.Config {
	c := gateway.Config{Addr: s.GatewayAddr, Key: secrets.ProxyKey(), OlderKeys: secrets.OlderProxyKeys(),
		Forbidden: ownListeners(s.AdminAddr), AuthFailureLimit: authFailureLimit, EchoURL: echoURL(s.HTTPAddr, s.TLS.API),
		PublicEchoURL: EchoURL(s), Connections: b.Gateway, PerAddress: perAddress(s), Pipes: b.Pipes,
		Agent: s.AgentConnections, TrialAgent: s.TrialConnections, TargetRate: s.TargetRate,
		TrialTargetRate: s.TrialTargetRate, SessionTunnels: s.SessionTunnels,
		TrialPlaces: b.Gateway / trialPart, ConnectionRate: s.ConnectionRate,
		TrialConnectionRate: s.TrialConnectionRate, Targets: s.Targets, TrialTargets: s.TrialTargets, WatchScans: !s.Dev}
	c.Balancers, c.SingleLabels, c.Timing.StopAfter = balancers(s), s.Dev, s.Outage
	c.Timing.Fold = traffic.FoldAfter
	c.TicketSecret = secrets.TicketSecret()
	c.TLS, c.RefusePlaintext, c.EchoTLS = k.TLS(), s.TLS.RefusePlaintext, k.Own()
	if s.Dev {
		c.AuthFailureLimit, c.TrialPlaces = 0, 0
	}
	c.Public = publicTargets(s)
	for _, e := range s.Exits {
		c.Own = append(c.Own, e.Addr)
	}
	c.Resolve = map[string]dial.Resolution{}
	for _, p := range s.Catalog.Providers {
		c.Resolve[p.Name] = map[string]dial.Resolution{"here": dial.Here, "upstream": dial.Name}[p.Resolve]
	}
	return c
}

// balancers returns the networks of which the PROXY protocol is taken.
func balancers(s configfile.Settings) []netip.Prefix {
	if !s.ProxyProtocol {
		return nil
	}
	return s.TrustedProxies
}

// gatewayIn is what the gateway calls.
type gatewayIn struct {
	fx.In

	Settings configfile.Settings
	Policy   *policies.Published
	Exits    *exitlogs.Log
	Traffic  *metering.Service
	Workers  *workers.Service
	Observer *telemetry.Observer
	Clock    ports.Clock
	Registry *prometheus.Registry
	Limits   *throttle.Limits
	Log      *slog.Logger
}

func gatewayDeps(in gatewayIn) gateway.Deps {
	return gateway.Deps{Routes: in.Traffic, Workers: in.Workers, Leases: in.Traffic, Observer: in.Observer,
		AddressPolicy: egressPolicy(in.Settings), Policy: in.Policy.Now, Exits: in.Exits,
		StoredAll: func(id string) bool { return in.Limits.Stored.Over(id, account.TrialTier) },
		Now:       in.Clock.Now, Metrics: in.Registry, Log: in.Log}
}

// egressPolicy returns which addresses the gateway dials.
func egressPolicy(s configfile.Settings) egress.Policy {
	policy := egress.Policy{Allow: s.AllowNetworks, Loopback: s.Dev, IsLocal: localAddresses(),
		Refuse: ownListeners(s.GatewayAddr, s.AdminAddr, s.TLS.RedirectAddr)}
	if !s.Dev { // in development mode agents try their proxies with the API's own echo
		policy.Refuse = append(policy.Refuse, ownListeners(s.HTTPAddr)...)
	}
	return policy
}

// ownListeners parses the addresses of listeners, which configfile has checked.
func ownListeners(addrs ...string) []netip.AddrPort {
	var own []netip.AddrPort
	for _, text := range addrs {
		if addr, err := configfile.ParseListener(text); err == nil {
			own = append(own, addr)
		}
	}
	return own
}

// localAddresses returns a function that reports whether an address is this
// host's, as of the start. It returns nil, which means every address, if they
// cannot be listed.
func localAddresses() func(netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	own := map[netip.Addr]bool{}
	for _, a := range list {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			own[p.Addr().Unmap()] = true
		}
	}
	return func(a netip.Addr) bool { a = a.Unmap(); return a.IsLoopback() || own[a] }
}

// echoURL returns the URL of this process's own /v1/ip.
func echoURL(listen string, tls bool) string {
	addr, _ := configfile.ParseListener(listen) // Load has refused what is not an address
	return configfile.LocalURL(addr, tls) + "/v1/ip"
}

// EchoURL returns the URL of /v1/ip as the world reaches it.
func EchoURL(s configfile.Settings) string { return s.PublicURL + "/v1/ip" }

func apiConfig(s configfile.Settings, b conns.Budget, k *certificate.Keeper) httpapi.Config {
	c := httpapi.Config{Addr: s.HTTPAddr, PublicURL: s.PublicURL, GatewayHost: s.PublicHost, GatewayPort: s.PublicPort,
		GatewayTLS: s.TLS.Certificate(), GatewayOnlyTLS: s.TLS.RefusePlaintext,
		TrustedProxies: s.TrustedProxies, Balancers: balancers(s),
		Version: version.String(), Dev: s.Dev, Connections: b.API, PerAddress: perAddress(s),
		RevealSecrets: s.MCPReveal, AbuseContact: s.AbuseContact, Shop: s.ShopName,
		Downloads: s.Downloads, ToolTable: toolTable(), GatewayErrors: gatewayErrors(),
		Challenge: k.Challenge}
	if s.TLS.API {
		c.TLS = k.TLS()
	}
	return c
}

func consoleConfig(s configfile.Settings) console.Config {
	return console.Config{GatewayHost: s.PublicHost, GatewayPort: s.PublicPort, GatewayTLS: s.TLS.Certificate(),
		OnlyTLS: s.TLS.RefusePlaintext, Dev: s.Dev && !s.TLS.API, Shop: s.ShopName}
}

// newTools serves the tools of agents by the API's operations.
func newTools(log *slog.Logger) httpapi.Tools {
	tools := mcp.NewHandler(version.String(), log)
	return func(w http.ResponseWriter, r *http.Request, a *httpapi.Agent) { tools.Serve(w, r, a) }
}

// watcher passes changed sessions on to the gateway.
type watcher struct{ gateway *gateway.Gateway }

func (w watcher) SessionChanged(id string) { w.gateway.Changed(id) }

func (w watcher) AgentChanged(string) {}

// recoverFirst stores new jobs for sessions and deliveries that a crash left
// unfinished, before any job runs. Where the database can be read and not written, as on a
// full disk, the service starts for reading, and the periodic tasks recover them later.
func recoverFirst(lc fx.Lifecycle, st *storage.Store, driver *ordering.Driver, webhooks *webhooks.Service,
	log *slog.Logger) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		err := errors.Join(driver.Recover(ctx, 0), webhooks.Recover(ctx))
		if errors.Is(err, domain.ErrUnavailable) && st.Ping(ctx) == nil {
			log.Error("what a crash left unfinished is recovered once the database can be written", "err", err)
			return nil
		}
		return err
	}))
}
