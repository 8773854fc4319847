package endpoint

import (
	"net/http"
	"sync"
	"time"
)

// refusalsLogged is how many requests that are refused with 401, 404 or 429 are logged in a second. Any stranger can
// send thousands, which cost nothing but the disk of the log.
const refusalsLogged = 100

// quiet decides which refused requests the access log leaves out.
type quiet struct {
	mu      sync.Mutex
	second  int64
	lines   int // of refused requests in the second
	silent  int // requests that were left out in it
	silents int // those of earlier seconds, which were not logged as a number yet
}

// admit reports whether a request with a status is logged, and how many of earlier seconds were not.
func (q *quiet) admit(status int, now time.Time) (logged bool, leftOut int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if second := now.Unix(); second != q.second {
		q.second, q.lines, q.silent, q.silents = second, 0, 0, q.silents+q.silent
	}
	if status == http.StatusNotFound || status == http.StatusUnauthorized || status == http.StatusTooManyRequests {
		if q.lines++; q.lines > refusalsLogged {
			q.silent++
			return false, 0
		}
	}
	leftOut, q.silents = q.silents, 0
	return true, leftOut
}
