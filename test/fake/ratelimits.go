package fake

import (
	"context"
	"sync"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// RateLimits keeps shared limits in memory. It may be used by many goroutines.
type RateLimits struct {
	clock  ports.Clock
	mu     sync.Mutex
	states map[string]ratelimit.State
	takes  int
	fault  error
}

var _ ports.RateLimits = (*RateLimits)(nil)

// TimedLimits are shared limits of which each call waits for its answer, however long that takes, and which
// note the store's time in it.
type TimedLimits struct {
	ports.RateLimits
	mu          sync.Mutex
	first, last time.Time
}

// Take takes tokens.
func (l *TimedLimits) Take(ctx context.Context, key string, request ratelimit.Request) (ratelimit.Grant, error) {
	g, err := l.RateLimits.Take(context.WithoutCancel(ctx), key, request)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && (l.first.IsZero() || g.Now.Before(l.first)) {
		l.first = g.Now
	}
	if err == nil && g.Now.After(l.last) {
		l.last = g.Now
	}
	return g, err
}

// Refilled returns how many tokens of a limit became free between the first answer and the last.
func (l *TimedLimits) Refilled(perMinute int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.last.Sub(l.first) * time.Duration(perMinute) / time.Minute)
}

// NewRateLimits returns limits that are timed by a clock.
func NewRateLimits(clock ports.Clock) *RateLimits {
	return &RateLimits{clock: clock, states: map[string]ratelimit.State{}}
}

// Take takes tokens, or returns the error that Fail set.
func (r *RateLimits) Take(_ context.Context, key string, request ratelimit.Request) (g ratelimit.Grant, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes++
	if r.fault != nil {
		return g, r.fault
	}
	r.states[key], g = request.TakeFrom(r.states[key], r.clock.Now())
	return g, nil
}

// Purge removes expired states.
func (r *RateLimits) Purge(_ context.Context, limit int) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		return 0, r.fault
	}
	for key, s := range r.states {
		if n < limit && r.clock.Now().Sub(s.TAT) > 2*time.Minute {
			delete(r.states, key)
			n++
		}
	}
	return n, nil
}

// Fail makes every call fail with an error; nil ends that.
func (r *RateLimits) Fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fault = err
}

// Takes returns the number of calls of Take.
func (r *RateLimits) Takes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.takes
}

// Age makes the state of a key older by a duration.
func (r *RateLimits) Age(key string, by time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.states[key]
	s.TAT = s.TAT.Add(-by)
	r.states[key] = s
}

// Keys returns the number of states.
func (r *RateLimits) Keys() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.states)
}
