package sessions

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Checks opens connections through exits to see whether they work and what they are.
type Checks struct {
	sessions *Service
	prober   ports.Prober
	facts    ports.ExitFacts
	clock    ports.Clock
}

// NewChecks wires the use case.
func NewChecks(sessions *Service, prober ports.Prober, facts ports.ExitFacts, clock ports.Clock) *Checks {
	return &Checks{sessions: sessions, prober: prober, facts: facts, clock: clock}
}

// Checked is the result of a check.
type Checked struct {
	Exit     exit.Measured
	Latency  time.Duration
	Protocol session.Protocol
}

// Check opens one connection through the exit of an active session, or of a worker of it, to the
// service's own echo. It is free.
func (u *Checks) Check(ctx context.Context, agentID, id, name string) (Checked, error) {
	v, err := u.sessions.Read(ctx, agentID, id)
	if err != nil {
		return Checked{}, err
	}
	switch {
	case v.Status == session.Creating:
		return Checked{}, session.ErrNotReady
	case v.Status.Over():
		return Checked{}, session.ErrOver.Msgf("the session is %s; create a new one", v.Status)
	case name == "":
	case v.Type == session.Static:
		return Checked{}, domain.InvalidField("worker", "is for dynamic sessions; leave it out")
	case !worker.IsName(name):
		return Checked{}, domain.InvalidField("worker", "must be 1 to 32 letters, digits and _")
	}
	probe, err := u.prober.Probe(ctx, id, name)
	if err != nil {
		return Checked{}, err
	}
	m := exit.Measured{At: u.clock.Now(), Declared: cmp.Or(probe.DeclaredCountry, v.Location.Country)}
	if m.IP, err = netip.ParseAddr(probe.ExitIP); err != nil {
		return Checked{}, fmt.Errorf("address that the echo saw: %w", err)
	}
	m.Known = u.facts.Facts(ctx, m.IP)
	return Checked{Exit: m, Latency: probe.Latency, Protocol: v.Protocol}, nil
}
