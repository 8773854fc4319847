package health_test

import (
	"fmt"
	"testing"
	"time"

	"agentproxy/domain/health"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// history is a session to which one thing happens a second.
type history struct {
	state health.State
	now   time.Time
}

func replay(steps ...func(*history)) *history {
	s := &history{now: start}
	for _, step := range steps {
		step(s)
	}
	return s
}

func report(n int, events ...health.Event) func(*history) {
	return func(s *history) {
		for range n {
			for _, e := range events {
				s.now = s.now.Add(time.Second)
				e.At = s.now
				s.state.Report(e)
			}
		}
	}
}

func observe(n int, e health.Event) func(*history) {
	return func(s *history) {
		for range n {
			s.now = s.now.Add(time.Second)
			e.At = s.now
			s.state.Observe(e)
		}
	}
}

func rotate(why health.RotationReason) func(*history) {
	return func(s *history) {
		s.now = s.now.Add(time.Second)
		s.state.Rotate(why, s.now)
	}
}

func silence(d time.Duration) func(*history) { return func(s *history) { s.now = s.now.Add(d) } }

func repeat(n int, steps ...func(*history)) func(*history) {
	return func(s *history) {
		for range n {
			for _, step := range steps {
				step(s)
			}
		}
	}
}

func (s *history) verdict() health.Verdict { return s.state.Verdict(s.now, false) }

func of(t health.Type) health.Event { return health.Event{Type: t} }

func status(code int) health.Event { return health.Event{Type: health.HTTPError, StatusCode: code} }

var (
	success = of(health.Success)
	block   = of(health.Block)
	limited = of(health.RateLimit)
	timeout = of(health.Timeout)
	custom  = of(health.Custom)
)

func TestVectors(t *testing.T) {
	for _, c := range []struct {
		history string
		story   *history
		score   int
		risk    health.Risk
		advice  health.Recommendation
	}{
		{"nothing", replay(), 100, health.Low, health.OK},
		{"20 success", replay(report(20, success)), 100, health.Low, health.OK},
		{"5 custom", replay(report(5, custom)), 100, health.Low, health.OK},
		{"1 block", replay(report(1, block)), 75, health.Medium, health.ConsiderRotate},
		{"2 block", replay(report(2, block)), 55, health.High, health.RotateNow},
		{"5 block", replay(report(5, block)), 19, health.Critical, health.RotateNow},
		{"20 success, 1 block", replay(report(20, success), report(1, block)), 95, health.Low, health.OK},
		{"20 success, 5 block", replay(report(20, success), report(5, block)), 57, health.High, health.RotateNow},
		{"3 rate_limit", replay(report(3, limited)), 70, health.Medium, health.Pause},
		{"5 timeout", replay(report(5, timeout)), 69, health.Medium, health.ConsiderRotate},
		{"(9 success, 1 block) × 10", replay(repeat(10, report(9, success), report(1, block))), 90, health.Low, health.OK},
		{"5 block, 20 success", replay(report(5, block), report(20, success)), 88, health.Low, health.OK},
		{"10 block, 30 minutes of silence", replay(report(10, block), silence(30*time.Minute)), 73, health.Medium, health.ConsiderRotate},
		{"5 block, rotate, 5 success", replay(report(5, block), rotate(health.RotationManual), report(5, success)), 88, health.Low, health.OK},
	} {
		t.Run(c.history, func(t *testing.T) {
			v := c.story.verdict()
			if v.HealthScore != c.score || v.RiskLevel != c.risk || v.Recommendation != c.advice {
				t.Errorf("%d %s %s, want %d %s %s", v.HealthScore, v.RiskLevel, v.Recommendation, c.score, c.risk, c.advice)
			}
		})
	}
}

// One event of cost c costs 25·c points: B/(W+3) is c/4.
func TestEachEventHasTheWeightOfTheTable(t *testing.T) {
	for _, c := range []struct {
		event  health.Event
		score  int
		reason health.Reason // below 80 only
	}{
		{success, 100, ""}, {block, 75, health.BlockRate}, {of(health.Captcha), 78, health.BlockRate},
		{limited, 85, ""}, {timeout, 88, ""}, {custom, 100, ""},
		{status(0), 88, ""}, {status(302), 100, ""}, {status(400), 100, ""}, {status(404), 100, ""}, {status(499), 100, ""},
		{status(401), 93, ""}, {status(403), 78, health.BlockRate}, {status(407), 100, ""},
		{status(429), 85, ""}, {status(451), 88, ""},
		{status(500), 91, ""}, {status(503), 91, ""}, {status(519), 91, ""},
		{status(520), 88, ""}, {status(527), 88, ""}, {status(528), 91, ""}, {status(599), 91, ""},
	} {
		t.Run(fmt.Sprintf("%s %d", c.event.Type, c.event.StatusCode), func(t *testing.T) {
			v := replay(report(1, c.event)).verdict()
			if v.HealthScore != c.score {
				t.Errorf("score %d, want %d", v.HealthScore, c.score)
			}
			if c.reason != "" && v.Reason != c.reason {
				t.Errorf("reason %s, want %s", v.Reason, c.reason)
			}
		})
	}
}

func TestTheReasonNamesTheCauseThatWeighsMost(t *testing.T) {
	for _, c := range []struct {
		event health.Event
		want  health.Reason
	}{
		{block, health.BlockRate}, {status(403), health.BlockRate}, {status(451), health.BlockRate},
		{limited, health.RateLimited}, {status(429), health.RateLimited},
		{timeout, health.NetworkErrors}, {status(0), health.NetworkErrors}, {status(522), health.NetworkErrors},
		{status(500), health.TargetErrors}, {status(401), health.TargetErrors},
	} {
		v := replay(report(20, c.event)).verdict()
		if v.Reason != c.want {
			t.Errorf("20 × %s %d: reason %s, want %s", c.event.Type, c.event.StatusCode, v.Reason, c.want)
		}
	}
}

func TestStreak(t *testing.T) {
	score := func(steps ...func(*history)) int { return replay(steps...).verdict().HealthScore }
	ten := 10 * time.Minute
	for _, c := range []struct {
		claim string
		got   int
		want  int
	}{
		{"a timeout between two blocks neither extends nor breaks it", score(report(1, block, timeout, block)), 54},
		{"a success breaks it", score(report(1, block, success, block)), 67},
		{"a custom event does not break it", score(report(1, block, custom, block)), 55},
		{"it lasts through 599 s of silence", score(report(2, block), silence(ten-time.Second)), 70},
		{"600 s of silence clear it", score(report(2, block), silence(ten)), 75},
		{"a rotation clears it", score(report(2, block), rotate(health.RotationManual), report(1, block)), 67},
		{"its sixth event costs no more points than the fifth", score(report(200, success), report(6, block)), 64},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("score %d, want %d", c.got, c.want)
			}
		})
	}
	t.Run("a block after 600 s of silence is the first of a new one", func(t *testing.T) {
		late := replay(report(5, block), silence(ten), report(1, block))
		one := late.state
		one.Report(health.Event{Type: health.Block, At: late.now})
		if drop := late.verdict().HealthScore - one.Verdict(late.now, false).HealthScore; drop < 5 {
			t.Errorf("the second block costs %d points, want its weight and 5", drop)
		}
	})
}

