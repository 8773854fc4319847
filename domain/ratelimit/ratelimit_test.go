package ratelimit_test

import (
	"testing"
	"time"

	"agentproxy/domain/ratelimit"

	"pgregory.net/rapid"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestOfABurstExactlyTheLimitIsAllowed(t *testing.T) {
	for _, perMinute := range []int{1, 2, 7, 59, 600, 7001, 999_999} {
		limit := ratelimit.Limit{PerMinute: perMinute}
		var s ratelimit.State
		for i := range perMinute {
			var d ratelimit.Decision
			s, d = limit.Take(s, start, 1)
			if want := perMinute - i - 1; !d.Allowed || d.Remaining != want || d.Limit != perMinute {
				t.Fatalf("call %d of %d: %+v, want it allowed with %d remaining", i+1, perMinute, d, want)
			}
		}
		after, d := limit.Take(s, start, 1)
		if d.Allowed || d.Remaining != 0 || after != s {
			t.Errorf("call %d of %d: %+v", perMinute+1, perMinute, d)
		}
	}
}

func TestDecision(t *testing.T) {
	ten := ratelimit.Limit{PerMinute: 10} // one each 6 s
	full := ratelimit.State{TAT: start.Add(time.Minute)}
	for _, c := range []struct {
		claim string
		limit ratelimit.Limit
		state ratelimit.State
		n     int
		want  ratelimit.Decision
		tat   time.Time
	}{
		{"the first call leaves nine", ten, ratelimit.State{}, 1,
			ratelimit.Decision{Allowed: true, Limit: 10, Remaining: 9, ResetAt: start.Add(6 * time.Second)}, start.Add(6 * time.Second)},
		{"what was used up long ago counts no more", ten, ratelimit.State{TAT: start.Add(-time.Hour)}, 4,
			ratelimit.Decision{Allowed: true, Limit: 10, Remaining: 6, ResetAt: start.Add(24 * time.Second)}, start.Add(24 * time.Second)},
		{"the whole burst may go at once", ten, ratelimit.State{}, 10,
			ratelimit.Decision{Allowed: true, Limit: 10, ResetAt: start.Add(time.Minute)}, start.Add(time.Minute)},
		{"a refusal uses nothing and returns when", ten, full, 1,
			ratelimit.Decision{Limit: 10, ResetAt: start.Add(time.Minute), RetryAfter: 6 * time.Second}, full.TAT},
		{"a short wait is a whole second", ten, ratelimit.State{TAT: start.Add(54*time.Second + time.Microsecond)}, 1,
			ratelimit.Decision{Limit: 10, ResetAt: start.Add(54*time.Second + time.Microsecond), RetryAfter: time.Second}, start.Add(54*time.Second + time.Microsecond)},
		{"looking costs nothing", ten, ratelimit.State{TAT: start.Add(6 * time.Second)}, 0,
			ratelimit.Decision{Allowed: true, Limit: 10, Remaining: 9, ResetAt: start.Add(6 * time.Second)}, start.Add(6 * time.Second)},
		{"looking leaves a fresh state fresh", ten, ratelimit.State{}, 0,
			ratelimit.Decision{Allowed: true, Limit: 10, Remaining: 10, ResetAt: start}, time.Time{}},
		{"looking at a full state is allowed", ten, full, 0,
			ratelimit.Decision{Allowed: true, Limit: 10, ResetAt: start.Add(time.Minute)}, full.TAT},
		{"less than nothing is looking", ten, full, -3,
			ratelimit.Decision{Allowed: true, Limit: 10, ResetAt: start.Add(time.Minute)}, full.TAT},
		{"more than the burst is never allowed", ten, ratelimit.State{}, 11,
			ratelimit.Decision{Limit: 10, Remaining: 10, ResetAt: start, RetryAfter: time.Second}, time.Time{}},
		{"a burst below the limit", ratelimit.Limit{PerMinute: 10, Burst: 2}, ratelimit.State{}, 2,
			ratelimit.Decision{Allowed: true, Limit: 2, ResetAt: start.Add(12 * time.Second)}, start.Add(12 * time.Second)},
		{"one more than a burst below the limit", ratelimit.Limit{PerMinute: 10, Burst: 2}, ratelimit.State{TAT: start.Add(12 * time.Second)}, 1,
			ratelimit.Decision{Limit: 2, ResetAt: start.Add(12 * time.Second), RetryAfter: 6 * time.Second}, start.Add(12 * time.Second)},
		{"a burst above the limit is the limit", ratelimit.Limit{PerMinute: 10, Burst: 99}, ratelimit.State{}, 11,
			ratelimit.Decision{Limit: 10, Remaining: 10, ResetAt: start, RetryAfter: time.Second}, time.Time{}},
		{"0 is unlimited", ratelimit.Limit{}, full, 1 << 40, ratelimit.Decision{Allowed: true}, full.TAT},
		{"a clock set back by an hour waits a minute at most", ten, ratelimit.State{TAT: start.Add(time.Hour)}, 1,
			ratelimit.Decision{Limit: 10, ResetAt: start.Add(time.Minute), RetryAfter: 6 * time.Second}, start.Add(time.Hour)},
		{"a limit beyond the clock's precision is taken as the finest", ratelimit.Limit{PerMinute: 1 << 62}, ratelimit.State{}, 1,
			ratelimit.Decision{Allowed: true, Limit: 60_000_000, Remaining: 59_999_999, ResetAt: start.Add(time.Microsecond)}, start.Add(time.Microsecond)},
	} {
		t.Run(c.claim, func(t *testing.T) {
			s, d := c.limit.Take(c.state, start, c.n)
			if d != c.want {
				t.Errorf("%+v, want %+v", d, c.want)
			}
			if !s.TAT.Equal(c.tat) {
				t.Errorf("TAT %v, want %v", s.TAT, c.tat)
			}
		})
	}
}

func TestALimitThatDoesNotDivideTheMinuteIsNeverExceeded(t *testing.T) {
	for _, perMinute := range []int{7, 999, 7001, 999_999} {
		limit := ratelimit.Limit{PerMinute: perMinute}
		s, _ := limit.Take(ratelimit.State{}, start, perMinute)
		if _, d := limit.Take(s, start.Add(30*time.Second), 0); d.Remaining > perMinute/2 {
			t.Errorf("%d a minute: half a minute later %d remain", perMinute, d.Remaining)
		}
	}
}

func TestALoweredLimitAppliesAtOnce(t *testing.T) {
	s, _ := ratelimit.Limit{PerMinute: 600}.Take(ratelimit.State{}, start, 600)
	s, d := ratelimit.Limit{PerMinute: 10}.Take(s, start, 1)
	if d.Allowed || d.RetryAfter != 6*time.Second {
		t.Errorf("%+v, want a refusal for 6 s", d)
	}
	if _, d = (ratelimit.Limit{PerMinute: 6000}).Take(s, start.Add(10*time.Millisecond), 1); !d.Allowed {
		t.Errorf("%+v, want a raised limit to allow a call each 10 ms", d)
	}
}

// play lets a party call at drawn moments and returns when calls were allowed.
func play(t *rapid.T, limit ratelimit.Limit, check func(now time.Time, before, after ratelimit.State, n int, d ratelimit.Decision)) (calls []time.Time) {
	var s ratelimit.State
	now := start
	for range rapid.IntRange(1, 100).Draw(t, "calls") {
		now = now.Add(time.Duration(rapid.IntRange(0, 5_000_000).Draw(t, "gap")) * time.Microsecond)
		n := rapid.IntRange(0, limit.PerMinute+1).Draw(t, "n")
		after, d := limit.Take(s, now, n)
		check(now, s, after, n, d)
		if d.Allowed {
			for range n {
				calls = append(calls, now)
			}
		}
		s = after
	}
	return calls
}

func anyLimit(t *rapid.T) ratelimit.Limit {
	return ratelimit.Limit{PerMinute: rapid.IntRange(1, 100).Draw(t, "per minute")}
}

func TestNoStretchOfTimeAllowsMoreThanTheBurstAndItsRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimit(t)
		calls := play(t, limit, func(time.Time, ratelimit.State, ratelimit.State, int, ratelimit.Decision) {})
		for i := range calls {
			for j := i; j < len(calls); j++ {
				span := calls[j].Sub(calls[i])
				if most := float64(limit.PerMinute) * (1 + span.Minutes()); float64(j-i+1) > most+1e-6 {
					t.Fatalf("%d calls within %v, want at most %v", j-i+1, span, most)
				}
			}
		}
	})
}

func TestWaitingRetryAfterIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimit(t)
		play(t, limit, func(now time.Time, before, after ratelimit.State, n int, d ratelimit.Decision) {
			switch {
			case d.Allowed && d.RetryAfter != 0:
				t.Fatalf("allowed with %v to wait", d.RetryAfter)
			case d.Allowed:
				return
			case d.RetryAfter < time.Second || d.RetryAfter%time.Second != 0 || d.RetryAfter > time.Minute+time.Second:
				t.Fatalf("refused for %v", d.RetryAfter)
			case after != before:
				t.Fatal("a refusal used something")
			}
			if _, again := limit.Take(after, now.Add(d.RetryAfter), min(n, limit.PerMinute)); !again.Allowed {
				t.Fatalf("refused again after %v: %+v", d.RetryAfter, again)
			}
		})
	})
}

func TestRemainingAndResetAreTrue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := anyLimit(t)
		play(t, limit, func(now time.Time, _, after ratelimit.State, _ int, d ratelimit.Decision) {
			if d.Remaining < 0 || d.Remaining > d.Limit {
				t.Fatalf("%+v", d)
			}
			if _, all := limit.Take(after, now, d.Remaining); !all.Allowed {
				t.Fatalf("%d remained and were refused", d.Remaining)
			}
			if _, more := limit.Take(after, now, d.Remaining+1); more.Allowed {
				t.Fatalf("%d remained and one more was allowed", d.Remaining)
			}
			if _, full := limit.Take(after, d.ResetAt, 0); full.Remaining != limit.PerMinute {
				t.Fatalf("at the reset %d remain", full.Remaining)
			}
			if us := after.TAT.Truncate(time.Microsecond); !us.Equal(after.TAT) {
				t.Fatalf("TAT %v is finer than a microsecond", after.TAT)
			}
		})
	})
}

func BenchmarkTake(b *testing.B) {
	limit := ratelimit.Limit{PerMinute: 600}
	var s ratelimit.State
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s, _ = limit.Take(s, start.Add(time.Duration(i)*time.Millisecond), 1)
	}
}
