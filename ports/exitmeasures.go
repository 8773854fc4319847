package ports

import (
	"context"
	"time"

	"agentproxy/domain/exit"
)

// ExitMeasures keeps what was measured of exits, a record each.
type ExitMeasures interface {
	// Of lists the records of sessions and of their workers, in the order of session, worker and index.
	Of(ctx context.Context, sessionIDs []string) ([]exit.Record, error)
	// Get returns the record of an exit, and whether there is one.
	Get(ctx context.Context, r exit.Ref) (exit.Record, bool, error)
	// Put stores a record in place of the one of its Ref.
	Put(ctx context.Context, r exit.Record) error
	// Due lists up to limit records whose measurement is due, longest first.
	Due(ctx context.Context, now time.Time, limit int) ([]exit.Record, error)
	// Postpone sets when a measurement is due.
	Postpone(ctx context.Context, r exit.Ref, due time.Time) error
	// Drop removes the record of an exit. Removing one that is not there is no error.
	Drop(ctx context.Context, r exit.Ref) error
	// Quality counts the exits by source and country as sold, in this order. It reads every record.
	Quality(ctx context.Context) ([]exit.Quality, error)
	// Unmeasured lists up to limit active static sessions without a record of their addresses.
	Unmeasured(ctx context.Context, limit int) ([]string, error)
}
