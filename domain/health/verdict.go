package health

import (
	"slices"
	"sort"
	"time"
)

// Risk is the risk level of a session, in the words of the public API.
type Risk string

// The risk levels.
const (
	Low      Risk = "low"
	Medium   Risk = "medium"
	High     Risk = "high"
	Critical Risk = "critical"
)

// Risks lists the levels from the best to the worst.
var Risks = []Risk{Low, Medium, High, Critical}

// RiskOf returns the level of a score.
func RiskOf(score int) Risk {
	switch {
	case score >= lowFrom:
		return Low
	case score >= mediumFrom:
		return Medium
	case score >= highFrom:
		return High
	}
	return Critical
}

// Level returns the level to announce for a score when prev was announced last: a
// border counts as crossed once the score is five points past it, so webhooks
// do not flap. A session of which nothing was announced (empty) was low.
func Level(prev Risk, score int) Risk {
	from := max(slices.Index(Risks, prev), 0)
	if worse := RiskOf(score + hysteresis - 1); slices.Index(Risks, worse) > from {
		return worse
	}
	if better := RiskOf(score - hysteresis); slices.Index(Risks, better) < from {
		return better
	}
	return Risks[from]
}

// Announce moves the announced level to Level(announced, the score now) and
// reports whether it changed: then a webhook is due.
func (s *State) Announce(now time.Time) (from, to Risk, changed bool) {
	from = Risks[s.announced]
	to = Level(from, s.weightsAt(microsOf(now)).score())
	s.announced = uint8(slices.Index(Risks, to))
	return from, to, from != to
}

// Recommendation is what the agent should do next, in the words of the public
// API.
type Recommendation string

// The recommendations.
const (
	OK             Recommendation = "ok"
	ConsiderRotate Recommendation = "consider_rotate"
	RotateNow      Recommendation = "rotate_now"
	Pause          Recommendation = "pause"
)

// Recommendations lists every recommendation.
var Recommendations = []Recommendation{OK, ConsiderRotate, RotateNow, Pause}

// Reason is the basis of a recommendation, as named in the public API.
type Reason string

// The reasons. The first four name the cause that weighs most.
const (
	BlockRate          Reason = "block_rate"
	RateLimited        Reason = "rate_limited"
	NetworkErrors      Reason = "network_errors"
	TargetErrors       Reason = "target_errors"
	FreshExit          Reason = "fresh_exit"
	RotationNotHelping Reason = "rotation_not_helping"
	Healthy            Reason = "healthy"
)

// Reasons lists every reason.
var Reasons = []Reason{BlockRate, RateLimited, NetworkErrors, TargetErrors, FreshExit, RotationNotHelping, Healthy}

var reasonOf = [worked]Reason{BlockRate, RateLimited, NetworkErrors, TargetErrors}

// Verdict is the evaluation of a State at one moment.
type Verdict struct {
	HealthScore       int     // 0 to 100
	SuccessRate       float64 // 0 to 1, since the session began
	RiskLevel         Risk
	Recommendation    Recommendation
	Reason            Reason
	Confidence        float64 // 0 to 1
	RetryAfterSeconds int     // until the pause ends if nothing more happens; 0 unless Pause
}

// Verdict evaluates the session at a moment; a moment before the last scored
// event is taken as that event's. A static session cannot rotate, so a rotation
// is not recommended for it.
func (s *State) Verdict(now time.Time, static bool) Verdict {
	at := microsOf(now)
	w := s.weightsAt(at)
	v := Verdict{
		HealthScore: w.score(),
		SuccessRate: s.successRate(),
		RiskLevel:   RiskOf(w.score()),
		Confidence:  w.confidence(),
	}
	v.Recommendation, v.Reason = s.recommend(at, static)
	if v.Recommendation == Pause {
		v.RetryAfterSeconds = s.pauseLeft(at, static)
	}
	return v
}

// recommend applies the rules of docs/health.md; the first that fits decides.
func (s *State) recommend(at micros, static bool) (Recommendation, Reason) {
	w := s.weightsAt(at)
	score := w.score()
	reason := reasonOf[w.worst()]
	switch {
	case s.rotationFails(at) && score < lowFrom:
		return Pause, RotationNotHelping
	case s.exit.scored == 0:
		return OK, FreshExit
	case score >= lowFrom:
		return OK, Healthy
	case w.bad[causeRate] >= rateLimitedShare*w.badness():
		return Pause, RateLimited
	case static && score >= mediumFrom:
		return OK, reason
	case static:
		return Pause, reason
	case score >= mediumFrom:
		return ConsiderRotate, reason
	}
	return RotateNow, reason
}

// rotationFails reports whether the last three rotations that did not help fell
// within the window.
func (s *State) rotationFails(at micros) bool {
	oldest := s.unhelpful[0]
	return oldest != 0 && at-oldest <= unhelpfulWindow
}

// pauseLeft returns how many seconds of silence end a pause, at least 1. Silence only
// raises the score and moves rotations out of the window, so a pause that ended
// does not come back and the search is sound.
func (s *State) pauseLeft(at micros, static bool) int {
	return 1 + sort.Search(maxPauseSeconds, func(i int) bool {
		advice, _ := s.recommend(at+micros(i+1)*second, static)
		return advice != Pause
	})
}

// successRate returns the share of scored events that cost nothing, of both sources,
// since the session began; 1 when there is none.
func (s *State) successRate() float64 {
	scored := s.past.scored + s.exit.scored
	if scored == 0 {
		return 1
	}
	return float64(s.past.good+s.exit.good) / float64(scored)
}
