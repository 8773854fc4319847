package storage

import (
	"context"
	"fmt"

	"agentproxy/ports"
)

// folds keeps how far queues of telemetry are folded, a row each.
type folds struct{ *tx }

const (
	// lockFold makes the row at its first use. Its update changes nothing and locks it.
	lockFold = `INSERT INTO telemetry_folds (queue, stream, seq) VALUES (?1, '', 0)
		ON CONFLICT (queue) DO UPDATE SET queue = excluded.queue RETURNING stream, seq`
	putFold = "UPDATE telemetry_folds SET stream = ?2, seq = ?3 WHERE queue = ?1"
)

func (r folds) Cursor(_ context.Context, queue string) (c ports.FoldCursor, err error) {
	if r.batch != nil {
		return r.batch.fold(queue)
	}
	var seq int64
	if err := r.Returning(lockFold, []any{queue}, &c.Stream, &seq); err != nil {
		return c, fmt.Errorf("lock the cursor of %s: %w", queue, err)
	}
	c.Seq = uint64(seq)
	return c, nil
}

func (r folds) Put(_ context.Context, queue string, c ports.FoldCursor) error {
	if r.batch != nil {
		return r.batch.putFold(queue, c)
	}
	return r.Later("put the cursor of "+queue, putFold, queue, c.Stream, int64(c.Seq))
}

func (b *batch) fold(queue string) (ports.FoldCursor, error) {
	f, ok := b.folds.get(queue)
	if !ok {
		return ports.FoldCursor{}, b.escape() // which makes the row
	}
	return f.FoldCursor, nil
}

func (b *batch) putFold(queue string, c ports.FoldCursor) error {
	if _, ok := b.folds.get(queue); !ok {
		return b.escape()
	}
	b.wrote = true
	b.folds.put(queue, batchFold{c, true})
	return nil
}
