package ports

import (
	"context"
	"time"
)

// Trials counts what of the trial is granted in a scope, such as to all accounts, on a UTC day.
type Trials interface {
	// Take adds an amount to what was granted in a scope on a day, unless the sum would be more than
	// most, and reports whether it did. Other units that take in the same scope on the day wait for
	// the end of this one.
	Take(ctx context.Context, day time.Time, scope string, amount, most int64) (bool, error)
	// Return takes an amount back that the same unit has added.
	Return(ctx context.Context, day time.Time, scope string, amount int64) error
	// Granted returns the sum of a scope on a day.
	Granted(ctx context.Context, day time.Time, scope string) (int64, error)
	// Purge removes up to limit counts of earlier days, and returns how many.
	Purge(ctx context.Context, before time.Time, limit int) (int, error)
}
