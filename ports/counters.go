package ports

import "context"

// Tally counts what an agent's sessions went through, ever.
type Tally struct {
	Reported  int64 // events that the agent reported
	Scored    int64 // events that are evidence about an exit, both sources
	Good      int64 // of these, the successes
	Rotations int64
	Bytes     int64 // both directions
}

// Plus adds two tallies.
func (t Tally) Plus(o Tally) Tally {
	return Tally{Reported: t.Reported + o.Reported, Scored: t.Scored + o.Scored, Good: t.Good + o.Good,
		Rotations: t.Rotations + o.Rotations, Bytes: t.Bytes + o.Bytes}
}

// Counters stores one tally for each agent, so that an overview reads no history.
type Counters interface {
	Add(ctx context.Context, agentID string, t Tally) error
	// Get returns the tally of an agent, zero if it did nothing yet.
	Get(ctx context.Context, agentID string) (Tally, error)
}
