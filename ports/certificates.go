package ports

import (
	"context"
	"time"
)

// Certificates keeps what is needed to have certificates of an authority: its account, keys and certificates, by
// names of parts that a slash separates. adapters/certificate alone uses it, which seals what it stores.
type Certificates interface {
	// Get returns what is stored under a name and when it was, and false if there is nothing.
	Get(ctx context.Context, name string) (sealed []byte, at time.Time, found bool, err error)
	// Put stores under a name, in place of what is there.
	Put(ctx context.Context, name string, sealed []byte, at time.Time) error
	// Delete removes a name and all names below it, if there are any.
	Delete(ctx context.Context, name string) error
	// Names lists the names below one, in their order; those below "" are all.
	Names(ctx context.Context, below string) ([]string, error)
	// Lock takes the lock of a name for an owner until a time, or extends it, and reports whether the owner has it:
	// another one has it until the end of its time.
	Lock(ctx context.Context, name, owner string, now, until time.Time) (bool, error)
	// Unlock gives up a lock, if the owner has it.
	Unlock(ctx context.Context, name, owner string) error
}
