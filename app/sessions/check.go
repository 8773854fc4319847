package sessions

import (
	"cmp"
	"context"

	"agentproxy/domain"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Checks opens connections through exits to see whether they work.
type Checks struct {
	sessions *Service
	prober   ports.Prober
}

// NewChecks wires the use case.
func NewChecks(sessions *Service, prober ports.Prober) *Checks {
	return &Checks{sessions: sessions, prober: prober}
}

// Checked is the result of a check.
type Checked struct {
	ports.Probe
	// DeclaredCountry is the country that the exit was sold as, empty if none was asked for. Nothing
	// has measured it.
	DeclaredCountry string
	Protocol        session.Protocol
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
	declared := cmp.Or(probe.DeclaredCountry, v.Location.Country)
	return Checked{Probe: probe, DeclaredCountry: declared, Protocol: v.Protocol}, err
}
