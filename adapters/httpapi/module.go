package httpapi

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/app/accounts"
	"agentproxy/app/catalog"
	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/app/procurement"
	"agentproxy/app/ratelimit"
	"agentproxy/app/sessions"
	"agentproxy/app/telemetry"
	"agentproxy/app/webhooks"
	"agentproxy/ports"
)

// Module serves the public API for as long as the application runs. It needs a
// Config.
var Module = fx.Module("httpapi",
	fx.Provide(func(cfg Config, p params) *Server { return New(cfg, p.deps()) }),
	fx.Invoke(func(lc fx.Lifecycle, s *Server) { lc.Append(fx.StartStopHook(s.Start, s.Stop)) }),
)

// params is Deps as fx fills it.
type params struct {
	fx.In

	Accounts  *accounts.Accounts
	Catalog   *catalog.Catalog
	Sessions  *sessions.Sessions
	Callbacks *procurement.Callbacks
	Checks    *sessions.Checks
	Telemetry *telemetry.Telemetry
	Wallet    *ledger.Wallet
	Recharges *payments.Recharges
	Webhooks  *webhooks.Webhooks
	Stats     *ledger.Stats
	Limits    *ratelimit.Limits
	Store     ports.Store
	Clock     ports.Clock
	IDs       ports.IDs
	Log       *slog.Logger
	Metrics   *prometheus.Registry `optional:"true"`
}

func (p params) deps() Deps {
	d := Deps{Accounts: p.Accounts, Catalog: p.Catalog, Sessions: p.Sessions, Callbacks: p.Callbacks, Checks: p.Checks,
		Telemetry: p.Telemetry, Wallet: p.Wallet, Recharges: p.Recharges, Webhooks: p.Webhooks, Stats: p.Stats, Limits: p.Limits,
		Store: p.Store, Clock: p.Clock, IDs: p.IDs, Log: p.Log}
	if p.Metrics != nil {
		d.Metrics = p.Metrics
	}
	return d
}
