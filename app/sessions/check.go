package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/domain/worker"
	"agentproxy/ports"
)

// Checks opens connections through exits to see whether they work and what they are, and keeps what was measured.
type Checks struct {
	sessions *Service
	prober   ports.Prober
	facts    ports.ExitFacts
	clock    ports.Clock
	changed  changedSessions
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

// Check asks for one connection through an exit.
type Check struct {
	AgentID, SessionID string
	Worker             string // its exit; empty: the session's own
	IP                 string // of a static session; empty: the first of its addresses
}

// Check opens one connection through the exit of an active session, of an address or of a worker of it, to the
// service's own echo. It is free.
func (u *Checks) Check(ctx context.Context, in Check) (Checked, error) {
	v, err := u.open(ctx, in.AgentID, in.SessionID, in.Worker)
	if err != nil {
		return Checked{}, err
	}
	ref := exit.Ref{AgentID: in.AgentID, SessionID: in.SessionID, Worker: in.Worker}
	if ref.Index, err = indexOf(v.Session, in.IP); err != nil {
		return Checked{}, err
	}
	p, err := u.measure(ctx, v.Session, ref)
	return Checked{Exit: p.Measured, Latency: p.latency, Protocol: v.Protocol}, err
}

// Exit returns what was measured of the present exit of an active session, or of a worker of it. If nothing is known
// it measures, once may lets it.
func (u *Checks) Exit(ctx context.Context, agentID, id, name string, may func() error) (exit.Measured, error) {
	v, err := u.open(ctx, agentID, id, name)
	if err != nil {
		return exit.Measured{}, err
	}
	ref := exit.Ref{AgentID: agentID, SessionID: id, Worker: name}
	var known *exit.Measured
	err = u.sessions.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) error {
		of, err := present(ctx, tx, v.Session, ref)
		if err != nil {
			return err
		}
		r, _, err := tx.ExitMeasures().Get(ctx, ref)
		known = r.Known(of)
		return err
	})
	if err != nil {
		return exit.Measured{}, err
	}
	if known != nil {
		return *known, nil
	}
	if err := may(); err != nil {
		return exit.Measured{}, err
	}
	p, err := u.measure(ctx, v.Session, ref)
	return p.Measured, err
}

// open returns a session that is active, and may have a worker of the name.
func (u *Checks) open(ctx context.Context, agentID, id, name string) (View, error) {
	v, err := u.sessions.Read(ctx, agentID, id)
	switch {
	case err != nil:
		return v, err
	case v.Status == session.Creating:
		return v, session.ErrNotReady
	case v.Status.Over():
		return v, session.ErrOver.Msgf("the session is %s; create a new one", v.Status)
	case name == "":
	case v.Type == session.Static:
		return v, domain.InvalidField("worker", "is for dynamic sessions; leave it out")
	case !worker.IsName(name):
		return v, domain.InvalidField("worker", "must be 1 to 32 letters, digits and _")
	}
	return v, nil
}

// indexOf returns which address of a static session a text is, the first if it is empty.
func indexOf(s session.Session, ip string) (int, error) {
	if ip == "" {
		return 0, nil
	}
	if s.Type != session.Static {
		return 0, domain.InvalidField("ip", "is for static sessions; leave it out")
	}
	addr, err := netip.ParseAddr(ip)
	i := slices.IndexFunc(s.Exits, func(e session.Exit) bool { return err == nil && e.IP == addr.Unmap() })
	if i < 0 {
		return 0, domain.InvalidField("ip", "is no address of this session; its ip_list has them")
	}
	return i, nil
}

// probed is what a probe measured of an exit.
type probed struct {
	exit.Measured
	latency time.Duration
}

// measure probes an exit of a session, and keeps the measurement where there are sources of facts.
func (u *Checks) measure(ctx context.Context, s session.Session, ref exit.Ref) (probed, error) {
	of, err := u.presentNow(ctx, s, ref)
	if err != nil {
		return probed{}, err
	}
	probe, err := u.prober.Probe(ctx, ref)
	if err != nil {
		if probe.Unreachable && s.Type == session.Static {
			err = errors.Join(err, u.keepFailure(ctx, ref, of))
		}
		return probed{}, err
	}
	m := exit.Measured{At: u.clock.Now(), Declared: cmp.Or(probe.DeclaredCountry, s.Location.Country)}
	if m.IP, err = netip.ParseAddr(probe.ExitIP); err != nil {
		return probed{}, fmt.Errorf("address that the echo saw: %w", err)
	}
	m.Known = u.facts.Facts(ctx, m.IP)
	switch {
	case u.facts.Any():
		err = u.keep(ctx, ref, of, m)
	case s.Type == session.Static:
		err = u.forgetFailures(ctx, ref)
	}
	return probed{m, probe.Latency}, err
}
