package endpoint

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// refusalsLogged is how many requests that are refused with 401, 404 or 429 are logged in a second. Any stranger can
// send thousands, which cost nothing but the disk of the log.
const refusalsLogged = 100

// servedLogged is how many requests that are served within slow are logged in a second, which is 10 GB a day. Failures,
// and what is slow, are all logged.
const (
	servedLogged = 500
	slow         = time.Second
)

// served counts the requests of a second that the access log has. It takes no lock.
type served struct {
	second, lines atomic.Int64
	leftOut       atomic.Int64 // that were not logged as a number yet
}

// admit reports whether another is logged, and how many before were not: the first of a second has that.
func (s *served) admit(now time.Time) (logged bool, leftOut int64) {
	second := now.Unix()
	if was := s.second.Load(); was != second && s.second.CompareAndSwap(was, second) {
		s.lines.Store(0)
		leftOut = s.leftOut.Swap(0)
	}
	if s.lines.Add(1) > servedLogged {
		s.leftOut.Add(1)
		return false, 0
	}
	return true, leftOut
}

// quiet decides which refused requests the access log leaves out.
type quiet struct {
	served  served
	pending atomic.Bool // whether there is a number to log

	mu      sync.Mutex
	second  int64
	lines   int // of refused requests in the second
	silent  int // requests that were left out in it
	silents int // those of earlier seconds, which were not logged as a number yet
}

// admit reports whether a request with a status is logged, and how many of earlier seconds were not.
func (q *quiet) admit(status int, now time.Time) (logged bool, leftOut int) {
	refused := status == http.StatusNotFound || status == http.StatusUnauthorized || status == http.StatusTooManyRequests
	if !refused && !q.pending.Load() {
		return true, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if second := now.Unix(); second != q.second {
		q.second, q.lines, q.silent, q.silents = second, 0, 0, q.silents+q.silent
	}
	if refused {
		if q.lines++; q.lines > refusalsLogged {
			q.silent++
			q.pending.Store(true)
			return false, 0
		}
	}
	leftOut, q.silents = q.silents, 0
	q.pending.Store(q.silent > 0)
	return true, leftOut
}
