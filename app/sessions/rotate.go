package sessions

import (
	"context"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/notify"
	"agentproxy/app/ordering"
	"agentproxy/domain"
	"agentproxy/domain/eventlog"
	"agentproxy/domain/exit"
	"agentproxy/domain/health"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Rotate asks for a new exit of a dynamic session.
type Rotate struct {
	AgentID   string
	SessionID string
	Reason    health.RotationReason // empty: manual
	Call      idempotency.Call
	// CloseConnections closes what is open on the old exit.
	CloseConnections bool
	// Require, if not nil, is the rule of the session from now on; the zero rule ends the one that it had.
	Require *exit.Rule
}

// Rotate gives a dynamic session a new exit. The session id stays.
func (u *Service) Rotate(ctx context.Context, in Rotate) (Done, error) {
	if in.Reason == "" {
		in.Reason = health.RotationManual
	}
	if !in.Reason.Valid() {
		return Done{}, domain.InvalidField("reason", "must be http_403, http_429, captcha, timeout, block, "+
			"scheduled or manual")
	}
	var s session.Session
	return rotateLearned(func(turn *ordering.Turn) (Done, error) {
		return u.changedOnce(ctx, in.AgentID, in.SessionID, in.Call,
			func(ctx context.Context, tx Repos, r ports.SessionRead, now time.Time) (ports.SessionRead, error) {
				if in.CloseConnections {
					r.Session = r.Session.CloseConnections()
				}
				if in.Require != nil {
					if err := in.Require.Check("require.", u.driver.Gate.Can()); err != nil {
						return r, err
					}
					r.Session.Require = *in.Require
				}
				s = r.Session
				return u.RotateIn(ctx, tx, r, in.Reason, eventlog.Agent, turn, now)
			})
	}, func() (*ordering.Turn, error) { return ordering.Learn(ctx, u.driver, s) })
}

// LearnToRotate measures the exits that a session may get next, if it has a rule, and chooses that of a seller.
func LearnToRotate(ctx context.Context, u *Service, s session.Session) (*ordering.Turn, error) {
	return ordering.Learn(ctx, u.driver, s)
}

// Chooses reports whether exits of a session with a rule are chosen by probes of its seller, which take a while.
func Chooses(u *Service, s session.Session) bool { return ordering.Chooses(u.driver, s) }

// RotateIn rotates a session in a transaction: the session, its health and its
// event log. One with a rule at a seller needs the turn that was chosen for it.
func (u *Service) RotateIn(ctx context.Context, tx Repos, r ports.SessionRead,
	reason health.RotationReason, by eventlog.Source, turn *ordering.Turn, now time.Time,
) (ports.SessionRead, error) {
	if err := r.MayRotate(); err != nil {
		return r, err
	}
	next, err := u.driver.NewExit(r.Session, turn)
	if err != nil {
		return r, err
	}
	s, err := r.Session.Rotate(next, now)
	if err != nil {
		return r, err
	}
	s = turn.Take(s)
	r.Session = s
	state := *r.Health
	state.Rotate(reason, now)
	r.Health = &state
	if err := tx.Sessions().Put(ctx, s); err != nil {
		return r, err
	}
	if err := tx.Health().Put(ctx, s.ID, state); err != nil {
		return r, err
	}
	if err := tx.Counters().Add(ctx, s.AgentID, ports.Tally{Rotations: 1}); err != nil {
		return r, err
	}
	if err := notify.SessionChanged(ctx, tx, u.ids, now, webhook.SessionRotated, s, "reason", string(reason)); err != nil {
		return r, err
	}
	return r, tx.Events().Append(ctx, s.ID, []eventlog.Event{{ID: u.ids.New(eventlog.IDPrefix), At: now, Source: by,
		Type: eventlog.Rotated, Code: string(reason), ExitIP: exitText(next), LatencyMS: -1}})
}

// exitText returns the address of an exit; empty if it is unknown.
func exitText(e session.Exit) string {
	if !e.IP.IsValid() {
		return ""
	}
	return e.IP.String()
}
