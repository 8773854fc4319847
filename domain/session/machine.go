package session

import (
	"math"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
)

// Refusals about sessions.
var (
	ErrNotFound = &domain.Error{Kind: domain.NotFound, Code: "SESSION_NOT_FOUND",
		Message: "no session has this id; list your sessions to find it"}
	ErrNotReady = &domain.Error{Kind: domain.Conflict, Code: "SESSION_NOT_READY", Retryable: true,
		RetryAfter: time.Second, Message: "the session is still being created; try again when its status is active"}
	ErrOver = &domain.Error{Kind: domain.Gone, Code: "SESSION_EXPIRED",
		Message: "the session has ended; create a new one"}
	ErrLimit = &domain.Error{Kind: domain.RateLimited, Code: "SESSION_LIMIT_REACHED", Retryable: true,
		RetryAfter: 30 * time.Second, Message: "too many live sessions; terminate some or wait until they end"}
	ErrNotDynamic = domain.ErrInvalid.Msgf("only a dynamic session can be rotated; this one is static")
	ErrNotStatic  = domain.ErrInvalid.Msgf("only a static session can be renewed; this one is dynamic")
)

// next lists where each status may go; an edge that is absent is refused.
var next = map[Status][]Status{
	Creating: {Active, Failed, Terminated},
	Active:   {Active, Terminated, Expired},
}

// Day is what a static session's duration is counted in.
const Day = 24 * time.Hour

// move checks the edge and stamps the end.
func (s Session) move(to Status, why Reason, now time.Time) (Session, error) {
	switch {
	case s.Status.Over():
		return s, ErrOver.Msgf("the session is %s; create a new one", s.Status)
	case !slices.Contains(next[s.Status], to):
		return s, ErrNotReady
	}
	s.Status = to
	if to.Over() {
		s.Reason, s.EndedAt = why, now
	}
	return s, nil
}

// Activate records the exits that the provider delivered. The time of a static
// session starts here.
func (s Session) Activate(exits []Exit, now time.Time) (Session, error) {
	if s.Status == Active {
		return s, domain.ErrUnavailable.Msgf("the session is active already")
	}
	s, err := s.move(Active, "", now)
	if err != nil {
		return s, err
	}
	s.Exits, s.ActivatedAt = exits, now
	if s.Type == Static {
		s.ExpiresAt = now.Add(time.Duration(s.Days) * Day)
	}
	s.Rotation = s.Rotation.after(now)
	return s, nil
}

// Fail ends a session whose provisioning failed, and records why.
func (s Session) Fail(f Failure, now time.Time) (Session, error) {
	s, err := s.move(Failed, ProviderFailed, now)
	if err == nil {
		s.Failure = f
	}
	return s, err
}

// MayRotate returns the error that Rotate would return. The type is checked
// before the state.
func (s Session) MayRotate() error {
	if s.Type != Dynamic {
		return ErrNotDynamic
	}
	_, err := s.moveActive()
	return err
}

// moveActive moves from active to active; other states have no such edge.
func (s Session) moveActive() (Session, error) {
	if s.Status == Creating {
		return s, ErrNotReady
	}
	return s.move(Active, "", time.Time{})
}

// Rotate gives a dynamic session a new exit. The session id never changes.
func (s Session) Rotate(exit Exit, now time.Time) (Session, error) {
	if err := s.MayRotate(); err != nil {
		return s, err
	}
	s.Exits = []Exit{exit}
	s.Rotation.Count++
	s.Rotation.LastAt = now
	s.Rotation = s.Rotation.after(now)
	return s, nil
}

// after sets when the next timed rotation is due.
func (r Rotation) after(now time.Time) Rotation {
	if r.Mode == Timed {
		r.NextAt = now.Add(r.Interval)
	}
	return r
}

// MayRenew returns the error that Renew would return.
func (s Session) MayRenew() error {
	if s.Type != Static {
		return ErrNotStatic
	}
	_, err := s.moveActive()
	return err
}

