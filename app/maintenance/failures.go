package maintenance

import (
	"maps"
	"sync"
	"time"
)

// failures holds the items that failed and the time at which each is tried again. The zero value is
// ready for use.
type failures struct {
	mu    sync.Mutex
	until map[string]time.Time
}

// prune forgets the items whose time has come and returns how many are left.
func (f *failures) prune(now time.Time) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.until, func(_ string, until time.Time) bool { return !now.Before(until) })
	return len(f.until)
}

func (f *failures) add(item string, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.until == nil {
		f.until = make(map[string]time.Time)
	}
	f.until[item] = until
}

func (f *failures) has(item string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, failed := f.until[item]
	return failed
}
