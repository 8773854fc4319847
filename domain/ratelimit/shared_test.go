package ratelimit_test

import (
	"testing"
	"time"

	"agentproxy/domain/ratelimit"

	"pgregory.net/rapid"
)

func TestOverdraft(t *testing.T) {
	for _, c := range []struct{ perMinute, overdraft, spare int }{
		{0, 0, 0}, {1, 0, 0}, {10, 0, 0}, {59, 0, 0}, {60, 5, 1}, {100, 5, 1}, {119, 5, 1}, {120, 6, 1}, {600, 30, 7},
		{10_000_000, 500_000, 125_000}, {1 << 62, 3_000_000, 750_000},
	} {
		l := ratelimit.Limit{PerMinute: c.perMinute}
		if l.Overdraft() != c.overdraft || l.Spare() != c.spare {
			t.Errorf("%d a minute: %d too many, %d to spare, want %d, %d", c.perMinute, l.Overdraft(), l.Spare(), c.overdraft, c.spare)
		}
	}
}

func TestAskOfAState(t *testing.T) {
	in := func(d time.Duration) ratelimit.State { return ratelimit.State{TAT: start.Add(d)} }
	for _, c := range []struct {
		claim     string
		perMinute int
		state     ratelimit.State
		callers   int
		tokens    int
		ahead     time.Duration
	}{
		{"a small limit gives no spare tokens", 10, ratelimit.State{}, 1, 1, 6 * time.Second},
		{"a large one does", 600, ratelimit.State{}, 1, 8, 800 * time.Millisecond},
		{"all who wait are asked for", 600, ratelimit.State{}, 100, 107, 10700 * time.Millisecond},
		{"of a burst the limit and the overdraft are given", 600, ratelimit.State{}, 900, 630, 63 * time.Second},
		{"of a small one the limit", 10, ratelimit.State{}, 40, 10, time.Minute},
		{"what is left is given", 600, in(62900*time.Millisecond + time.Microsecond), 1, 0, 62900*time.Millisecond + time.Microsecond},
		{"to the last", 600, in(62900 * time.Millisecond), 1, 1, 63 * time.Second},
		{"nothing is given ahead of the burst", 10, in(70 * time.Second), 3, 0, 70 * time.Second},
		{"a state of before the clock was set back is two minutes ahead", 10, in(time.Hour), 1, 0, 2 * time.Minute},
		{"what was used long ago counts no more", 10, in(-time.Hour), 1, 1, 6 * time.Second},
		{"less than nothing is not requested", 10, in(time.Second), -4, 0, time.Second},
	} {
		s, g := ratelimit.Limit{PerMinute: c.perMinute}.NewRequest(c.callers).TakeFrom(c.state, start)
		if g.Tokens != c.tokens || g.TAT.Sub(start) != c.ahead || !s.TAT.Equal(g.TAT) || !g.Now.Equal(start) {
			t.Errorf("%s: %+v, %v ahead", c.claim, g, g.TAT.Sub(start))
		}
	}
}

// cluster is a set of replicas that share one state.
type cluster struct {
	limit    ratelimit.Limit
	now      time.Time
	state    ratelimit.State
	replicas []replica
	requests int
}

// replica has a clock that is wrong.
type replica struct {
	share   ratelimit.Share
	skew    time.Duration
	waiting int
	flight  func() // lands an answer
}

// call is one call at a replica, with an answer from the state that is on its way
// for so long.
func (s *cluster) call(i int, latency time.Duration) ratelimit.Decision {
	r := &s.replicas[i]
	for range 3 {
		var d ratelimit.Decision
		var known bool
		if r.share, d, known = r.share.Take(s.limit, s.now.Add(r.skew)); known {
			return d
		}
		s.send(i, 1, latency)
		r.flight()
	}
	panic("an answer did not decide")
}

func (s *cluster) send(i, callers int, latency time.Duration) {
	r := &s.replicas[i]
	request, sent := s.limit.NewRequest(callers), s.now.Add(r.skew-latency)
	var g ratelimit.Grant
	s.requests++
	s.state, g = request.TakeFrom(s.state, s.now)
	r.flight = func() {
		r.share, r.flight = s.limit.NewShare(request, g, callers, sent, s.now.Add(r.skew)), nil
	}
}

