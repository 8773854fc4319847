package endpoint

import (
	"testing"
	"time"
)

// A service with much to do logs a part of what it serves, and how much it left out.
func TestServedRequestsAreSampled(t *testing.T) {
	t.Parallel()
	var s served
	now := time.Unix(1_700_000_000, 0)
	second := func(requests int) (lines int, leftOut int64) {
		now = now.Add(time.Second)
		for range requests {
			logged, n := s.admit(now)
			if logged {
				lines++
			}
			leftOut += n
		}
		return lines, leftOut
	}
	for i, c := range []struct {
		requests, lines int
		leftOut         int64
	}{{10, 10, 0}, {servedLogged, servedLogged, 0}, {5000, servedLogged, 0}, {3, 3, 5000 - servedLogged}, {3, 3, 0}} {
		if lines, leftOut := second(c.requests); lines != c.lines || leftOut != c.leftOut {
			t.Errorf("%d: of %d requests %d are logged, and %d before were left out", i, c.requests, lines, leftOut)
		}
	}
}
