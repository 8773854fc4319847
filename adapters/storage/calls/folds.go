package calls

import (
	"context"
	"strings"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/engine"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/work"
	"agentproxy/ports"
)

// folds keeps how far queues of telemetry are folded, a row each.
type folds struct{ *work.Unit }

// Folds returns the cursors of queues in a unit.
func Folds(u *work.Unit) ports.Folds { return folds{u} }

// lockFold makes the row at its first use. Its update changes nothing and locks it.
const lockFold = `INSERT INTO telemetry_folds (queue, stream, seq) VALUES (?1, '', 0)
	ON CONFLICT (queue) DO UPDATE SET queue = excluded.queue RETURNING stream, seq`

// foldRow is a row of telemetry_folds.
type foldRow struct {
	Queue, Stream string
	Seq           int64
}

var putFolds = rows.Update[foldRow]("put folds", "telemetry_folds", 1)

// FoldTable has how far queues of telemetry are folded.
var FoldTable = &rows.Table[string, ports.FoldCursor]{
	Order:   work.FoldOrder,
	Compare: strings.Compare,
	Ahead: rows.Ahead[string, ports.FoldCursor]{
		What: "lock folds", Query: "SELECT queue, stream, seq FROM telemetry_folds WHERE queue = ANY(?1::text[])",
		Locked: " ORDER BY queue FOR " + work.RowLock,
		Scan: func(row engine.Row) (string, ports.FoldCursor, error) {
			var f foldRow
			err := row.Scan(column.Targets(&f)...)
			return f.Queue, ports.FoldCursor{Stream: f.Stream, Seq: uint64(f.Seq)}, err
		},
	},
	Find: func(s *rows.Set, queue string) (c ports.FoldCursor, found bool, err error) {
		if s.View() {
			return c, false, engine.ErrReadOnly
		}
		var seq int64
		found, err = s.Find([]any{&c.Stream, &seq}, lockFold, "", queue)
		s.Changed()
		c.Seq = uint64(seq)
		return c, found, work.Wrap("lock the cursor of "+queue, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, ports.FoldCursor]) error {
		return putFolds.Write(to, rows.Map(changed, func(c rows.Change[string, ports.FoldCursor]) foldRow {
			return foldRow{c.Key, c.Row.Stream, int64(c.Row.Seq)}
		}))
	},
}

func (r folds) Cursor(_ context.Context, queue string) (ports.FoldCursor, error) {
	c, _, err := FoldTable.Get(r.Set, queue)
	return c, err
}

func (r folds) Put(_ context.Context, queue string, c ports.FoldCursor) error {
	return FoldTable.Put(r.Set, queue, c)
}
