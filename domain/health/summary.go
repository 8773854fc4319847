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
func (g *Summary) read(r *reader) (announced uint8) {
	announced = r.byte(uint8(len(Risks) - 1))
	g.streak = r.byte(streakMax)
	g.weights.read(r)
	g.lastAt = r.micros()
	return announced
}

// weightsAt decays the weights to a moment; one before lastAt reads as lastAt.
func (g Summary) weightsAt(at micros) weights {
	w := g.weights
	w.scale(decay(at - g.lastAt))
	if at-g.lastAt >= streakSilence {
		w.streak = 0
	}
	return w
}

// Risk returns the risk level at a moment, as Verdict has it.
func (g Summary) Risk(now time.Time) Risk { return RiskOf(g.weightsAt(microsOf(now)).score()) }

// LastAt returns when the last event was scored, zero if none was.
func (g Summary) LastAt() time.Time { return g.lastAt.time() }
