package storage

import (
	"context"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/ports"
)

// reconciliations keeps one row a provider.
type reconciliations struct{ *tx }

const putReconciliation = `INSERT INTO reconciliations (provider, at, listed, orphans) VALUES (?1, ?2, ?3, ?4)
	ON CONFLICT (provider) DO UPDATE SET at = excluded.at, listed = excluded.listed, orphans = excluded.orphans`

func (r reconciliations) Put(_ context.Context, c ports.Reconciliation) error {
	return r.later("store the reconciliation of "+c.Provider, putReconciliation, c.Provider, micros(c.At),
		c.Listed, c.Orphans)
}

func (r reconciliations) All(ctx context.Context) (map[string]ports.Reconciliation, error) {
	all := map[string]ports.Reconciliation{}
	err := r.rows(ctx, "SELECT provider, at, listed, orphans FROM reconciliations", nil, func(rows engine.Row) error {
		var c ports.Reconciliation
		var at int64
		if err := rows.Scan(&c.Provider, &at, &c.Listed, &c.Orphans); err != nil {
			return err
		}
		c.At = time.UnixMicro(at).UTC()
		all[c.Provider] = c
		return nil
	})
	return all, wrap("read reconciliations", err)
}
