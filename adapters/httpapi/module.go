package httpapi

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"agentproxy/app"
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

	Accounts  *app.Accounts
	Catalog   *app.Catalog
	Sessions  *app.Sessions
	Callbacks *app.Callbacks
	Checks    *app.Checks
	Telemetry *app.Telemetry
	Wallet    *app.Wallet
	Recharges *app.Recharges
	Webhooks  *app.Webhooks
	Stats     *app.Stats
	Limits    *app.Limits
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
