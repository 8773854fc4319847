package metering

import (
	"slices"
	"sync"
	"time"

	"agentproxy/domain/traffic"
)

// Sessions whose requests fail are left out for retryFailing, so that they do not cost every
// renewal several transactions. Each is logged once in logFailing.
const (
	retryFailing = 5 * time.Second
	logFailing   = time.Minute
	maxFailing   = 10_000
)

// failing is the sessions whose requests failed by themselves.
type failing struct {
	mu       sync.Mutex
	sessions map[string]failure
}

type failure struct{ at, logged time.Time }

// add notes that a session failed and reports whether to log it.
func (f *failing) add(id string, now time.Time) (log bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(now)
	last, known := f.sessions[id]
	if log = !known || now.Sub(last.logged) >= logFailing; log {
		last.logged = now
	}
	if f.sessions == nil {
		f.sessions = map[string]failure{}
	}
	if known || len(f.sessions) < maxFailing {
		f.sessions[id] = failure{at: now, logged: last.logged}
	}
	return log
}

// forget drops those that have not failed for a while.
func (f *failing) forget(now time.Time) {
	for id, last := range f.sessions {
		if now.Sub(last.at).Abs() > logFailing {
			delete(f.sessions, id)
		}
	}
}

// filter leaves out the requests of sessions that failed just before.
func (f *failing) filter(requests []traffic.LeaseRequest, now time.Time) []traffic.LeaseRequest {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) == 0 {
		return requests
	}
	return slices.DeleteFunc(requests, func(request traffic.LeaseRequest) bool {
		last, known := f.sessions[request.SessionID]
		return known && now.Sub(last.at).Abs() < retryFailing
	})
}
