package throttle

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// The timeout of a request to the shared store, how long the store is left alone
// after a failure, and how often a failure is logged.
const (
	storeTimeout = 2 * time.Second
	storeBackoff = time.Second
	logEvery     = time.Minute
)

// sharedLimits takes tokens of shared limits from the store. While the store
// fails, the limits hold for each process alone: they must not take the service
// down.
type sharedLimits struct {
	store ports.RateLimits
	clock ports.Clock
	log   *slog.Logger

	mu       sync.Mutex
	failed   time.Time // when the store failed last, zero after a success
	reported time.Time
}

// allowRequest reports whether the store may be asked. After a failure it admits
// one caller per storeBackoff, which may have to wait for the timeout.
func (l *sharedLimits) allowRequest(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed.IsZero() {
		return true
	}
	if since := now.Sub(l.failed); since >= 0 && since < storeBackoff {
		return false
	}
	l.failed = now
	return true
}

// request makes one request. Its context is not that of a caller, because others wait
// for the result too.
func (l *sharedLimits) request(key string, request ratelimit.Request) (ratelimit.Grant, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	g, err := l.store.Take(ctx, key, request)
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.failed = time.Time{}
		return g, true
	}
	l.failed = now
	if since := now.Sub(l.reported); since < 0 || since >= logEvery {
		l.reported = now
		l.log.Warn("rate limits hold for each process alone", "err", err)
	}
	return g, false
}

// share is the part of one caller's limit that this process has taken.
type share struct {
	name string // of the shared state

	mu         sync.Mutex
	arrived    sync.Cond // of mu; a request has ended
	requesting bool
	waiting    int // tokens that callers without a decision need
	has        ratelimit.Share
}

func newShare(name string) *share {
	s := &share{name: name}
	s.arrived.L = &s.mu
	return s
}

// takeTokens decides a call. Of the callers that need tokens at the same time one
// makes the request, for all of them.
func (s *share) takeTokens(of *limiter, limit ratelimit.Limit, n int, how taking) (d ratelimit.Decision) {
	l := of.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting += n
	taken := 0
	defer func() { s.waiting -= n - taken }()
	for {
		var known bool
		now := l.clock.Now() // inside the lock, so that it does not run backwards
		if s.has, d, known = s.has.Take(limit, now); known && !d.Allowed {
			if how == whole {
				s.has = s.has.Return(taken)
				d.RetryAfter += limit.Wait(n - taken - 1)
			}
			return d
		}
		if known {
			s.waiting--
			if taken++; taken == n {
				return d
			}
			continue
		}
		if s.requesting {
			s.arrived.Wait()
			continue
		}
		if !l.allowRequest(now) || !s.request(l, limit, now) {
			s.has, d = s.has.TakeLocal(limit, now, n-taken)
			return d
		}
	}
}

// request releases the lock while it waits for the store.
func (s *share) request(l *sharedLimits, limit ratelimit.Limit, now time.Time) (answered bool) {
	callers := s.waiting
	request := limit.NewRequest(callers)
	var g ratelimit.Grant
	s.requesting = true
	s.mu.Unlock()
	defer func() { // after a panic too
		s.mu.Lock()
		s.requesting = false
		if answered {
			s.has = limit.NewShare(request, g, callers, now, l.clock.Now())
		}
		s.arrived.Broadcast()
	}()
	g, answered = l.request(s.name, request)
	return answered
}
