package chain

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// refuses are the statuses by which TronGrid limits calls (its documentation,
// "Rate limits"; 503 with a key too).
var refuses = map[int]bool{http.StatusForbidden: true, http.StatusTooManyRequests: true,
	http.StatusServiceUnavailable: true}

// errExhausted means that the quota of the day is used up.
var errExhausted = errors.New("the daily quota is used up")

var (
	exhaustedText = regexp.MustCompile(`(?i)daily (usage|quota|limit)`)
	suspendedText = regexp.MustCompile(`(?i)suspended for (\d{1,4}) ?s`)
)

// exhausted reports whether a refusal is that of the daily quota.
func exhausted(body []byte) bool { return exhaustedText.Match(body) }

// maxSuspension bounds what a source may ask for, in times of the default.
const maxSuspension = 20

// suspension returns for how long a refusal asks to be left alone, or a default.
func suspension(body []byte, otherwise time.Duration) time.Duration {
	found := suspendedText.FindSubmatch(body)
	if found == nil {
		return otherwise
	}
	seconds, _ := strconv.Atoi(string(found[1])) // at most four digits
	return min(max(time.Duration(seconds)*time.Second, time.Second), maxSuspension*otherwise)
}

// After the quota TronGrid serves one call a second. It is unknown when a day of
// it begins, so after some minutes the full rate is tried again.
const (
	exhaustedEvery = 1100 * time.Millisecond
	exhaustedFor   = 10 * time.Minute
	exhaustedTries = 4 // of one call: other processes use the second too
)

// exhaustion limits calls while the quota is used up.
type exhaustion struct {
	limit *rate.Limiter

	mu     sync.Mutex
	until  time.Time
	warned time.Time
}

func newExhaustion() *exhaustion {
	return &exhaustion{limit: rate.NewLimiter(rate.Every(exhaustedEvery), 1)}
}

// begin notes a refusal and reports whether it is the first of an hour.
func (q *exhaustion) begin() (first bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if !q.until.After(now) {
		q.limit.ReserveN(now, 1) // the next call waits
	}
	q.until = now.Add(exhaustedFor)
	if first = now.Sub(q.warned) >= time.Hour; first {
		q.warned = now
	}
	return first
}

// wait waits for the second of the next call, if the quota is used up.
func (q *exhaustion) wait(ctx context.Context) error {
	q.mu.Lock()
	active := q.until.After(time.Now())
	q.mu.Unlock()
	if !active {
		return nil
	}
	return q.limit.Wait(ctx)
}