func newCluster(t *rapid.T, limit int) *cluster {
	s := &cluster{limit: ratelimit.Limit{PerMinute: limit}, now: start, replicas: make([]replica, rapid.IntRange(1, 4).Draw(t, "replicas"))}
	for i := range s.replicas {
		s.replicas[i].skew = time.Duration(rapid.IntRange(-3600_000, 3600_000).Draw(t, "skew")) * time.Millisecond
	}
	return s
}

// Callers come to all replicas, some while an answer is on its way, until each of
// them refuses.
func TestOfABurstTheLimitAndAtMostTheOverdraftIsAdmitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.IntRange(1, 59), rapid.IntRange(60, 150), rapid.IntRange(150, 3000)).Draw(t, "per minute")
		s := newCluster(t, limit)
		admitted := 0
		open := make([]int, len(s.replicas))
		for i := range open {
			open[i] = i
		}
		for len(open) > 0 {
			at := rapid.IntRange(0, len(open)-1).Draw(t, "replica")
			r := &s.replicas[open[at]]
			came := rapid.IntRange(0, limit/8+3).Draw(t, "callers")
			r.waiting += came
			for r.waiting > 0 {
				var d ratelimit.Decision
				var known bool
				r.share, d, known = r.share.Take(s.limit, s.now.Add(r.skew))
				if !known {
					break
				}
				r.waiting--
				if d.Remaining < 0 || d.Remaining > limit-1 || d.Limit != limit {
					t.Fatalf("%+v", d)
				}
				if !d.Allowed {
					open = append(open[:at], open[at+1:]...)
					break
				}
				admitted++
			}
			switch {
			case r.flight != nil:
				r.flight()
			case r.waiting > 0:
				s.send(indexOf(s, r), r.waiting, 0)
			}
		}
		if over := s.limit.Overdraft(); admitted < limit || admitted > limit+over {
			t.Fatalf("%d were admitted of %d a minute over %d replicas, want at most %d more", admitted, limit, len(s.replicas), over)
		}
	})
}

// Tokens that were held for long are those of a time that is past.
func TestHeldTokensAddNothingToALaterBurst(t *testing.T) {
	s := &cluster{limit: ratelimit.Limit{PerMinute: 600}, now: start, replicas: make([]replica, 4)}
	for i := range s.replicas {
		s.call(i, 0)
	}
	s.now = s.now.Add(2 * time.Minute)
	admitted := 0
	for i := range 1000 {
		if s.call(i%4, 0).Allowed {
			admitted++
		}
	}
	if admitted < 600 || admitted > 630 {
		t.Errorf("%d were admitted", admitted)
	}
}

func indexOf(s *cluster, r *replica) int {
	for i := range s.replicas {
		if &s.replicas[i] == r {
			return i
		}
	}
	return -1
}

// What is admitted fills a bucket that holds the limit and the overdraft, and
// runs out at the rate of the limit.
func TestOverMinutesTheRateIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.OneOf(rapid.IntRange(1, 59), rapid.IntRange(60, 400)).Draw(t, "per minute")
		s := newCluster(t, limit)
		most := float64(limit + s.limit.Overdraft())
		var level float64
		pace := rapid.IntRange(1, 4*60_000/limit+1).Draw(t, "pace")
		for range rapid.IntRange(1, 500).Draw(t, "calls") {
			pause := time.Duration(rapid.IntRange(0, pace).Draw(t, "pause")) * time.Millisecond
			s.now = s.now.Add(pause)
			level = max(level-pause.Minutes()*float64(limit), 0)
			latency := time.Duration(rapid.IntRange(0, 20).Draw(t, "latency")) * time.Millisecond
			if s.call(rapid.IntRange(0, len(s.replicas)-1).Draw(t, "replica"), latency).Allowed {
				level++
			}
			if level > most+1e-6 {
				t.Fatalf("%v are in a bucket of %v", level, most)
			}
		}
	})
}

