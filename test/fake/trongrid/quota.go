package trongrid

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// quota is the number of calls of a day.
type quota struct {
	perDay int
	status int // of a refusal
	day    time.Time
	used   int
	last   time.Time // of an admitted call after the quota was used up
}

// Quota limits the calls of a UTC day, as the plans of TronGrid do: "100,000 requests per account per
// day", after that "such as 1 request per second. Requests beyond that limit are denied" (developers.tron.network,
// rate limits). Each call of a batch counts, because nothing documents that it does not. A refusal has the given
// status: 403 as observed, or 503, which the same page names too.
func (s *Server) Quota(perDay, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = &quota{perDay: perDay, status: status}
}

// Spend uses up what is left of the day's quota.
func (s *Server) Spend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota.begin(time.Now())
	s.quota.used = s.quota.perDay
}

func (q *quota) begin(now time.Time) {
	if day := now.UTC().Truncate(24 * time.Hour); !day.Equal(q.day) {
		q.day, q.used = day, 0
	}
}

// admit counts a request of a number of calls and reports whether it is served.
func (q *quota) admit(calls int, now time.Time) bool {
	q.begin(now)
	if q.used < q.perDay {
		q.used += calls
		return true
	}
	if now.Sub(q.last) < time.Second {
		return false
	}
	q.last = now
	return true
}

// refuse answers with the body that was observed.
func (q *quota) refuse(w http.ResponseWriter, r *http.Request) {
	text := fmt.Sprintf("Exceed the user daily usage (%d), the maximum query frequency is 1 time per second", q.perDay)
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		reply(w, q.status, map[string]any{"success": false, "statusCode": q.status, "error": text})
		return
	}
	reply(w, q.status, map[string]string{"Error": text})
}

// Live makes the chain grow with the clock: before each answer the blocks are mined whose time has
// come.
func (s *Server) Live() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = true
}

// grow mines what is due on a live chain.
func (s *Server) grow() {
	s.mu.Lock()
	due := 0
	if s.live {
		due = max(int(time.Since(s.next)/Every)+1, 0)
	}
	s.mu.Unlock()
	s.Mine(due)
}
