// Package wire connects the service: the fx graph, the loops of the background
// passes, and the reload of the configuration. It is the one package that names
// every adapter.
package wire

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"agentproxy/adapters/admin"
	"agentproxy/adapters/configfile"
	"agentproxy/adapters/gateway"
	"agentproxy/adapters/httpapi"
	"agentproxy/adapters/queue"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/adapters/upstream"
	"agentproxy/adapters/webhook"
	"agentproxy/app"
	"agentproxy/domain/egress"
	"agentproxy/domain/traffic"
	"agentproxy/ports"
)

// Core is the graph without listeners and without passes: what the operator's
// commands run on, beside a running service, which may be an older program. So
// they refuse a database whose schema is not theirs.
func Core(s configfile.Settings, log *slog.Logger) fx.Option {
	return core(s, log, storage.MigratedModule)
}

// Migration is Core on a database that it migrates.
func Migration(s configfile.Settings, log *slog.Logger) fx.Option {
	return core(s, log, storage.Module)
}

func core(s configfile.Settings, log *slog.Logger, database fx.Option) fx.Option {
	return fx.Options(
		fx.WithLogger(func() fxevent.Logger { return fxevent.NopLogger }),
		fx.Supply(s, log),
		system.Module,
		database,
		upstream.EmbeddedModule,
		webhook.Module,
		chainModule(s.Payments),
		fx.Provide(
			rootSecret, newQueue, newProof, webhookConfig,
			func(s configfile.Settings) storage.Config {
				return storage.Config{Path: s.DatabasePath, URL: s.DatabaseURL, MaxConns: s.DatabaseConns, Logger: log}
			},
			func(s configfile.Settings) upstream.Config { return upstream.Config{Exits: s.Exits} },
			newCatalog, newSellers,
			func(s configfile.Settings) app.AccountConfig {
				return app.AccountConfig{TrialBalance: s.TrialBalance, TrialDays: s.TrialDays, Dev: s.Dev, PerMinute: s.RateLimit}
			},
			func(s configfile.Settings) app.SessionConfig { return app.SessionConfig{Limit: s.SessionLimit} },
			newCounter,
			func(l *app.Transitions) app.Lifecycle { return l },
			func(s configfile.Settings) app.LimitConfig {
				return app.LimitConfig{RegistrationsPerMinute: s.RegisterLimit}
			},
			(*storage.Store).RateLimits,
			app.NewHub, app.NewAccounts, app.NewReferrers, app.NewTransitions, app.NewFulfilment, app.NewDriver,
			app.NewDesk, app.NewCallbacks, app.NewSessions, app.NewTraffic, app.NewObserver, app.NewTelemetry,
			app.NewWallet, app.NewStats, app.NewLimits, app.NewPasses, app.NewRecharges, app.NewPayments,
			app.NewWebhooks,
		),
		fx.Invoke(insertJobs),
	)
}

// Service is the whole graph: Core, the gateway, the API, the jobs and the
// passes. Parts start in the order of the list and stop in the other.
func Service(s configfile.Settings, log *slog.Logger) fx.Option {
	return fx.Options(
		Migration(s, log),
		admin.Module,
		admin.ProvideChecks(checks),
		admin.ProvideGauges(gauges),
		fx.Provide(
			func(s configfile.Settings) admin.Config { return admin.Config{Addr: s.AdminAddr, Pprof: s.Dev} },
			gatewayConfig, apiConfig, newProber, newReloader, app.NewChecks,
			func(t *app.Traffic, o *app.Observer) gateway.Backend { return backend{t, o} },
		),
		// A module of its own, so that it starts before the listeners and stops
		// after them: what the gateway sees last is stored too.
		fx.Module("background", fx.Invoke(
			recoverFirst, startDevchain,
			func(lc fx.Lifecycle, q *queue.Queue) { lc.Append(fx.StartStopHook(q.Start, q.Stop)) },
			runPasses, reloadOnHangup,
			func(hub *app.Hub, g *gateway.Gateway) { hub.Watch(watcher{g}) },
		)),
		gateway.Module,
		httpapi.Module,
		admin.Announce,
		fx.StartTimeout(time.Minute), fx.StopTimeout(time.Minute),
	)
}

// rootSecret is the configured one, or the one kept beside the database.
func rootSecret(s configfile.Settings) (system.Root, error) {
	if s.Secret != nil {
		return s.Secret, nil
	}
	return system.LoadOrCreateSecret(s.SecretFile())
}

