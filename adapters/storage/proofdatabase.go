package storage

import (
	"context"

	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/proof"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// proofBounds are those of the proofs of the next store; tests change them.
var proofBounds = proof.Usual

// proofDatabase is a store as its proof reads it.
type proofDatabase struct{ *Store }

var _ proof.Database = proofDatabase{}

func (p proofDatabase) Read(ctx context.Context, fn func(*work.Unit) error) error {
	return p.Store.Read(ctx, func(_ context.Context, unit ports.Tx) error { return fn(&unit.(*tx).Unit) })
}

func (p proofDatabase) Update(ctx context.Context, fn func(*work.Unit) error) error {
	return p.Store.Update(ctx, ports.ReadSet{}, func(_ context.Context, unit ports.Tx) error {
		return fn(&unit.(*tx).Unit)
	})
}

func (p proofDatabase) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return p.database.Audit(ctx, fn)
}
