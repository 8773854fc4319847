package storage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/evidence"
	"agentproxy/adapters/storage/payments"
	"agentproxy/adapters/storage/procurement"
	"agentproxy/adapters/storage/webhooks"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

var _ ports.Tx = (*tx)(nil)

// tx is one unit of work, which hands out the repositories.
type tx struct {
	work.Unit
	store *Store
	batch *batch // nil for a unit with a transaction of its own, and on SQLite
	// packed are the workers that a unit which writes has read in archives, with their sessions.
	packed map[int64]string
}

// unit returns a unit on a connection, in a transaction or in none.
func (s *Store) unit(conn engine.Conn, in *engine.Transaction) *tx {
	return &tx{Unit: work.Unit{Conn: conn, In: in, Database: s.work}, store: s}
}

// join has the unit share a batch, which takes no statement of its own.
func (t *tx) join(b *batch) { t.batch, t.Batch, t.Conn = b, b, batchConn{b} }

func (t *tx) Agents() ports.Agents                   { return accounts.Agents(&t.Unit) }
func (t *tx) Referrers() ports.Referrers             { return accounts.Referrers(&t.Unit) }
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
func (t *tx) Recharges() ports.Recharges             { return payments.Recharges(&t.Unit) }
func (t *tx) Outbox() ports.Outbox                   { return webhooks.Outbox(&t.Unit) }
func (t *tx) Webhooks() ports.Webhooks               { return webhooks.Webhooks(&t.Unit) }
func (t *tx) Devchain() ports.Devchain               { return payments.Devchain(&t.Unit) }
func (t *tx) Orders() ports.Orders                   { return procurement.Orders(&t.Unit) }
func (t *tx) Reconciliations() ports.Reconciliations { return procurement.Reconciliations(&t.Unit) }
func (t *tx) UsageCounts() ports.UsageCounts         { return procurement.UsageCounts(&t.Unit) }
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

type jobs struct{ *tx }

func (r jobs) Insert(ctx context.Context, j ports.Job, now time.Time) error {
	if err := r.MayWrite(); err != nil {
		return err
	}
	if tracer := r.store.config.Trace; tracer != nil {
		j.Traceparent = tracer.Traceparent(ctx)
	}
	if r.batch != nil {
		r.batch.insertJob(j, now)
		return nil
	}
	insert := r.store.jobs.Load()
	if insert == nil {
		return errors.New("insert job: no job inserter is set")
	}
	in, err := JobTxOf(r.tx)
	if err != nil {
		return err
	}
	if err := (*insert)(r.Conn.Context(), in, []ports.Job{j}, now); err != nil {
		return fmt.Errorf("insert job %s: %w", j.Kind, r.Failed(err))
	}
	return nil
}

// JobTxOf returns the transaction of a running unit, for what changes jobs. It ends with the unit.
func JobTxOf(unit ports.Tx) (JobTx, error) {
	t, ok := unit.(*tx)
	if !ok {
		return JobTx{}, errors.New("the unit is not of this store")
	}
	conn, err := t.SQL()
	if err != nil {
		return JobTx{}, err
	}
	return JobTx{Conn: conn, Tx: t.In.Tx}, nil
}
