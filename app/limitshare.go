package app

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentproxy/domain/ratelimit"
	"agentproxy/ports"
)

// How long an answer about a shared limit is waited for; how long nobody asks
// after one that did not come; and how often that is logged.
const (
	askWithin = 2 * time.Second
	askAgain  = time.Second
	sayAgain  = time.Minute
)

// sharedLimits asks for tokens of shared limits. While nobody answers, the limits
// hold for each process alone: they must not take the service down.
type sharedLimits struct {
	store ports.RateLimits
	clock ports.Clock
	log   *slog.Logger

	mu       sync.Mutex
	failed   time.Time // when nobody answered, zero after an answer
	reported time.Time
}

// silent reports whether it is too early to ask again. Of those who come when it
// is not, one asks: it may have to wait, and the others need not.
func (l *sharedLimits) silent(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed.IsZero() {
		return false
	}
	if since := now.Sub(l.failed); since >= 0 && since < askAgain {
		return true
	}
	l.failed = now
	return false
}

// ask asks once. Its context is not that of a request, because others wait for
// the answer too.
func (l *sharedLimits) ask(key string, ask ratelimit.Ask) (ratelimit.Grant, bool) {
	ctx, cancel := context.WithTimeout(context.Background(), askWithin)
	defer cancel()
	g, err := l.store.Take(ctx, key, ask)
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.failed = time.Time{}
		return g, true
	}
	l.failed = now
	if since := now.Sub(l.reported); since < 0 || since >= sayAgain {
		l.reported = now
		l.log.Warn("rate limits hold for each process alone", "err", err)
	}
	return g, false
}

// share is what this process has of one caller's limit.
type share struct {
	name string // of the shared state

	mu      sync.Mutex
	landed  sync.Cond // mu's; an answer has come
	asking  bool
	waiting int // callers that are not decided about
	has     ratelimit.Share
}

func newShare(name string) *share {
	s := &share{name: name}
	s.landed.L = &s.mu
	return s
}

// take decides about one call. Of the callers that need tokens at the same time
// one asks, for all of them.
func (s *share) take(l *sharedLimits, limit ratelimit.Limit) (d ratelimit.Decision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting++
	defer func() { s.waiting-- }()
	for {
		var known bool
		now := l.clock.Now() // inside the lock, so that it does not run backwards
		if s.has, d, known = s.has.Take(limit, now); known {
			return d
		}
		if s.asking {
			s.landed.Wait()
			continue
		}
		if l.silent(now) || !s.ask(l, limit, now) {
			s.has, d = s.has.TakeLocal(limit, now)
			return d
		}
	}
}

// ask lets go of the lock while it waits for the answer.
func (s *share) ask(l *sharedLimits, limit ratelimit.Limit, now time.Time) (answered bool) {
	callers := s.waiting
	ask := limit.Ask(callers)
	var g ratelimit.Grant
	s.asking = true
	s.mu.Unlock()
	defer func() { // after a panic too
		s.mu.Lock()
		s.asking = false
		if answered {
			s.has = limit.NewShare(ask, g, callers, now, l.clock.Now())
		}
		s.landed.Broadcast()
	}()
	g, answered = l.ask(s.name, ask)
	return answered
}
