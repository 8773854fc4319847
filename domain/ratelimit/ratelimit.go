// Package ratelimit decides whether an agent may call now and, if not, when: the
// generic cell rate algorithm (GCRA, ITU-T I.371), which spreads a limit evenly
// and needs one time stamp of state.
package ratelimit

import "time"

// Limit is how many calls a minute are allowed; the burst is the same number.
// 0 and less is unlimited.
type Limit struct {
	PerMinute int
}

// perMinuteMax is the finest limit the microseconds of our clock can tell; a
// larger one is taken as it.
const perMinuteMax = int(time.Minute / time.Microsecond)

// State is what one limited party has used: the theoretical arrival time, the
// moment at which the whole burst is there again. The zero State has used
// nothing. It is of whole microseconds if now is, so a database keeps it, and a
// limit that changes meanwhile applies to it as it stands.
type State struct {
	TAT time.Time
}

// Decision is the answer to one call.
type Decision struct {
	Allowed    bool
	Limit      int           // calls a minute and the burst; 0: unlimited, and nothing below is set
	Remaining  int           // calls that would be allowed at once
	ResetAt    time.Time     // when Remaining is Limit again if nobody calls
	RetryAfter time.Duration // when refused: whole seconds, at least 1, that are enough to wait
}

// Take asks for n calls at once. If they are allowed the returned state has them
// used; a refusal uses nothing. With n 0 it only looks. More calls than the
// limit are never allowed: RetryAfter is then the wait for the whole burst.
func (l Limit) Take(s State, now time.Time, n int) (State, Decision) {
	if l.PerMinute <= 0 {
		return s, Decision{Allowed: true}
	}
	limit := min(l.PerMinute, perMinuteMax)
	interval := intervalOf(limit)
	burst := time.Duration(limit) * interval

	// What is used up lies between now and a burst ahead. It can seem longer
	// after the limit was raised, or the clock set back.
	used := min(max(s.TAT.Sub(now), 0), burst)
	d := Decision{Limit: limit}
	n = max(n, 0)
	wanted := time.Duration(min(n, limit)) * interval
	if d.Allowed = n <= limit && used+wanted <= burst; d.Allowed {
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

// intervalOf is the time one call takes up, in whole microseconds. It is rounded
// up, so a minute never allows more calls than promised.
func intervalOf(perMinute int) time.Duration {
	return time.Duration((perMinuteMax+perMinute-1)/perMinute) * time.Microsecond
}

// wholeSeconds rounds up, to at least one: Retry-After counts in seconds.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}