// Renew extends a static session from the moment it would have ended.
func (s Session) Renew(days int, now time.Time) (Session, error) {
	if err := s.MayRenew(); err != nil {
		return s, err
	}
	if !now.Before(s.ExpiresAt) {
		return s, ErrOver.Msgf("the session has reached its end; create a new one")
	}
	return s.Extend(days)
}

// Extend moves the end of an active static session whose renewal is paid for,
// whenever that was proven.
func (s Session) Extend(days int) (Session, error) {
	if err := s.MayRenew(); err != nil {
		return s, err
	}
	s.ExpiresAt = s.ExpiresAt.Add(time.Duration(days) * Day)
	return s, nil
}

// ExtendFairUse gives a static session the fair use of a renewal: added bytes; 0 lifts the limit.
// used is what has passed through it or is leased, and whole the fair use of all the time that is
// left: a session that had no limit gets one that counts from here.
func (s Session) ExtendFairUse(added, whole, used int64) Session {
	switch {
	case added == 0:
		s.FairUse = 0
	case s.FairUse == 0:
		s.FairUse = saturated(used, whole)
	default:
		s.FairUse = saturated(s.FairUse, added)
	}
	return s
}

// saturated adds two numbers that are not negative, at most math.MaxInt64.
func saturated(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// Renewing reports whether an active static session holds money for a renewal.
func (s Session) Renewing() bool {
	return s.Type == Static && s.Status == Active && s.Money.Held.Total() > 0
}

// AwaitsOutcome reports whether an ended session holds money for an order that may
// still be delivered: its purchase if it was never active, else a renewal. A dynamic
// session that was active holds money for traffic that a gateway may still report.
func (s Session) AwaitsOutcome() bool {
	return s.Status.Over() && s.Money.Held.Total() > 0 && (s.Type == Static || s.ActivatedAt.IsZero())
}

// Terminate ends a creating or active session for a reason. It is idempotent:
// changed is false if the session had ended before.
func (s Session) Terminate(why Reason, now time.Time) (after Session, changed bool) {
	after, err := s.move(Terminated, why, now)
	return after, err == nil
}

// Expire ends an active session whose time is up or whose traffic is used.
func (s Session) Expire(why Reason, now time.Time) (Session, error) {
	return s.move(Expired, why, now)
}

// UnusedShare returns the refund of a static session that ends at a time
// through no fault of the agent: of all that was charged, the part of the whole
// days left.
func (s Session) UnusedShare(at time.Time) domain.Money {
	if s.Type != Static || s.ExpiresAt.IsZero() || !at.Before(s.ExpiresAt) {
		return 0
	}
	return s.unusedDays(s.paid(), at)
}

// paid returns what was charged for the days of the addresses that a static session has.
func (s Session) paid() domain.Money {
	return s.Money.Charged.Total() - s.Money.Refunded.Total() - s.Money.Kept
}

// unusedDays returns the part of a price of all days that the whole days left are.
func (s Session) unusedDays(paid domain.Money, at time.Time) domain.Money {
	days, left := s.ExpiresAt.Sub(s.ActivatedAt)/Day, s.ExpiresAt.Sub(at)/Day
	return billing.UnusedDays(paid, int(days), int(left))
}

// Forfeited returns what the end of a static session at a time gives up where its agent asked for it: of all that was
// charged, the part of the time left. An end for another reason gives up nothing.
func (s Session) Forfeited(at time.Time) domain.Money {
	if s.Type != Static || s.ExpiresAt.IsZero() || !at.Before(s.ExpiresAt) || s.Reason != "" && s.Reason != AgentRequest {
		return 0
	}
	whole, left := s.ExpiresAt.Sub(s.ActivatedAt)/time.Second, s.ExpiresAt.Sub(at)/time.Second
	return domain.Money(domain.MulDiv(int64(s.paid()), int64(left), int64(whole)))
}

// ChargeDue returns the price of the traffic used that is not charged yet, at
// most what the session still holds.
func (s Session) ChargeDue(used int64) domain.Money {
	if s.Type != Dynamic {
		return 0
	}
	due := s.TrafficCost(used) - s.Money.Charged.Total()
	return max(min(due, s.Money.Held.Total()), 0)
}
