// Package console serves the pages on which the people behind an agent look at its sessions and its
// money, and act on them. It works without scripts, except for charts.
package console

import (
	"log/slog"
	"net/http"

	"go.uber.org/fx"

	"agentproxy/adapters/console/ui"
	"agentproxy/app/accounts"
	"agentproxy/app/catalogs"
	"agentproxy/app/ledger"
	"agentproxy/app/overview"
	"agentproxy/app/payments"
	"agentproxy/app/policies"
	"agentproxy/app/sessions"
	"agentproxy/app/throttle"
	"agentproxy/app/webhooks"
	"agentproxy/app/workers"
	"agentproxy/ports"
)

// Base is the path that every page is below.
const Base = "/console"

// Config is what the operator decides about the console.
type Config struct {
	GatewayHost string // where agents reach the gateway
	GatewayTLS  bool   // it takes TLS too
	OnlyTLS     bool   // it refuses what is not TLS
	GatewayPort int
	Shop        string // the name on the pages; empty: agentproxy
	Dev         bool   // development mode: the cookie is sent without TLS too
}

// Deps are the use cases that the pages show and call.
type Deps struct {
	fx.In

	Accounts  *accounts.Service
	Catalog   *catalogs.Catalog
	Overview  *overview.Service
	Sessions  *sessions.Service
	Policies  *policies.Service
	Wallet    *ledger.Wallet
	Stats     *ledger.Stats
	Recharges *payments.Orders
	Webhooks  *webhooks.Service
	Workers   *workers.Service
	Limits    *throttle.Limits
	Clock     ports.Clock
	IDs       ports.IDs
	Log       *slog.Logger
}

// Console serves the pages.
type Console struct {
	*Deps // a pointer, since fx refuses results that embed fx.In
	cfg   Config
	pages ui.Pages
	serve http.Handler
}