// Unused spare tokens must not use up the limit of a caller who
// keeps to it.
func TestWhoStaysBelowTheLimitIsNeverRefused(t *testing.T) {
	for _, limit := range []int{10, 59, 60, 120, 600, 6000} {
		for _, part := range []int{10, 40, 90} {
			s := &cluster{limit: ratelimit.Limit{PerMinute: limit}, now: start, replicas: make([]replica, 4)}
			calls := 5 * limit * part / 100
			for i := range calls {
				s.now = s.now.Add(5 * time.Minute / time.Duration(calls))
				if d := s.call(i%4, 0); !d.Allowed {
					t.Fatalf("%d a minute: call %d at %d percent of it was refused: %+v", limit, i, part, d)
				}
			}
		}
	}
}

func TestWhoExceedsALargeLimitAsksRarely(t *testing.T) {
	s := &cluster{limit: ratelimit.Limit{PerMinute: 600}, now: start, replicas: make([]replica, 2)}
	admitted := 0
	for i := range 3 * 60 * 100 { // 100 a second
		s.now = s.now.Add(10 * time.Millisecond)
		if s.call(i%2, 0).Allowed {
			admitted++
		}
	}
	if admitted < 4*600-40 || admitted > 4*600+30 {
		t.Errorf("%d were admitted in three minutes", admitted)
	}
	if s.requests > admitted/4 {
		t.Errorf("the state was asked %d times for %d calls", s.requests, admitted)
	}
}

func TestARefusalHasARetryTime(t *testing.T) {
	for _, c := range []struct {
		perMinute int
		wait      time.Duration
	}{{10, 6 * time.Second}, {59, 2 * time.Second}, {60, 2 * time.Second}, {600, time.Second}, {6000, time.Second}} {
		s := &cluster{limit: ratelimit.Limit{PerMinute: c.perMinute}, now: start, replicas: make([]replica, 1)}
		d := s.call(0, 0)
		if d.Remaining != c.perMinute-1 || !d.Allowed {
			t.Errorf("%d a minute: the first call: %+v", c.perMinute, d)
		}
		for d.Allowed {
			d = s.call(0, 0)
		}
		requests := s.requests
		if d.RetryAfter != c.wait || d.Remaining != 0 || !d.ResetAt.Equal(s.state.TAT) {
			t.Errorf("%d a minute: %+v", c.perMinute, d)
		}
		s.now = s.now.Add(c.wait - time.Second)
		if c.wait > 2*time.Second && s.call(0, 0).Allowed || s.requests != requests && c.wait > 2*time.Second {
			t.Errorf("%d a minute: asked again too early", c.perMinute)
		}
		s.now = s.now.Add(time.Second)
		if d = s.call(0, 0); !d.Allowed {
			t.Errorf("%d a minute: after the wait: %+v", c.perMinute, d)
		}
	}
}

func TestAChangedLimitAndAClockSetBackAskAgain(t *testing.T) {
	s := &cluster{limit: ratelimit.Limit{PerMinute: 10}, now: start, replicas: make([]replica, 1)}
	for s.call(0, 0).Allowed {
	}
	s.limit.PerMinute = 600
	if d := s.call(0, 0); !d.Allowed || d.Limit != 600 {
		t.Errorf("a raised limit: %+v", d)
	}
	s.limit.PerMinute = 10
	if d := s.call(0, 0); d.Allowed {
		t.Errorf("a lowered limit uses tokens of the old one: %+v", d)
	}
	requests := s.requests
	s.replicas[0].skew = -time.Hour
	if d := s.call(0, 0); d.Allowed || s.requests != requests+1 || d.RetryAfter > time.Minute {
		t.Errorf("after %d asks: %+v", s.requests-requests, d)
	}
}

func TestAloneTheLimitGoesOn(t *testing.T) {
	limit := ratelimit.Limit{PerMinute: 120}
	s := &cluster{limit: limit, now: start, replicas: make([]replica, 1)}
	for range 21 {
		s.call(0, 0)
	}
	share, n := s.replicas[0].share, 0
	for range 300 {
		var d ratelimit.Decision
		if share, d = share.TakeLocal(limit, start, 1); d.Allowed {
			n++
		}
	}
	if n < 90 || n > 99 {
		t.Errorf("%d more were admitted after 21 of 120", n)
	}
}

func BenchmarkTakeOfAShare(b *testing.B) {
	s := &cluster{limit: ratelimit.Limit{PerMinute: 600_000}, now: start, replicas: make([]replica, 1)}
	b.ReportAllocs()
	for b.Loop() {
		s.now = s.now.Add(time.Millisecond)
		s.call(0, 0)
	}
}
