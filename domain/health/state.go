package health

import (
	"math"
	"slices"
	"time"
)

// State is the health of one session: constant in size, comparable with ==, and
// a fresh session when zero. It is not safe for concurrent use.
type State struct {
	Summary                  // the weights as they stood when the last event was scored, and when that was
	lastOf    [worked]micros // when evidence of each cause last came, scored or above the cap
	unhelpful [unhelpfulMax]micros
	announced uint8 // the level last announced, as an index of Risks
	rotations uint64
	recent    reportCap
	past      tally // before the last rotation
	exit      tally // since
	hosts     hostTable
}

// weights is the evidence that the score is made of.
type weights struct {
	bad    [worked]float64 // B, by cause
	all    float64         // W
	streak uint8           // bad events in a row, at most streakMax
}

// Report counts and scores an event that the agent reported. It returns false
// if e was only counted: its type is not scored, or reportsPerMinute were
// scored in the last minute.
func (s *State) Report(e Event) bool {
	at := s.moment(e.At)
	s.exit.reported.add(e, at)
	if e.HasLatency {
		s.exit.latency.add(e.LatencyMS)
	}
	found, ok := e.evidence()
	return ok && s.scoreReport(found, e.Host, at)
}

// Observe counts and scores an event of the gateway that no report can match
// any more.
func (s *State) Observe(e Event) {
	at := s.moment(e.At)
	s.exit.observed.add(e, at)
	if found, ok := e.evidence(); ok {
		s.score(found, e.Host, at)
	}
}

// ObserveMatched counts an event of the gateway that a report matched. The two
// are one piece of evidence and the cost of the report counts, so it scores
// nothing.
func (s *State) ObserveMatched(e Event) { s.exit.observed.add(e, s.moment(e.At)) }

// RotationReason is why an exit was changed, as named in the public API.
type RotationReason string

// The rotation reasons.
const (
	RotationHTTP403   RotationReason = "http_403"
	RotationHTTP429   RotationReason = "http_429"
	RotationCaptcha   RotationReason = "captcha"
	RotationTimeout   RotationReason = "timeout"
	RotationBlock     RotationReason = "block"
	RotationScheduled RotationReason = "scheduled"
	RotationManual    RotationReason = "manual" // the default
)

// RotationReasons lists every reason.
var RotationReasons = []RotationReason{RotationHTTP403, RotationHTTP429, RotationCaptcha, RotationTimeout,
	RotationBlock, RotationScheduled, RotationManual}

// Valid reports whether r is one of RotationReasons.
func (r RotationReason) Valid() bool { return slices.Contains(RotationReasons, r) }

// evidence returns the evidence that a reason is equal to, or false if it is
// none.
func (r RotationReason) evidence() (evidence, bool) {
	switch r {
	case RotationBlock, RotationHTTP403, RotationCaptcha:
		return blocked, true
	case RotationHTTP429:
		return rateLimited, true
	case RotationTimeout:
		return noAnswer, true
	}
	return evidence{}, false
}

// Rotate records that the session got another exit. The reason is evidence
// against the old one, unless evidence of its cause was recorded in the last
// ten seconds. It counts against the limit of reports.
func (s *State) Rotate(reason RotationReason, now time.Time) {
	at := s.moment(now)
	if found, ok := reason.evidence(); ok {
		if last := s.lastOf[found.cause]; last == 0 || at-last > rotationEchoes {
			s.scoreReport(found, "", at)
		}
	}
	if s.weightsAt(at).score() < unhelpfulBelow {
		copy(s.unhelpful[:], s.unhelpful[1:])
		s.unhelpful[unhelpfulMax-1] = at
	}
	s.weights.scale(rotationKeeps)
	s.hosts.scale(rotationKeeps)
	s.streak = 0
	s.rotations++
	s.past.merge(&s.exit)
	s.exit = tally{}
}

// moment returns a time of receipt that is not before the last scored event,
// whatever the difference between the clocks of two replicas.
func (s *State) moment(t time.Time) micros { return max(microsOf(t), s.lastAt) }

// scoreReport scores reported evidence within the limit of reports in a minute.
// Evidence above the limit is recorded, so that a rotation for it adds
// nothing either.
func (s *State) scoreReport(found evidence, host string, at micros) bool {
	if !s.recent.countReport(at) {
		s.remember(found, at)
		return false
	}
	s.score(found, host, at)
	return true
}

// score adds one piece of evidence at a moment.
func (s *State) score(found evidence, host string, at micros) {
	s.remember(found, at)
	left := decay(at - s.lastAt)
	s.weights = s.weightsAt(at)
	s.weights.add(found)
	s.hosts.scale(left * fade)
	s.hosts.add(host, found.cost)
	s.lastAt = at
	s.exit.scored++
	if found.cost == 0 {
		s.exit.good++
	}
}

func (s *State) remember(found evidence, at micros) {
	if found.cause != worked {
		s.lastOf[found.cause] = at
	}
}

func (w *weights) scale(by float64) {
	for i := range w.bad {
		w.bad[i] = scaled(w.bad[i], by)
	}
	w.all = scaled(w.all, by)
}

// add gives the newest event its full weight and those before it a little less.
// Of the events between good and very bad the streak takes no notice.
func (w *weights) add(found evidence) {
	w.scale(fade)
	w.all++
	switch {
	case found.cost == 0:
		w.streak = 0
		return
	case found.cost >= streakCost:
		w.streak = min(w.streak+1, streakMax)
	}
	w.bad[found.cause] += found.cost
}

// badness returns B, the bad weight that the score is made from.
func (w weights) badness() float64 {
	return w.bad[causeBlock] + w.bad[causeRate] + w.bad[causeNet] + w.bad[causeTarget]
}

// confidence returns 0 without evidence and approaches 1 with it.
func (w weights) confidence() float64 { return w.all / (w.all + prior) }

// score returns the health score, 0 to 100. The last term of the rounding keeps a
// half that binary floating point missed by a hair.
func (w weights) score() int {
	points := 100 - 100*w.badness()/(w.all+prior)
	if w.streak > 1 {
		points -= streakPoints * float64(w.streak-1)
	}
	return int(math.Floor(min(max(points, 0), 100) + 0.5 + 1e-9))
}

// worst returns the cause with the most bad weight.
func (w weights) worst() cause {
	most := causeBlock
	for c := causeRate; c < worked; c++ {
		if w.bad[c] > w.bad[most] {
			most = c
		}
	}
	return most
}
