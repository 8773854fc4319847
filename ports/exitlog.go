package ports

import (
	"context"
	"time"

	"agentproxy/domain/exitlog"
)

// ExitLog keeps who used which exit. Records are only added, and deleted by age.
type ExitLog interface {
	// Append adds the records of a replica as a batch that is stored at a time.
	Append(ctx context.Context, replica string, at time.Time, records []exitlog.Connection) error
	// Between calls fn for each record that was stored from a time to another, both inclusive.
	Between(ctx context.Context, from, to time.Time, fn func(exitlog.Connection)) error
	// Purge removes up to limit batches that were stored before a time, and returns how many. It
	// leaves those of a hold, and those of margin after it.
	Purge(ctx context.Context, before time.Time, margin time.Duration, limit int) (int, error)
	// AddHold adds a hold.
	AddHold(ctx context.Context, h exitlog.Hold) error
	// EndHold ends a hold. It returns false if none with the id holds.
	EndHold(ctx context.Context, id string, at time.Time) (bool, error)
	// Holds lists all holds, the newest first.
	Holds(ctx context.Context) ([]exitlog.Hold, error)
	// AddLookup adds a look-up.
	AddLookup(ctx context.Context, l exitlog.Lookup) error
	// Lookups lists the newest look-ups, up to a limit.
	Lookups(ctx context.Context, limit int) ([]exitlog.Lookup, error)
}
