package maintenance

import (
	"context"
	"log/slog"
	"time"

	"agentproxy/ports"
)

// Proof proves the ledger in the background. The result is in the database, so that every replica
// shows it, whichever proved.
type Proof struct {
	audit ports.Audit
	clock ports.Clock
	log   *slog.Logger
	last  int       // faults as logged last
	shown time.Time // of the head that was logged last
	newAt time.Time // when this process proved new entries last
}

// New entries are proved each proveNewEvery. A complete proof begins proveAllEvery after the last, or provePause
// times as long after it as that took, so that a long ledger does not keep a connection busy, but so early that it
// ends proveWithin after the last one, an hour before its absence is an alarm. proveFor is how long one turn takes,
// and ProveEvery the time between two turns.
const (
	ProveEvery = 4 * time.Second

	proveNewEvery = time.Minute
	proveAllEvery = 15 * time.Minute
	proveWithin   = 5 * time.Hour
	provePause    = 10
	proveFor      = 2 * time.Second
)

// NewProof returns a Proof of a ledger that is due at once.
func NewProof(audit ports.Audit, clock ports.Clock, log *slog.Logger) *Proof {
	return &Proof{audit: audit, clock: clock, log: log}
}

// Run proves new entries, and the next parts of the ledger, if either is due.
func (p *Proof) Run(ctx context.Context) error {
	state, err := p.audit.Proof(ctx)
	if err != nil {
		return err
	}
	now, began := p.clock.Now(), time.Now()
	for more := now.Sub(p.newAt).Abs() >= proveNewEvery; more && time.Since(began) < proveFor; {
		if state, more, err = p.audit.ProveNew(ctx); err != nil {
			return err
		}
		if !more {
			p.newAt = now
		}
	}
	pause := max(proveAllEvery, min(provePause*state.Took, proveWithin-state.Took))
	for due := !state.StartedAt.IsZero() || now.Sub(state.At).Abs() >= pause; due && time.Since(began) < proveFor; {
		if state, err = p.audit.ProveNext(ctx); err != nil {
			return err
		}
		due = !state.StartedAt.IsZero()
	}
	if state.Faults > 0 && state.Faults != p.last {
		p.log.Error("the ledger breaks a rule; run agentproxy verify", "rows", state.Faults, "rule", state.Rule)
	}
	p.last = state.Faults
	if h := state.Head; !h.At.Equal(p.shown) {
		p.log.Info("the head of the ledger's proof", "seq", h.Seq, "entries", h.Entries, "head", h.Head)
		p.shown = h.At
	}
	return nil
}
