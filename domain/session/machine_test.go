package session_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
)

var (
	born = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now  = born.Add(time.Hour)
	exit = session.Exit{IP: netip.MustParseAddr("127.0.0.9")}
)

// in returns a session of a type in a status.
func in(typ session.Type, status session.Status) session.Session {
	s := session.Session{ID: "sess_1", AgentID: "agt_1", Type: typ, Status: status, Quantity: 1, Days: 30,
		Bytes: billing.GB, Price: domain.Dollar, CreatedAt: born, Rotation: session.Rotation{Mode: session.OnDemand}}
	if status == session.Active || status == session.Expired || status == session.Terminated {
		s.ActivatedAt = born
		s.Exits = []session.Exit{{IP: netip.MustParseAddr("127.0.0.2")}}
		if typ == session.Static {
			s.ExpiresAt = born.Add(30 * session.Day)
		}
	}
	if status.Over() {
		s.EndedAt, s.Reason = born, session.AgentRequest
	}
	return s
}

// triggers are all that can happen to a session.
var triggers = map[string]func(session.Session) (session.Session, error){
	"activate": func(s session.Session) (session.Session, error) { return s.Activate([]session.Exit{exit}, now) },
	"fail": func(s session.Session) (session.Session, error) {
		return s.Fail(session.Failure{Code: "PROVIDER_ERROR", Message: "m"}, now)
	},
	"rotate": func(s session.Session) (session.Session, error) { return s.Rotate(exit, now) },
	"renew":  func(s session.Session) (session.Session, error) { return s.Renew(30, now) },
	"terminate": func(s session.Session) (session.Session, error) {
		after, changed := s.Terminate(session.AgentRequest, now)
		if !changed {
			return after, errNoChange
		}
		return after, nil
	},
	"expire": func(s session.Session) (session.Session, error) { return s.Expire(session.TimeExpired, now) },
}

var errNoChange = errors.New("nothing changed, which is no error")

// cell is what a trigger does in a status: the status after it, or the refusal.
type cell struct {
	to  session.Status
	err error
}

func ok(to session.Status) cell { return cell{to: to} }
func no(err error) cell         { return cell{err: err} }

var busy = domain.ErrUnavailable // activating twice is a programming error

// refusals are all errors that a trigger may return.
var refusals = []error{busy, errNoChange, session.ErrNotReady, session.ErrOver, session.ErrNotDynamic, session.ErrNotStatic}

// machine is every status by every trigger, for each type.
var machine = map[session.Type]map[session.Status]map[string]cell{
	session.Dynamic: {
		session.Creating: {"activate": ok(session.Active), "fail": ok(session.Failed), "rotate": no(session.ErrNotReady),
			"renew": no(session.ErrNotStatic), "terminate": ok(session.Terminated), "expire": no(session.ErrNotReady)},
		session.Active: {"activate": no(busy), "fail": no(session.ErrNotReady), "rotate": ok(session.Active),
			"renew": no(session.ErrNotStatic), "terminate": ok(session.Terminated), "expire": ok(session.Expired)},
		session.Terminated: over("rotate", no(session.ErrOver), "renew", no(session.ErrNotStatic)),
		session.Expired:    over("rotate", no(session.ErrOver), "renew", no(session.ErrNotStatic)),
		session.Failed:     over("rotate", no(session.ErrOver), "renew", no(session.ErrNotStatic)),
	},
	session.Static: {
		session.Creating: {"activate": ok(session.Active), "fail": ok(session.Failed), "rotate": no(session.ErrNotDynamic),
			"renew": no(session.ErrNotReady), "terminate": ok(session.Terminated), "expire": no(session.ErrNotReady)},
		session.Active: {"activate": no(busy), "fail": no(session.ErrNotReady), "rotate": no(session.ErrNotDynamic),
			"renew": ok(session.Active), "terminate": ok(session.Terminated), "expire": ok(session.Expired)},
		session.Terminated: over("rotate", no(session.ErrNotDynamic), "renew", no(session.ErrOver)),
		session.Expired:    over("rotate", no(session.ErrNotDynamic), "renew", no(session.ErrOver)),
		session.Failed:     over("rotate", no(session.ErrNotDynamic), "renew", no(session.ErrOver)),
	},
}

// over is the row of a status that never changes again.
func over(rotate string, r cell, renew string, w cell) map[string]cell {
	return map[string]cell{"activate": no(session.ErrOver), "fail": no(session.ErrOver), rotate: r, renew: w,
		"terminate": no(errNoChange), "expire": no(session.ErrOver)}
}

func TestEveryStatusByEveryTrigger(t *testing.T) {
	statuses := []session.Status{session.Creating, session.Active, session.Terminated, session.Expired, session.Failed}
	for _, typ := range []session.Type{session.Dynamic, session.Static} {
		for _, status := range statuses {
			for name, fire := range triggers {
				t.Run(string(typ)+" "+string(status)+" "+name, func(t *testing.T) {
					want, decided := machine[typ][status][name]
					if !decided {
						t.Fatal("no cell decides this")
					}
					before := in(typ, status)
					after, err := fire(before)
					if want.err != nil {
						for _, refusal := range refusals {
							if errors.Is(err, refusal) != (refusal == want.err) {
								t.Errorf("got %v, want %v alone", err, want.err)
							}
						}
						if after.Status != before.Status || after.Reason != before.Reason || !after.EndedAt.Equal(before.EndedAt) {
							t.Error("a refused trigger changed the session")
						}
						return
					}
					if err != nil || after.Status != want.to {
						t.Fatalf("got %s, %v; want %s", after.Status, err, want.to)
					}
					if after.Status.Over() != !after.EndedAt.IsZero() || after.Status.Over() != (after.Reason != "") {
						t.Errorf("status %s with end %v and reason %q", after.Status, after.EndedAt, after.Reason)
					}
					if after.ID != before.ID || after.AgentID != before.AgentID {
						t.Error("the session's identity changed")
					}
				})
			}
		}
	}
}

