package storage

import (
	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/batch"
	"agentproxy/adapters/storage/calls"
	"agentproxy/adapters/storage/certificate"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/evidence"
	"agentproxy/adapters/storage/ledger"
	"agentproxy/adapters/storage/overview"
	"agentproxy/adapters/storage/payments"
	"agentproxy/adapters/storage/procurement"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/sessions"
	"agentproxy/adapters/storage/usage"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/adapters/storage/work"
	"agentproxy/adapters/storage/workers"
	"agentproxy/ports"
)

// newBatch returns a batch on a pipeline.
func (s *Store) newBatch(pipe engine.Pipeline) *batch.Batch {
	return batch.New(counted(s.config.Trace, pipe), &s.restricted)
}

// tx is one unit of work, which hands out the repositories.
type tx struct {
	work.Unit
	store  *Store
	own    rows.Set
	packed workers.Packed
}

// unit returns a unit on a connection, in a transaction or in none.
func (s *Store) unit(conn engine.Conn, in *engine.Transaction) *tx {
	t := &tx{Unit: work.Unit{Conn: conn, In: in, Database: s.work}, store: s, own: rows.New(conn, in)}
	t.Set = &t.own
	return t
}

// share has the unit, or the view, use rows that were read ahead, without statements of its own.
func (t *tx) share(s *rows.Set) { t.Conn, t.Set = batch.ConnOf(s), s }

var _ ports.Tx = (*tx)(nil)

func (t *tx) Agents() ports.Agents                   { return accounts.Agents(&t.Unit) }
func (t *tx) Referrers() ports.Referrers             { return accounts.Referrers(&t.Unit) }
func (t *tx) Statements() ports.Statements           { return ledger.Statements(&t.Unit) }
func (t *tx) Ledger() ports.Ledger                   { return ledger.Ledger(&t.Unit) }
func (t *tx) Sessions() ports.Sessions               { return sessions.Sessions(&t.Unit) }
func (t *tx) Traffic() ports.Traffic                 { return sessions.Traffic(&t.Unit, &t.store.leases) }
func (t *tx) Health() ports.Health                   { return sessions.Health(&t.Unit) }
func (t *tx) Events() ports.Events                   { return sessions.Events(&t.Unit) }
func (t *tx) Counters() ports.Counters               { return usage.Counters(&t.Unit) }
func (t *tx) Idempotency() ports.Idempotency         { return calls.Idempotency(&t.Unit) }
func (t *tx) Addresses() ports.Addresses             { return procurement.Addresses(&t.Unit) }
func (t *tx) Changes() ports.Changes                 { return calls.Changes(&t.Unit, t.store.database) }
func (t *tx) Jobs() ports.Jobs                       { return calls.Jobs(&t.Unit, t.store.traceparent) }
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
func (t *tx) Policies() ports.Policies               { return sessions.Policies(&t.Unit) }
func (t *tx) Workers() ports.Workers                 { return workers.Workers(&t.Unit, &t.packed) }
func (t *tx) Peers() ports.Peers                     { return sessions.Peers(&t.Unit) }
func (t *tx) ExitLog() ports.ExitLog                 { return evidence.ExitLog(&t.Unit) }
func (t *tx) Keys() ports.Keys                       { return accounts.Keys(&t.Unit) }
func (t *tx) AuditTrail() ports.AuditTrail           { return evidence.AuditTrail(&t.Unit) }
func (t *tx) Overview() ports.Overview               { return overview.Overview(&t.Unit) }
func (t *tx) Folds() ports.Folds                     { return calls.Folds(&t.Unit) }
func (t *tx) Certificates() ports.Certificates       { return certificate.Certificates(&t.Unit) }
func (t *tx) KeyWallets() ports.KeyWallets           { return accounts.KeyWallets(&t.Unit) }
func (t *tx) ExitMeasures() ports.ExitMeasures       { return evidence.ExitMeasures(&t.Unit) }
