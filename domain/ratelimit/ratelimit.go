// Package ratelimit decides whether an agent may call now and, if not, when: the
// generic cell rate algorithm (GCRA, ITU-T I.371), which spreads a limit evenly
// and needs one time stamp of state.
package ratelimit

import "time"

// Limit is the number of calls allowed in a minute. Zero and negative values are
// unlimited.
type Limit struct {
	PerMinute int
	Burst     int // calls at once, by Take alone; 0: PerMinute
}

// perMinuteMax is the largest limit that a clock of microseconds can resolve.
// Larger limits are treated as perMinuteMax.
const perMinuteMax = int(time.Minute / time.Microsecond)

// State is the usage of one limited party as the theoretical arrival time (TAT)
// of GCRA, the time at which the whole burst is available again. The zero State
// has used nothing. It stays on whole microseconds if now does, so a database
// can store it, and it remains valid if the limit changes.
type State struct {
	TAT time.Time
}

// Decision is the result of one call.
type Decision struct {
	Allowed    bool
	Limit      int           // the burst: calls at once; 0 if unlimited, then the rest is not set
	Remaining  int           // calls that would be allowed at once
	ResetAt    time.Time     // when Remaining is Limit again without further calls
	RetryAfter time.Duration // when refused: whole seconds, at least 1, that are enough to wait
}

// Take requests n calls at once. It returns the state after them if they are
// allowed, and the unchanged state otherwise. If n is 0 it only reports the
// state. More calls than the limit are never allowed: RetryAfter is then the
// time until the whole burst is available.
func (l Limit) Take(s State, now time.Time, n int) (State, Decision) {
	if l.PerMinute <= 0 {
		return s, Decision{Allowed: true}
	}
	limit := min(l.PerMinute, perMinuteMax)
	interval := intervalOf(limit)
	most := limit
	if l.Burst > 0 {
		most = min(l.Burst, limit)
	}
	burst := time.Duration(most) * interval

	// What is used up lies between now and a burst ahead. It can seem longer
	// after the limit was raised, or the clock set back.
	used := min(max(s.TAT.Sub(now), 0), burst)
	d := Decision{Limit: most}
	n = max(n, 0)
	wanted := time.Duration(min(n, most)) * interval
	if d.Allowed = n <= most && used+wanted <= burst; d.Allowed {
		used += wanted
		if n > 0 {
			s.TAT = now.Add(used)
		}
	} else {
		d.RetryAfter = wholeSeconds(used + wanted - burst)
	}
	d.Remaining = int((burst - used) / interval)
	d.ResetAt = now.Add(used)
	return s, d
}

// intervalOf returns the emission interval of GCRA in whole microseconds,
// rounded up so that a minute never allows more calls than the limit.
func intervalOf(perMinute int) time.Duration {
	return time.Duration((perMinuteMax+perMinute-1)/perMinute) * time.Microsecond
}

// wholeSeconds rounds up, to at least one: Retry-After counts in seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}
