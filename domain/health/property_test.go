package health_test

import (
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

var reasons = []health.RotationReason{
	health.RotationHTTP403, health.RotationHTTP429, health.RotationCaptcha, health.RotationTimeout,
	health.RotationBlock, health.RotationScheduled, health.RotationManual,
}

// anyEvent draws an event without a time; blocks and successes are frequent, so
// that streaks and extremes occur.
func anyEvent(t *rapid.T) health.Event {
	kinds := append(health.Types(), health.Block, health.Block, health.Success)
	e := health.Event{Type: rapid.SampledFrom(kinds).Draw(t, "type")}
	if rapid.Bool().Draw(t, "has status") {
		e.StatusCode = rapid.SampledFrom([]int{0, 200, 302, 401, 403, 404, 407, 429, 451, 500, 503, 520, 599}).Draw(t, "status")
	}
	if e.HasLatency = rapid.Bool().Draw(t, "has latency"); e.HasLatency {
		e.LatencyMS = rapid.IntRange(0, health.MaxLatencyMS).Draw(t, "latency")
	}
	e.Host = rapid.SampledFrom([]string{"", "a.test", "b.test", "c.test"}).Draw(t, "host")
	return e
}

// anyHistory draws a session with up to 60 runs of up to 40 equal events,
// rotations among them, and silences up to an hour. Sometimes a clock lags.
func anyHistory(t *rapid.T) *history {
	s := &history{now: start}
	for range rapid.IntRange(0, 60).Draw(t, "runs") {
		if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
			s.state.Rotate(rapid.SampledFrom(reasons).Draw(t, "reason"), s.now)
		}
		e := anyEvent(t)
		seen := rapid.IntRange(0, 3).Draw(t, "source") == 0
		gap := time.Duration(rapid.SampledFrom([]int{0, 0, 10, 1000, 1000, 30_000, 599_999, 600_000, 3_600_000}).Draw(t, "gap")) * time.Millisecond
		for range rapid.IntRange(1, 40).Draw(t, "times") {
			e.At = s.now.Add(-time.Duration(rapid.SampledFrom([]int{0, 0, 0, 5}).Draw(t, "lag")) * time.Second)
			if seen {
				s.state.Observe(e)
			} else {
				s.state.Report(e)
			}
			s.now = s.now.Add(min(gap, time.Second))
		}
		s.now = s.now.Add(gap)
	}
	return s
}

// apply adds an event by a drawn source.
func apply(t *rapid.T, s health.State, e health.Event) health.State {
	if rapid.Bool().Draw(t, "observed") {
		s.Observe(e)
	} else {
		s.Report(e)
	}
	return s
}

// compare checks a claim about the score with and without one more event, read
// at the moment of the event and at a later one.
func compare(t *testing.T, kind health.Type, ok func(without, with int) bool) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		with := apply(t, s.state, health.Event{Type: kind, At: s.now})
		later := time.Duration(rapid.IntRange(0, 1300).Draw(t, "later")) * time.Second
		for _, at := range []time.Time{s.now, s.now.Add(later)} {
			was, is := s.state.Verdict(at, false).HealthScore, with.Verdict(at, false).HealthScore
			if !ok(was, is) {
				t.Fatalf("%s moved the score from %d to %d at %v", kind, was, is, at.Sub(s.now))
			}
		}
	})
}

func TestASuccessNeverLowersTheScore(t *testing.T) {
	compare(t, health.Success, func(without, with int) bool { return with >= without })
}

func TestABlockNeverRaisesTheScore(t *testing.T) {
	compare(t, health.Block, func(without, with int) bool { return with <= without })
}

func TestTheScoreStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		v := s.verdict()
		if v.HealthScore < 0 || v.HealthScore > 100 {
			t.Fatalf("score %d", v.HealthScore)
		}
		if v.SuccessRate < 0 || v.SuccessRate > 1 || v.Confidence < 0 || v.Confidence >= 1 {
			t.Fatalf("success rate %v, confidence %v", v.SuccessRate, v.Confidence)
		}
		if v.RiskLevel != health.RiskOf(v.HealthScore) {
			t.Fatalf("%d is %s", v.HealthScore, v.RiskLevel)
		}
	})
}

func TestSilenceNeverLowersTheScore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		later := s.now.Add(time.Duration(rapid.IntRange(0, 7200).Draw(t, "later")) * time.Second)
		if was, is := s.verdict().HealthScore, s.state.Verdict(later, false).HealthScore; is < was {
			t.Fatalf("silence moved the score from %d to %d", was, is)
		}
	})
}

func TestAReadChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		before := s.state
		s.state.Verdict(s.now.Add(time.Hour), true)
		s.state.Stats()
		s.state.WorstHosts(s.now.Add(time.Hour))
		if s.state != before {
			t.Fatal("a read changed the state")
		}
	})
}

func TestNoMinuteHasMoreThan120ScoredReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s health.State
		var scored []time.Time
		now := start
		for range rapid.IntRange(1, 12).Draw(t, "runs") {
			gap := time.Duration(rapid.IntRange(0, 900).Draw(t, "gap")) * time.Millisecond
			for range rapid.IntRange(1, 100).Draw(t, "times") {
				now = now.Add(gap)
				if s.Report(health.Event{Type: health.Success, At: now}) {
					scored = append(scored, now)
				}
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 62_000).Draw(t, "rest")) * time.Millisecond)
		}
		for i := 120; i < len(scored); i++ {
			if span := scored[i].Sub(scored[i-120]); span <= time.Minute {
				t.Fatalf("121 scored reports within %v", span)
			}
		}
	})
}

func TestReportCap(t *testing.T) {
	scored := func(s *health.State, n int, at time.Time) (count int) {
		for range n {
			if s.Report(health.Event{Type: health.Block, At: at}) {
				count++
			}
		}
		return count
	}
	var s health.State
	if n := scored(&s, 500, start); n != 120 {
		t.Errorf("%d of 500 reports at one moment were scored, want 120", n)
	}
	if n := s.Stats().Session.Reported.TotalEvents; n != 500 {
		t.Errorf("%d reports counted, want all 500", n)
	}
	if n := scored(&s, 500, start.Add(59999*time.Millisecond)); n != 0 {
		t.Errorf("%d reports were scored before the minute was over", n)
	}
	if n := scored(&s, 500, start.Add(61*time.Second)); n != 120 {
		t.Errorf("%d reports were scored in the next minute, want 120", n)
	}
	t.Run("two reports a second for an hour are all scored", func(t *testing.T) {
		var s health.State
		for i := range 7000 {
			at := start.Add(time.Duration(i) * 515 * time.Millisecond) // 117 in 60 to 61 s
			if !s.Report(health.Event{Type: health.Success, At: at}) {
				t.Fatalf("report %d was not scored", i)
			}
		}
	})
	t.Run("what the gateway saw is outside the cap", func(t *testing.T) {
		s := s
		before := s.Verdict(start.Add(61*time.Second), false)
		s.Observe(health.Event{Type: health.Success, At: start.Add(61 * time.Second)})
		if after := s.Verdict(start.Add(61*time.Second), false); after == before {
			t.Error("an observed event was not scored")
		}
	})
	t.Run("a rotation for what came above the cap adds nothing", func(t *testing.T) {
		full := replay(repeat(120, report(1, success), silence(-time.Second)), silence(59*time.Second), report(1, block), silence(2*time.Second))
		other := full.state
		full.state.Rotate(health.RotationBlock, full.now)
		other.Rotate(health.RotationManual, full.now)
		if full.state != other {
			t.Error("the reason was scored")
		}
	})
}
