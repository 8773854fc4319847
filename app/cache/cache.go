// Package cache keeps values in memory, bounded by their number or weight. It is otter behind an
// interface: a package that uses a type with an *otter.Cache as a field compiles otter's generic code
// once more, 5 s of processor time each.
package cache

import (
	"context"
	"time"

	"github.com/maypok86/otter/v2"
)

// Cache keeps values by their keys. Which values are dropped when it is full is otter's choice. It is
// safe for use by several goroutines.
type Cache[K comparable, V any] interface {
	// Load returns the value of a key; where there is none it calls load and keeps what that returns,
	// unless it is an error. A load during which the key is invalidated is not kept, and may be made
	// once more. Of callers at once one loads.
	Load(ctx context.Context, key K, load func(context.Context, K) (V, error)) (V, error)
	// GetIfPresent returns the value of a key and whether there is one.
	GetIfPresent(key K) (V, bool)
	// Set keeps a value. It returns it, or, as SetIfAbsent, the one that was there before with false.
	Set(key K, value V) (V, bool)
	// SetIfAbsent keeps a value unless there is one. It returns the value that is kept now, and whether
	// that is the given one.
	SetIfAbsent(key K, value V) (V, bool)
	// Invalidate drops the value of a key and returns it.
	Invalidate(key K) (V, bool)
	// InvalidateAll drops every value, and none of a load that is under way.
	InvalidateAll()
}

// Bounds limits what a cache keeps.
type Bounds[K comparable, V any] struct {
	Most     int                     // greatest number of values, if Weigh is nil
	Weight   uint64                  // greatest sum of what Weigh returns
	Weigh    func(key K, v V) uint32 // nil: values are counted
	Written  time.Duration           // a value is dropped so long after it was set last; 0: not
	Accessed time.Duration           // a value is dropped so long after it was got or set last; 0: not
}

// New returns an empty cache. Of Written and Accessed at most one is set.
func New[K comparable, V any](b Bounds[K, V]) Cache[K, V] {
	o := &otter.Options[K, V]{MaximumSize: b.Most, MaximumWeight: b.Weight, Weigher: b.Weigh}
	switch {
	case b.Written > 0:
		o.ExpiryCalculator = otter.ExpiryWriting[K, V](b.Written)
	case b.Accessed > 0:
		o.ExpiryCalculator = otter.ExpiryAccessing[K, V](b.Accessed)
	}
	return bounded[K, V]{otter.Must(o)}
}

// bounded is an otter.Cache as a Cache.
type bounded[K comparable, V any] struct{ *otter.Cache[K, V] }

func (b bounded[K, V]) Load(ctx context.Context, key K, load func(context.Context, K) (V, error)) (V, error) {
	return b.Get(ctx, key, otter.LoaderFunc[K, V](load))
}
