package health

import (
	"math"
	"time"
)

// micros is a Unix time or a span in microseconds, the precision of our clock.
// As a time, 0 means never. An integer keeps State comparable and small.
type micros int64

const (
	second micros = 1_000_000
	minute        = 60 * second

	// lastMoment is the end of the year 9999; later times are taken as it.
	lastMoment micros = 253_402_300_799 * second
)

// The constants of the score (docs/health.md). They are all here.
const (
	halfLife      = 10 * minute // time in which evidence loses half its weight
	streakSilence = 10 * minute // silence that clears a streak

	fade  = 0.97 // what each scored event leaves of the weight of those before it
	prior = 3.0  // weight of the good events that a score starts with

	streakCost   = 0.8 // an event that costs this much or more extends a streak
	streakPoints = 5   // points off for each event of a streak after the first
	streakMax    = 5   // a longer streak costs no more

	lowFrom    = 80 // risk_level: low from here,
	mediumFrom = 60 // medium from here,
	highFrom   = 35 // high from here, critical below
	hysteresis = 5  // points past a border before a webhook is sent

	rotationKeeps    = 0.25        // what a rotation leaves of all weights
	unhelpfulBelow   = 60          // a rotation at a lower score did not help
	unhelpfulMax     = 3           // number of those
	unhelpfulWindow  = 10 * minute // within this time ask for a pause
	rotationEchoes   = 10 * second // a reason adds nothing to evidence this recent
	rateLimitedShare = 0.5         // share of the bad weight from which rate limiting asks for a pause

	reportsPerMinute = 120 // scored reports of a session in a sliding minute

	maxPauseSeconds = 3600 // no pause is longer: any score is 80 after 3,300 s of silence
)

// maxWeight bounds every weight: the sum of all powers of fade, and room for
// rounding.
const maxWeight = 1/(1-fade) + 1e-6

// negligible weights are taken as 0: below it floating point gets slow, and far
// below it no score changes.
const negligible = 1e-12

// scaled returns a weight multiplied by a factor.
func scaled(weight, by float64) float64 {
	if weight *= by; weight < negligible {
		return 0
	}
	return weight
}

// cause is whose fault a bad event can be.
type cause uint8

// The causes, in the order in which the first of equals is named. worked is the
// cause of what cost nothing.
const (
	causeBlock cause = iota
	causeRate
	causeNet
	causeTarget
	worked
)

// evidence is the cost of one event, 0 (the exit worked) to 1, and its cause.
type evidence struct {
	cost  float64
	cause cause
}

// The table of costs (docs/health.md), by kind of evidence.
var (
	exitWorked     = evidence{0, worked}
	blocked        = evidence{1.0, causeBlock}
	challenged     = evidence{0.9, causeBlock} // a captcha, or 403
	rateLimited    = evidence{0.6, causeRate}
	noAnswer       = evidence{0.5, causeNet}
	legallyBlocked = evidence{0.5, causeBlock}
	originUnseen   = evidence{0.5, causeNet} // 520 to 527: the target's CDN could not reach it
	targetFailed   = evidence{0.35, causeTarget}
	unauthorized   = evidence{0.3, causeTarget}
)

// evidence returns the evidence of e, or false if e is not scored.
func (e Event) evidence() (evidence, bool) {
	switch e.Type {
	case Success:
		return exitWorked, true
	case Block:
		return blocked, true
	case Captcha:
		return challenged, true
	case RateLimit:
		return rateLimited, true
	case Timeout:
		return noAnswer, true
	case HTTPError:
		return statusEvidence(e.StatusCode)
	}
	return evidence{}, false
}

// statusEvidence returns the evidence of an http_error. A status below 400 came
// from the target, so the exit worked; 407 is sent by the gateway itself.
func statusEvidence(code int) (evidence, bool) {
	switch {
	case code <= 0:
		return noAnswer, true
	case code == 407:
		return evidence{}, false
	case code == 401:
		return unauthorized, true
	case code == 403:
		return challenged, true
	case code == 429:
		return rateLimited, true
	case code == 451:
		return legallyBlocked, true
	case code >= 520 && code <= 527:
		return originUnseen, true
	case code >= 500:
		return targetFailed, true
	}
	return exitWorked, true
}

// microsOf returns t as micros, within 0 and lastMoment.
func microsOf(t time.Time) micros { return min(max(micros(t.UnixMicro()), 0), lastMoment) }

// time returns the moment in UTC, the zero time for never.
func (m micros) time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// decay returns the factor by which weights shrink in a time without events.
func decay(silence micros) float64 {
	if silence <= 0 {
		return 1
	}
	return math.Exp2(-float64(silence) / float64(halfLife))
}
