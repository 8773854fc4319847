package httpapi

import (
	"agentproxy/adapters/httpapi/accounts"
	"agentproxy/adapters/httpapi/billing"
	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/events"
	"agentproxy/adapters/httpapi/products"
	"agentproxy/adapters/httpapi/sessions"
	"agentproxy/adapters/httpapi/sessionview"
	"agentproxy/adapters/httpapi/telemetry"
	"agentproxy/adapters/httpapi/webhooks"
	"agentproxy/adapters/httpapi/workers"
)

// declareFamilies declares the operations of each family with the use cases that it calls.
func declareFamilies(a *endpoint.API, d *Deps, g sessionview.Gateway) {
	accounts.Declare(a, accounts.UseCases{Accounts: d.Accounts})
	products.Declare(a, products.UseCases{Catalog: d.Catalog})
	sessions.Declare(a, sessions.UseCases{Sessions: d.Sessions, Policies: d.Policies, Checks: d.Checks,
		Reveals: d.Reveals, Replacements: d.Replacements}, g)
	workers.Declare(a, workers.UseCases{Workers: d.Workers, Sessions: d.Sessions}, g)
	telemetry.Declare(a, telemetry.UseCases{Telemetry: d.Telemetry})
	billing.Declare(a, billing.UseCases{Wallet: d.Wallet, Recharges: d.Recharges, Stats: d.Stats})
	webhooks.Declare(a, webhooks.UseCases{Webhooks: d.Webhooks})
	events.Declare(a, events.UseCases{Feed: d.Feed, Accounts: d.Accounts})
}

// gateway returns where the proxies of sessions are.
func (s *Server) gateway() sessionview.Gateway {
	return sessionview.Gateway{Host: s.cfg.GatewayHost, Port: s.cfg.GatewayPort, TLS: s.cfg.GatewayTLS,
		OnlyTLS: s.cfg.GatewayOnlyTLS}
}