func TestAReadBeforeTheLastEventReadsAsThatEvent(t *testing.T) {
	s := replay(report(5, block))
	if got, want := s.state.Verdict(s.now.Add(-time.Hour), false), s.verdict(); got != want {
		t.Errorf("an hour before: %+v, want %+v", got, want)
	}
}

func TestTimeNeverRunsBackwards(t *testing.T) {
	s := replay(report(5, block))
	late, onTime := s.state, s.state
	late.Report(health.Event{Type: health.Block, At: s.now.Add(-time.Hour)})
	onTime.Report(health.Event{Type: health.Block, At: s.now})
	if late != onTime {
		t.Error("an event of an hour ago is not taken as of the last one")
	}
}

func TestUnscoredEventsChangeCountersOnly(t *testing.T) {
	s := replay(report(3, block), silence(5*time.Minute))
	before := s.verdict()
	s.state.Report(health.Event{Type: health.Custom, At: s.now})
	s.state.Report(health.Event{Type: health.HTTPError, StatusCode: 407, At: s.now})
	if got := s.verdict(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
	if n := s.state.Stats().Session.Reported.TotalEvents; n != 5 {
		t.Errorf("%d events counted, want 5", n)
	}
}

func TestSuccessRateAndConfidence(t *testing.T) {
	fresh := replay().verdict()
	if fresh.SuccessRate != 1 || fresh.Confidence != 0 {
		t.Errorf("fresh: rate %v confidence %v, want 1 and 0", fresh.SuccessRate, fresh.Confidence)
	}
	v := replay(report(2, success), report(1, custom), rotate(health.RotationManual), observe(1, timeout), report(1, status(404))).verdict()
	if v.SuccessRate != 0.75 {
		t.Errorf("success rate %v, want 0.75: both sources, since the session began", v.SuccessRate)
	}
	if one := replay(report(1, success)).verdict(); one.Confidence != 0.25 {
		t.Errorf("confidence %v after one event, want 0.25", one.Confidence)
	}
}

func TestLevelNeedsFivePointsPastTheBorder(t *testing.T) {
	for _, c := range []struct {
		prev  health.Risk
		score int
		want  health.Risk
	}{
		{"", 100, health.Low}, {"", 76, health.Low}, {"", 75, health.Medium},
		{health.Low, 76, health.Low}, {health.Low, 75, health.Medium}, {health.Low, 57, health.Medium},
		{health.Low, 55, health.High}, {health.Low, 31, health.High}, {health.Low, 30, health.Critical}, {health.Low, 0, health.Critical},
		{health.Medium, 84, health.Medium}, {health.Medium, 85, health.Low}, {health.Medium, 56, health.Medium}, {health.Medium, 55, health.High},
		{health.High, 64, health.High}, {health.High, 65, health.Medium}, {health.High, 82, health.Medium}, {health.High, 85, health.Low},
		{health.Critical, 39, health.Critical}, {health.Critical, 40, health.High}, {health.Critical, 100, health.Low},
	} {
		if got := health.Level(c.prev, c.score); got != c.want {
			t.Errorf("Level(%q, %d) = %s, want %s", c.prev, c.score, got, c.want)
		}
	}
}

func TestAnnounceReportsEachCrossingOnce(t *testing.T) {
	s := replay(report(1, block)) // 75
	if from, to, changed := s.state.Announce(s.now); !changed || from != health.Low || to != health.Medium {
		t.Errorf("%s to %s, changed %v; want low to medium", from, to, changed)
	}
	if _, _, changed := s.state.Announce(s.now); changed {
		t.Error("the same level was announced twice")
	}
}
