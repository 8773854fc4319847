package health

import "time"

// Glance is the part of a State that its risk follows from. A list of many sessions reads no more
// than that.
type Glance struct {
	weights
	lastAt micros
}

// GlanceSize is how many of the first bytes of an encoded State hold its Glance, in bytes.
const GlanceSize = 64

// ReadGlance reads the Glance of an encoded State, of which data has the first GlanceSize bytes at
// least, or all if it is shorter. All else is ErrCorrupt.
func ReadGlance(data []byte) (g Glance, err error) {
	r := reader{rest: data}
	version := r.byte(encodingVersion)
	r.require(version == encodingVersion)
	g.read(&r)
	if r.failed {
		return Glance{}, ErrCorrupt
	}
	return g, nil
}

// read reads what an encoded State begins with. The announced level is not part of a Glance.
func (g *Glance) read(r *reader) (announced uint8) {
	announced = r.byte(uint8(len(Risks) - 1))
	g.streak = r.byte(streakMax)
	g.weights.read(r)
	g.lastAt = r.micros()
	return announced
}

// weightsAt decays the weights to a moment; one before lastAt reads as lastAt.
func (g Glance) weightsAt(at micros) weights {
	w := g.weights
	w.scale(decay(at - g.lastAt))
	if at-g.lastAt >= streakSilence {
		w.streak = 0
	}
	return w
}

// Risk returns the risk level at a moment, as Verdict has it.
func (g Glance) Risk(now time.Time) Risk { return RiskOf(g.weightsAt(microsOf(now)).score()) }

// LastAt returns when the last event was scored, zero if none was.
func (g Glance) LastAt() time.Time { return g.lastAt.time() }
