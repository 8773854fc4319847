package ports

import "context"

// Folds keeps how far each queue of telemetry is folded into the store. What a unit folds and the
// queue's new cursor are committed together, so no call is folded twice.
type Folds interface {
	// Cursor returns how far a queue is folded, the zero cursor if nothing of it was, and locks it
	// until the end of the unit.
	Cursor(ctx context.Context, queue string) (FoldCursor, error)
	// Put sets how far a queue is folded.
	Put(ctx context.Context, queue string, c FoldCursor) error
}

// FoldCursor is the last call of a queue that was folded. Numbers mean something within one stream
// alone: one that was made anew has another name and counts from 1.
type FoldCursor struct {
	Stream string
	Seq    uint64
}
