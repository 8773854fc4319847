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

// books is a store for its proof.
type books struct{ *Store }

var _ proof.Database = books{}

func (b books) Read(ctx context.Context, fn func(*work.Unit) error) error {
	return b.Store.Read(ctx, func(_ context.Context, unit ports.Tx) error { return fn(&unit.(*tx).Unit) })
}

func (b books) Update(ctx context.Context, fn func(*work.Unit) error) error {
	return b.Store.Update(ctx, func(_ context.Context, unit ports.Tx) error { return fn(&unit.(*tx).Unit) })
}

func (b books) Audit(ctx context.Context, fn func(engine.Conn) error) error {
	return b.database.Audit(ctx, fn)
}
