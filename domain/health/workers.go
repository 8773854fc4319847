package health

import "time"

// WorkerCount counts the workers of a session.
type WorkerCount struct {
	Total  int
	AtRisk int // whose risk level is high or critical
}

// VerdictWith is like Verdict of a session with workers. As soon as one of them was used the
// score is the mean of the session's own exit and of its workers, weighted by their scored events
// since their last rotation, and level and recommendation follow from it.
func (s *State) VerdictWith(now time.Time, static bool, workers []*State) (Verdict, WorkerCount) {
	v := s.Verdict(now, static)
	count := WorkerCount{Total: len(workers)}
	points, events, used := int64(v.HealthScore)*int64(s.exit.scored), int64(s.exit.scored), false
	for _, w := range workers {
		one := w.Verdict(now, static)
		if one.RiskLevel == High || one.RiskLevel == Critical {
			count.AtRisk++
		}
		used = used || w.exit.scored+w.past.scored > 0
		points, events = points+int64(one.HealthScore)*int64(w.exit.scored), events+int64(w.exit.scored)
	}
	if !used || events == 0 {
		return v, count
	}
	v.HealthScore = int((points + events/2) / events)
	v.RiskLevel, v.RetryAfterSeconds = RiskOf(v.HealthScore), 0
	switch v.RiskLevel {
	case Low:
		v.Recommendation, v.Reason = OK, Healthy
	case Medium:
		v.Recommendation = ConsiderRotate
	default:
		v.Recommendation = RotateNow
	}
	if v.Recommendation != OK && (v.Reason == Healthy || v.Reason == FreshExit) {
		v.Reason = worstReason(now, workers)
	}
	return v, count
}

// worstReason returns the reason of the worker with the lowest score.
func worstReason(now time.Time, workers []*State) Reason {
	worst, reason := 101, Healthy
	for _, w := range workers {
		at := w.weightsAt(microsOf(now))
		if w.exit.scored > 0 && at.score() < worst {
			worst, reason = at.score(), reasonOf[at.worst()]
		}
	}
	return reason
}
