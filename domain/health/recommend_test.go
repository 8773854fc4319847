package health_test

import (
	"testing"
	"time"

	"agentproxy/domain/health"

	"pgregory.net/rapid"
)

// failing rotates a blocked session three times, a second apart: the score is
// below 60 each time.
func failing() func(*history) {
	return repeat(3, report(5, block), rotate(health.RotationManual))
}

func TestRecommendationRules(t *testing.T) {
	for _, c := range []struct {
		rule   string
		story  *history
		static bool
		advice health.Recommendation
		reason health.Reason
	}{
		{"1: three rotations that did not help ask for a pause", replay(failing()), false, health.Pause, health.RotationNotHelping},
		{"1: two do not", replay(repeat(2, report(5, block), rotate(health.RotationManual)), report(1, block)), false, health.RotateNow, health.BlockRate},
		{"1: it comes before the fresh exit and needs a score below 80", replay(failing(), report(20, success)), false, health.OK, health.Healthy},
		{"1: rotations of more than ten minutes ago are forgotten",
			replay(failing(), silence(10*time.Minute), report(2, block)), false, health.RotateNow, health.BlockRate},
		{"1: rotations above 60 do not count", replay(repeat(3, report(1, block), rotate(health.RotationScheduled)), report(2, block)), false, health.RotateNow, health.BlockRate},
		{"2: nothing happened", replay(), false, health.OK, health.FreshExit},
		{"2: nothing since the rotation, though the score is low", replay(report(10, block), rotate(health.RotationBlock)), false, health.OK, health.FreshExit},
		{"2: custom events do not end the freshness", replay(report(5, custom)), false, health.OK, health.FreshExit},
		{"3: from 80 all is well", replay(report(20, success), report(1, block)), false, health.OK, health.Healthy},
		{"4: rate limiting asks for a pause, not for another exit", replay(report(10, limited)), false, health.Pause, health.RateLimited},
		{"4: half of the weight is enough", replay(report(5, limited, of(health.Timeout))), false, health.Pause, health.RateLimited},
		{"4: less than half is not", replay(report(5, limited, block)), false, health.RotateNow, health.BlockRate},
		{"4: it comes before the rule for static sessions", replay(report(3, limited)), true, health.Pause, health.RateLimited},
		{"5: a static session is fine from 60", replay(report(1, block)), true, health.OK, health.BlockRate},
		{"5: below 60 it is pause", replay(report(2, block)), true, health.Pause, health.BlockRate},
		{"6: from 60 a rotation is worth a thought", replay(report(5, timeout)), false, health.ConsiderRotate, health.NetworkErrors},
		{"7: below 60 it is due", replay(report(2, block)), false, health.RotateNow, health.BlockRate},
	} {
		t.Run(c.rule, func(t *testing.T) {
			v := c.story.state.Verdict(c.story.now, c.static)
			if v.Recommendation != c.advice || v.Reason != c.reason {
				t.Errorf("score %d: %s (%s), want %s (%s)", v.HealthScore, v.Recommendation, v.Reason, c.advice, c.reason)
			}
			if (v.RetryAfterSeconds > 0) != (c.advice == health.Pause) {
				t.Errorf("%s with retry_after_seconds %d", v.Recommendation, v.RetryAfterSeconds)
			}
		})
	}
}

func TestRetryAfterEndsThePauseAndOneSecondLessDoesNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyHistory(t)
		static := rapid.Bool().Draw(t, "static")
		v := s.state.Verdict(s.now, static)
		if v.Recommendation != health.Pause {
			if v.RetryAfterSeconds != 0 {
				t.Fatalf("%s with retry_after_seconds %d", v.Recommendation, v.RetryAfterSeconds)
			}
			return
		}
		wait := time.Duration(v.RetryAfterSeconds) * time.Second
		if v.RetryAfterSeconds < 1 || v.RetryAfterSeconds > 3600 {
			t.Fatalf("retry_after_seconds %d, want 1 to 3600", v.RetryAfterSeconds)
		}
		if after := s.state.Verdict(s.now.Add(wait), static); after.Recommendation == health.Pause {
			t.Fatalf("still paused after %v: %+v", wait, after)
		}
		if before := s.state.Verdict(s.now.Add(wait-time.Second), static); before.Recommendation != health.Pause {
			t.Fatalf("a second before the end of %v: %+v", wait, before)
		}
	})
}

func TestARotationsReasonIsEvidence(t *testing.T) {
	at := func(steps ...func(*history)) health.State { return replay(steps...).state }
	for _, c := range []struct {
		claim string
		with  health.State
		same  bool // as without the reason
		bare  health.State
	}{
		{"block counts", at(report(3, success), rotate(health.RotationBlock)), false, at(report(3, success), rotate(health.RotationManual))},
		{"http_403 counts", at(report(3, success), rotate(health.RotationHTTP403)), false, at(report(3, success), rotate(health.RotationManual))},
		{"captcha counts", at(report(3, success), rotate(health.RotationCaptcha)), false, at(report(3, success), rotate(health.RotationManual))},
		{"http_429 counts", at(report(3, success), rotate(health.RotationHTTP429)), false, at(report(3, success), rotate(health.RotationManual))},
		{"timeout counts", at(report(3, success), rotate(health.RotationTimeout)), false, at(report(3, success), rotate(health.RotationManual))},
		{"scheduled does not", at(report(3, success), rotate(health.RotationScheduled)), true, at(report(3, success), rotate(health.RotationManual))},
		{"a report of its kind ten seconds ago counted already",
			at(report(1, block), silence(9*time.Second), rotate(health.RotationCaptcha)), true, at(report(1, block), silence(9*time.Second), rotate(health.RotationManual))},
		{"a report of its kind eleven seconds ago did not",
			at(report(1, block), silence(10*time.Second), rotate(health.RotationBlock)), false, at(report(1, block), silence(10*time.Second), rotate(health.RotationManual))},
		{"what the gateway observed counted too", at(observe(1, timeout), rotate(health.RotationTimeout)), true, at(observe(1, timeout), rotate(health.RotationManual))},
		{"a report of another kind did not", at(report(1, block), rotate(health.RotationHTTP429)), false, at(report(1, block), rotate(health.RotationManual))},
		{"reported twice within ten seconds it counts once",
			at(rotate(health.RotationBlock), rotate(health.RotationBlock)), true, at(rotate(health.RotationBlock), rotate(health.RotationManual))},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if (c.with == c.bare) != c.same {
				t.Errorf("same as without a reason: %v, want %v", !c.same, c.same)
			}
		})
	}
	t.Run("it is scored and not counted as a report", func(t *testing.T) {
		s := replay(report(1, success), rotate(health.RotationBlock))
		if v := s.verdict(); v.SuccessRate != 0.5 {
			t.Errorf("success rate %v, want 0.5", v.SuccessRate)
		}
		if n := s.state.Stats().Session.Reported.TotalEvents; n != 1 {
			t.Errorf("%d events reported, want 1", n)
		}
	})
}
