package health

import "time"

// Summary is the part of a State that its risk follows from. A list of many sessions reads no more
// than that.
type Summary struct {
	weights
	lastAt micros
}

// SummarySize is how many of the first bytes of an encoded State hold its Summary, in bytes.
const SummarySize = 64

// DecodeSummary reads the Summary of an encoded State, of which data has the first SummarySize bytes at
// least, or all if it is shorter. All else is ErrCorrupt.
func DecodeSummary(data []byte) (g Summary, err error) {
	r := reader{rest: data}
	version := r.byte(encodingVersion)
	r.require(version == encodingVersion)
	g.read(&r)
	if r.failed {
		return Summary{}, ErrCorrupt
	}
	return g, nil
}

// read reads what an encoded State begins with. The announced level is not part of a Summary.
func (s *Summary) read(r *reader) (announced uint8) {
	announced = r.byte(uint8(len(Risks) - 1))
	s.streak = r.byte(streakMax)
	s.weights.read(r)
	s.lastAt = r.micros()
	return announced
}

// weightsAt decays the weights to a moment; one before lastAt reads as lastAt.
func (s Summary) weightsAt(at micros) weights {
	w := s.weights
	w.scale(decay(at - s.lastAt))
	if at-s.lastAt >= streakSilence {
		w.streak = 0
	}
	return w
}

// Risk returns the risk level at a moment, as Verdict has it.
func (s Summary) Risk(now time.Time) Risk { return RiskOf(s.weightsAt(microsOf(now)).score()) }

// LastAt returns when the last event was scored, zero if none was.
func (s Summary) LastAt() time.Time { return s.lastAt.time() }
