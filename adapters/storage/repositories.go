package storage

import (
	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/certificate"
	"agentproxy/adapters/storage/evidence"
	"agentproxy/adapters/storage/payments"
	"agentproxy/adapters/storage/procurement"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/ports"
)

var _ ports.Tx = (*tx)(nil)

func (t *tx) Agents() ports.Agents                   { return accounts.Agents(&t.Unit) }
func (t *tx) Referrers() ports.Referrers             { return accounts.Referrers(&t.Unit) }
func (t *tx) Statements() ports.Statements           { return ledger{t} }
func (t *tx) Ledger() ports.Ledger                   { return ledger{t} }
func (t *tx) Sessions() ports.Sessions               { return sessions{t} }
func (t *tx) Traffic() ports.Traffic                 { return usages{t} }
func (t *tx) Health() ports.Health                   { return healths{t} }
func (t *tx) Events() ports.Events                   { return events{t} }
func (t *tx) Counters() ports.Counters               { return counters{t} }
func (t *tx) Idempotency() ports.Idempotency         { return calls{t} }
func (t *tx) Addresses() ports.Addresses             { return procurement.Addresses(&t.Unit) }
func (t *tx) Changes() ports.Changes                 { return changes{t} }
func (t *tx) Jobs() ports.Jobs                       { return jobs{t} }
func (t *tx) PayAddresses() ports.PayAddresses       { return payments.PayAddresses(&t.Unit) }
func (t *tx) Transfers() ports.Transfers             { return payments.Transfers(&t.Unit) }
func (t *tx) Recharges() ports.Recharges             { return payments.Recharges(&t.Unit) }
func (t *tx) Outbox() ports.Outbox                   { return webhooks.Outbox(&t.Unit) }
func (t *tx) Webhooks() ports.Webhooks               { return webhooks.Webhooks(&t.Unit) }
func (t *tx) Devchain() ports.Devchain               { return payments.Devchain(&t.Unit) }
func (t *tx) Orders() ports.Orders                   { return procurement.Orders(&t.Unit) }
func (t *tx) Reconciliations() ports.Reconciliations { return procurement.Reconciliations(&t.Unit) }
func (t *tx) UsageCounts() ports.UsageCounts         { return procurement.UsageCounts(&t.Unit) }
func (t *tx) Replacements() ports.Replacements       { return procurement.Replacements(&t.Unit) }
func (t *tx) Claims() ports.Claims                   { return procurement.Claims(&t.Unit) }
func (t *tx) Trials() ports.Trials                   { return accounts.Trials(&t.Unit) }
func (t *tx) Policies() ports.Policies               { return policies{t} }
func (t *tx) Workers() ports.Workers                 { return workers{t} }
func (t *tx) Peers() ports.Peers                     { return peers{t} }
func (t *tx) ExitLog() ports.ExitLog                 { return evidence.ExitLog(&t.Unit) }
func (t *tx) Keys() ports.Keys                       { return accounts.Keys(&t.Unit) }
func (t *tx) AuditTrail() ports.AuditTrail           { return evidence.AuditTrail(&t.Unit) }
func (t *tx) Overview() ports.Overview               { return overview{t} }
func (t *tx) Folds() ports.Folds                     { return folds{t} }
func (t *tx) Certificates() ports.Certificates       { return certificate.Certificates(&t.Unit) }
func (t *tx) KeyWallets() ports.KeyWallets           { return accounts.KeyWallets(&t.Unit) }
func (t *tx) ExitMeasures() ports.ExitMeasures       { return evidence.ExitMeasures(&t.Unit) }