func newQueue(st *storage.Store, driver *app.Driver, passes *app.Passes, payments *app.Payments, webhooks *app.Webhooks, ledger *proof, log *slog.Logger) (*queue.Queue, error) {
	handlers := queue.Handlers{DriveOrders: driver.DriveSession, Deliver: webhooks.Deliver, GiveUp: driver.GiveUp,
		ExpireSession: passes.ExpireSession, SettleSession: passes.SettleSession, ExpireTrial: passes.ExpireTrial,
		Passes: jobPasses(passes, driver, payments, webhooks, ledger)}
	if pool := st.Pool(); pool != nil {
		return queue.NewPostgres(pool, handlers, log)
	}
	return queue.New(st.Writer(), handlers, log)
}

// insertJobs gives the store the queue.
func insertJobs(st *storage.Store, q *queue.Queue) {
	st.SetJobInserter(func(ctx context.Context, tx storage.JobTx, j ports.Job, now time.Time) error {
		return q.Insert(ctx, tx.Conn, tx.Tx, j, now)
	})
}

// webhookConfig says which addresses webhooks reach. Development mode opens
// loopback, where an agent's own receiver runs, but never a listener of ours.
func webhookConfig(s configfile.Settings) webhook.Config {
	policy := egress.Policy{Allow: s.WebhookAllow, IsLocal: localAddresses()}
	for _, text := range []string{s.HTTPAddr, s.GatewayAddr, s.AdminAddr} {
		if own, err := configfile.ParseListener(text); err == nil {
			policy.Refuse = append(policy.Refuse, own)
		}
	}
	return webhook.Config{Policy: policy, Dev: s.Dev}
}

// guesses is how many wrong proxy credentials an address may try in a minute.
const guesses = 1000

func gatewayConfig(s configfile.Settings, secrets *system.Secrets, registry *prometheus.Registry) (gateway.Config, error) {
	policy := egress.Policy{Allow: s.AllowNetworks, Loopback: s.Dev, IsLocal: localAddresses()}
	var closed []netip.AddrPort
	for _, text := range []string{s.GatewayAddr, s.AdminAddr} {
		own, _ := configfile.ParseListener(text) // Load has refused what is no address
		closed = append(closed, own)
	}
	policy.Refuse = append(policy.Refuse, closed...)
	c := gateway.Config{Metrics: registry, Forbidden: closed[1:], Addr: s.GatewayAddr, Key: secrets.ProxyKey(), Judge: policy, GuessLimit: guesses,
		EchoURL: echoURL(s.HTTPAddr), PublicEchoURL: s.PublicURL + "/v1/ip"}
	if s.Dev {
		c.GuessLimit = 0
	}
	return c, nil
}

// localAddresses tells this host's addresses, as they are at the start. Without
// the list every address is taken for this host's.
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

// echoURL is this process's own /v1/ip.
func echoURL(listen string) string {
	addr, _ := configfile.ParseListener(listen) // Load has refused what is no address
	return configfile.LocalURL(addr) + "/v1/ip"
}

func apiConfig(s configfile.Settings) httpapi.Config {
	return httpapi.Config{Addr: s.HTTPAddr, PublicURL: s.PublicURL, GatewayHost: s.PublicHost, GatewayPort: s.PublicPort,
		TrustedProxies: s.TrustedProxies, Version: Version}
}

// Version is the version of the program, shown by GET /health.
var Version = "0.1.0"

// watcher tells the gateway which sessions changed.
type watcher struct{ gateway *gateway.Gateway }

func (w watcher) SessionChanged(id string) { w.gateway.Changed(id) }

func (w watcher) AgentChanged(string) {}

// backend is what the gateway asks of the use cases.
type backend struct {
	*app.Traffic
	*app.Observer
}

// prober opens connections through the gateway's dialler.
type prober struct {
	gateway *gateway.Gateway
	traffic *app.Traffic
}

func newProber(g *gateway.Gateway, t *app.Traffic) ports.Prober { return prober{g, t} }

// Probe asks the echo through a session's exit.
func (p prober) Probe(ctx context.Context, id string) (ports.Probe, error) {
	var route traffic.Route
	route, err := p.traffic.Route(ctx, id)
	if err != nil {
		return ports.Probe{}, err
	}
	r, err := p.gateway.Probe(ctx, route)
	if err != nil {
		if ctx.Err() != nil {
			return ports.Probe{}, ports.ErrTimeout
		}
		return ports.Probe{}, ports.ErrProvider.Msgf("the exit did not reach the service's echo; rotate and try again")
	}
	return ports.Probe{ExitIP: r.ExitIP, Latency: r.Latency}, nil
}

// recoverFirst stores new jobs for what a crash left creating or undelivered,
// before any job is worked.
func recoverFirst(lc fx.Lifecycle, driver *app.Driver, webhooks *app.Webhooks) {
	lc.Append(fx.StartHook(func(ctx context.Context) error {
		return errors.Join(driver.Recover(ctx, 0), webhooks.Recover(ctx))
	}))
}