func TestActivationStartsTheClock(t *testing.T) {
	static, err := in(session.Static, session.Creating).Activate([]session.Exit{exit}, now)
	if err != nil || !static.ExpiresAt.Equal(now.Add(30*session.Day)) {
		t.Errorf("a static session of 30 days activated at %v ends at %v, %v", now, static.ExpiresAt, err)
	}
	timed := in(session.Dynamic, session.Creating)
	timed.Rotation = session.Rotation{Mode: session.Timed, Interval: time.Minute}
	if timed, err = timed.Activate([]session.Exit{exit}, now); err != nil || !timed.Rotation.NextAt.Equal(now.Add(time.Minute)) {
		t.Errorf("the first timed rotation is due at %v, %v", timed.Rotation.NextAt, err)
	}
	if !timed.ExpiresAt.IsZero() {
		t.Error("a dynamic session has an end")
	}
}

func TestRotationCountsAndReschedules(t *testing.T) {
	s := in(session.Dynamic, session.Active)
	s.Rotation = session.Rotation{Mode: session.Timed, Interval: time.Minute, NextAt: born}
	s, err := s.Rotate(exit, now)
	if err != nil || s.Rotation.Count != 1 || !s.Rotation.LastAt.Equal(now) || !s.Rotation.NextAt.Equal(now.Add(time.Minute)) {
		t.Errorf("after a rotation: %+v, %v", s.Rotation, err)
	}
	if s.Exits[0] != exit {
		t.Errorf("the exit is %v, want %v", s.Exits[0], exit)
	}
}

func TestRenewalExtendsFromTheEnd(t *testing.T) {
	s := in(session.Static, session.Active)
	s, err := s.Renew(90, now)
	if err != nil || !s.ExpiresAt.Equal(born.Add(120*session.Day)) {
		t.Errorf("renewed to %v, %v; want 120 days from activation", s.ExpiresAt, err)
	}
	if _, err = s.Renew(30, s.ExpiresAt); !errors.Is(err, session.ErrOver) {
		t.Errorf("renewing at the very end: %v, want SESSION_EXPIRED", err)
	}
}

func TestUnusedDaysAreRefundedWhole(t *testing.T) {
	s := in(session.Static, session.Active)
	s.Money.Charged = billing.Funds{Own: 3 * domain.Dollar}
	for _, c := range []struct {
		at   time.Duration
		want domain.Money
	}{
		{0, 3 * domain.Dollar}, // the first instant: 30 whole days are left
		{time.Second, 29 * domain.Dollar / 10},
		{29*session.Day + time.Hour, 0},
		{30 * session.Day, 0},
		{31 * session.Day, 0},
	} {
		if got := s.UnusedShare(born.Add(c.at)); got != c.want {
			t.Errorf("after %v: refund %s, want %s", c.at, got, c.want)
		}
	}
}

func TestChargeIsOfTheRunningTotal(t *testing.T) {
	s := in(session.Dynamic, session.Active)
	s.Price = 333_333 // a third of a dollar: every split of the bytes rounds differently
	s.Money.Held = billing.Funds{Own: billing.TrafficHold(s.Bytes, s.Price)}
	for used := int64(0); used <= s.Bytes; used += 7_777_777 {
		due := s.ChargeDue(used)
		s.Money.Held.Own -= due
		s.Money.Charged.Own += due
		if want := billing.TrafficCharge(used, s.Price); s.Money.Charged.Total() != want {
			t.Fatalf("after %d bytes charged %d, want %d", used, s.Money.Charged.Total(), want)
		}
	}
	if due := s.ChargeDue(10 * s.Bytes); s.Money.Charged.Total()+due != s.Price {
		t.Errorf("more bytes than bought charge %d in all, want %d", s.Money.Charged.Total()+due, s.Price)
	}
}

func TestWhatAnEndedSessionHoldsMoneyFor(t *testing.T) {
	held := session.Money{Held: billing.Funds{Own: 1}}
	for name, c := range map[string]struct {
		s        session.Session
		awaits   bool
		renewing bool
	}{
		"given up while creating": {s: session.Session{Type: session.Dynamic, Status: session.Terminated, Money: held}, awaits: true},
		"given up while renewed":  {s: session.Session{Type: session.Static, Status: session.Terminated, ActivatedAt: born, Money: held}, awaits: true},
		"holds nothing":           {s: session.Session{Type: session.Static, Status: session.Terminated}},
		"traffic to be reported":  {s: session.Session{Type: session.Dynamic, Status: session.Terminated, ActivatedAt: born, Money: held}},
		"being created":           {s: session.Session{Type: session.Static, Status: session.Creating, Money: held}},
		"being renewed":           {s: session.Session{Type: session.Static, Status: session.Active, ActivatedAt: born, Money: held}, renewing: true},
		"traffic in use":          {s: session.Session{Type: session.Dynamic, Status: session.Active, ActivatedAt: born, Money: held}},
	} {
		if c.s.AwaitsOutcome() != c.awaits || c.s.Renewing() != c.renewing {
			t.Errorf("%s: awaits %t, renewing %t", name, c.s.AwaitsOutcome(), c.s.Renewing())
		}
	}
}
