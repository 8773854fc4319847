package httpapi

// declareFamilies declares the operations of each family with the use cases that it calls.
func declareFamilies(a *API, d *Deps, g gateway) {
	declareAccountsFamily(a, accountsUses{d.Accounts})
	declareProductsFamily(a, productsUses{d.Catalog})
	declareSessionsFamily(a, sessionsUses{d.Sessions, d.Policies, d.Checks, d.Reveals}, g)
	declareWorkersFamily(a, workersUses{d.Workers, d.Sessions}, g)
	declareTelemetryFamily(a, telemetryUses{d.Telemetry})
	declareBillingFamily(a, billingUses{d.Wallet, d.Recharges, d.Stats})
	declareWebhooksFamily(a, webhooksUses{d.Webhooks})
}

// gateway returns where the proxies of sessions are.
func (s *Server) gateway() gateway { return gateway{s.cfg.GatewayHost, s.cfg.GatewayPort} }
