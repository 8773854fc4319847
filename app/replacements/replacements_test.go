package replacements_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentproxy/app/replacements"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

// shop is a world with an agent that has a static session.
type shop struct {
	*apptest.World
	agent string
	id    string
}

var stores = map[string]func(testing.TB) *apptest.World{
	"SQLite": func(t testing.TB) *apptest.World {
		return apptest.Open(t, apptest.Options{Exits: 12, RepeatUpdates: true})
	},
	"PostgreSQL": apptest.OpenPostgres,
}

func open(t *testing.T, w *apptest.World, product string, ips int) shop {
	t.Helper()
	s := shop{World: w, agent: w.RegisterFunded(100)}
	s.id = s.buy(product, ips)
	return s
}

func (s shop) buy(product string, ips int) string {
	s.T.Helper()
	f := apptest.Form(product)
	f.Quantity = &ips
	d, err := s.Sessions.Create(s.T.(*testing.T).Context(), sessions.Create{AgentID: s.agent, Form: f})
	apptest.OK(s.T, err)
	return d.View.ID
}

func (s shop) addresses() []string { return session.Addresses(s.Read(s.agent, s.id).Exits) }

func (s shop) ip(i int) netip.Addr { return s.Read(s.agent, s.id).Exits[i].IP }

func (s shop) replace(in replacements.Replace) (replacements.Done, error) {
	in.AgentID, in.SessionID = s.agent, s.id
	if in.Fault == "" {
		in.Fault = procurement.WrongPlace
	}
	return s.Replacements.Replace(context.Background(), in)
}

// measured measures all addresses of the session in a country.
func (s shop) measured(country string) {
	s.T.Helper()
	checks := sessions.NewChecks(s.Sessions, prober{}, facts(country), s.Clock)
	apptest.OK(s.T, checks.Measure(s.T.(*testing.T).Context()))
}

// prober reaches the echo through every exit, or through none of them.
type prober struct{ fails, echoGone bool }

func (p prober) Probe(context.Context, exit.Ref) (ports.Probe, error) {
	if p.fails {
		return ports.Probe{Unreachable: !p.echoGone}, ports.ErrProvider
	}
	return ports.Probe{ExitIP: "192.0.2.1"}, nil
}

// facts has one country for all addresses.
type facts string

func (f facts) Facts(context.Context, netip.Addr) exit.Known { return exit.Known{Country: string(f)} }
func (f facts) Any() bool                                    { return f != "" }
func (f facts) Can() exit.Fields                             { return exit.Fields{Country: true} }

// An address that was measured elsewhere is replaced for nothing, once, within a day of its activation.
func TestAnAddressThatIsElsewhereIsReplaced(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t, store(t), apptest.Static, 2)
			was, balance := s.addresses(), s.Balance(s.agent)
			_, err := s.replace(replacements.Replace{IP: s.ip(1)})
			apptest.ErrorIs(t, err, replacement.ErrRefused)
			s.measured("DE")
			_, err = s.replace(replacements.Replace{IP: s.ip(1)})
			apptest.ErrorIs(t, err, replacement.ErrRefused) // it is where it was sold as being
			s.Clock.Advance(2 * time.Hour)
			s.Exec(`UPDATE exit_measures SET facts = replace(facts, '"DE"', '"LT"')`)

			try, err := s.replace(replacements.Replace{IP: s.ip(1), DryRun: true})
			apptest.OK(t, err)
			if try.Quote.Cost != 0 || try.Quote.BalanceAfter != balance || try.Replacement.Status != replacement.Done ||
				try.Replacement.Ground != replacement.Contradicted {
				t.Errorf("a dry run: %+v, %+v", try.Quote, try.Replacement)
			}
			apptest.Equal(t, "the addresses after a dry run", slices.Equal(s.addresses(), was), true)

			call := apptest.Call("again")
			done, err := s.replace(replacements.Replace{IP: s.ip(1), Call: call})
			apptest.OK(t, err)
			is := s.addresses()
			if is[0] != was[0] || is[1] == was[1] || is[1] != done.Replacement.New.String() || done.Replacement.Old.String() != was[1] {
				t.Errorf("%v became %v: %+v", was, is, done.Replacement)
			}
			apptest.Equal(t, "the balance", s.Balance(s.agent), balance)
			again, err := s.replace(replacements.Replace{IP: netip.MustParseAddr(was[1]), Call: call})
			apptest.OK(t, err)
			if !again.Replayed || again.Replacement != done.Replacement || !slices.Equal(s.addresses(), is) {
				t.Errorf("repeated: %+v", again.Replacement)
			}
			_, err = s.replace(replacements.Replace{IP: netip.MustParseAddr(was[1])})
			apptest.ErrorIs(t, err, domain.ErrInvalid)
			if v := s.Read(s.agent, s.id); v.Measured[1] != nil {
				t.Error("the new address has the facts of the old one")
			}
			checks := sessions.NewChecks(s.Sessions, prober{}, facts("LT"), s.Clock)
			_, err = checks.Check(t.Context(), sessions.Check{AgentID: s.agent, SessionID: s.id, IP: is[1]})
			apptest.OK(t, err)
			if v := s.Read(s.agent, s.id); v.Measured[1] == nil || v.Measured[1].Country != "LT" {
				t.Errorf("the new address is measured as %+v", v.Measured[1])
			}
			_, err = s.replace(replacements.Replace{IP: s.ip(1)})
			apptest.ErrorIs(t, err, replacement.ErrRefused) // once an IP
			s.Clock.Advance(23 * time.Hour)
			_, err = s.replace(replacements.Replace{IP: s.ip(0)})
			apptest.ErrorIs(t, err, replacement.ErrRefused) // a day has passed
		})
	}
}

// Three checks that fail a minute apart, because of the exit alone, are a ground.
func TestAnAddressThatIsNotReachedIsReplaced(t *testing.T) {
	t.Parallel()
	for _, sources := range []facts{"", "DE"} {
		s := open(t, apptest.Open(t, apptest.Options{Exits: 12}), apptest.Static, 1)
		check := func(p prober) {
			checks := sessions.NewChecks(s.Sessions, p, sources, s.Clock)
			_, _ = checks.Check(t.Context(), sessions.Check{AgentID: s.agent, SessionID: s.id})
		}
		refused := func(what string, failed int) {
			t.Helper()
			_, err := s.replace(replacements.Replace{IP: s.ip(0), Fault: procurement.Unreachable})
			apptest.ErrorIs(t, err, replacement.ErrRefused)
			apptest.Equal(t, what, err.(*domain.Error).Details["failed_checks"], any(failed))
		}
		s.Clock.Advance(time.Hour)
		apptest.OK(t, sessions.NewChecks(s.Sessions, prober{}, sources, s.Clock).Measure(t.Context()))
		for range 3 {
			s.Clock.Advance(time.Minute)
			check(prober{fails: true, echoGone: true})
		}
		refused("checks while the echo does not answer", 0)
		for range 5 {
			s.Clock.Advance(10 * time.Second)
			check(prober{fails: true})
		}
		refused("checks within a minute", 1)
		s.Clock.Advance(time.Minute)
		check(prober{fails: true})
		refused("two checks", 2)
		check(prober{})
		refused("checks after one that succeeded", 0)
		for range 3 {
			s.Clock.Advance(time.Minute)
			s.UseBytes(s.id, "l1", 1)
			check(prober{fails: true})
		}
		refused("checks while traffic passes", 0)
		for range 3 {
			s.Clock.Advance(time.Minute)
			check(prober{fails: true})
		}
		was := s.ip(0)
		done, err := s.replace(replacements.Replace{IP: was, Fault: procurement.Unreachable})
		apptest.OK(t, err)
		if done.Replacement.Ground != replacement.Unreachable || s.ip(0) == was {
			t.Errorf("%+v", done.Replacement)
		}
	}
}

// Without another address the one that is wrong ends, and its unused days are refunded: in all never more than was
// paid. With the last one the session ends.
func TestAnAddressEndsWithARefund(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t, store(t), apptest.Static, 3)
			paid := s.Read(s.agent, s.id).Cost.Charged
			other := shop{s.World, s.RegisterFunded(10_000), ""}
			for {
				if _, err := s.Create(other.agent, apptest.Static); err != nil {
					apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
					break
				}
			}
			s.Clock.Advance(10 * time.Hour)
			s.measured("LT")
			_, err := s.replace(replacements.Replace{IP: s.ip(0)})
			apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			before, ips := s.Balance(s.agent), s.addresses()
			each := paid / 3 * 29 / 30
			try, err := s.replace(replacements.Replace{IP: s.ip(1), Refund: true, DryRun: true})
			apptest.OK(t, err)
			if try.Replacement.Status != replacement.Ended || try.Replacement.Refund != each || try.Quote.BalanceAfter != before+each {
				t.Errorf("a dry run: %+v, %+v; want %v", try.Replacement, try.Quote, each)
			}
			done, err := s.replace(replacements.Replace{IP: s.ip(1), Refund: true})
			apptest.OK(t, err)
			if done.Replacement.Status != replacement.Ended || done.Replacement.Refund != each {
				t.Errorf("ended: %+v, want %v", done.Replacement, each)
			}
			apptest.Equal(t, "the balance", s.Balance(s.agent), before+each)
			v := s.Read(s.agent, s.id)
			if v.Exits[0].Ended || !v.Exits[1].Ended || v.Exits[2].Ended || v.Live() != 2 {
				t.Errorf("the exits are %+v", v.Exits)
			}
			// The address is free for others, and not for this agent.
			_, err = s.Create(s.agent, apptest.Static)
			apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			d, err := s.Create(other.agent, apptest.Static)
			apptest.OK(t, err)
			apptest.Equal(t, "the address of another agent", d.View.Exits[0].IP.String(), ips[1])
			_, err = s.replace(replacements.Replace{IP: netip.MustParseAddr(ips[1]), Refund: true})
			apptest.ErrorIs(t, err, domain.ErrInvalid)

			d, err = s.Sessions.Renew(t.Context(), sessions.Renew{AgentID: s.agent, SessionID: s.id})
			apptest.OK(t, err)
			apptest.Equal(t, "the price of a renewal of two addresses", d.View.Cost.Charged-v.Cost.Charged, paid/3*2)

			for i := range 2 {
				_, err = s.replace(replacements.Replace{IP: s.ip(i * 2), Refund: true})
				apptest.OK(t, err)
			}
			v = s.Read(s.agent, s.id)
			apptest.Equal(t, "the status after the last address", v.Status, session.Terminated)
			apptest.Equal(t, "refunded in all", v.Cost.Refunded, each+2*(paid/3*2*59/60))
			_, err = s.replace(replacements.Replace{IP: netip.MustParseAddr(ips[0])})
			apptest.ErrorIs(t, err, session.ErrOver)
		})
	}
}

// A session that its operator ends refunds what is left of its addresses that live, not of those that ended.
func TestTheRestIsRefundedOnce(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.Open(t, apptest.Options{Exits: 6}), apptest.Static, 3) // all that there are
	paid := s.Read(s.agent, s.id).Cost.Charged
	s.measured("LT")
	_, err := s.replace(replacements.Replace{IP: s.ip(0), Refund: true})
	apptest.OK(t, err)
	s.Clock.Advance(15 * session.Day)
	apptest.OK(t, s.Accounts.Disable(t.Context(), s.agent, "test"))
	v := s.Read(s.agent, s.id)
	apptest.Equal(t, "refunded", v.Cost.Refunded, paid/3+paid/3*2*15/30)
}

// Of 100 calls at once for one address one replaces it; other calls meanwhile end or renew the session.
func TestReplacementsAtOnce(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t, store(t), apptest.Static, 2)
			s.measured("LT")
			ip, ok := s.ip(0), make([]bool, 100)
			apptest.Concurrently(100, func(i int) {
				_, err := s.replace(replacements.Replace{IP: ip})
				ok[i] = err == nil
			})
			n := 0
			for _, is := range ok {
				if is {
					n++
				}
			}
			apptest.Equal(t, "replacements", n, 1)
			ip = s.ip(1)
			apptest.Concurrently(12, func(i int) {
				switch i % 3 {
				case 0:
					_, _ = s.replace(replacements.Replace{IP: ip})
				case 1:
					_, _ = s.Sessions.Renew(t.Context(), sessions.Renew{AgentID: s.agent, SessionID: s.id})
				case 2:
					if i > 6 {
						_, _ = s.Sessions.Terminate(t.Context(), s.agent, s.id)
					}
				}
			})
			apptest.Equal(t, "the status", s.Read(s.agent, s.id).Status, session.Terminated)
			taken := s.Column(`SELECT ip FROM static_addresses WHERE session_id = ?`, s.id)
			apptest.Equal(t, "addresses of the ended session", len(taken), 0)
		})
	}
}

// Another agent's session does not exist.
func TestOnlyItsAgentReplaces(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.Static, 1)
	s.measured("LT")
	stranger := shop{s.World, s.Register(), s.id}
	_, err := stranger.replace(replacements.Replace{IP: s.ip(0)})
	apptest.ErrorIs(t, err, session.ErrNotFound)
	_, err = s.replace(replacements.Replace{IP: s.ip(0), Fault: "ugly"})
	apptest.Equal(t, "the field", apptest.InvalidFields(err), "reason")
	_, err = s.Replacements.Replace(t.Context(), replacements.Replace{AgentID: s.agent, SessionID: s.Buy(s.agent, apptest.Local).ID,
		IP: s.ip(0), Fault: procurement.Blocked})
	apptest.ErrorIs(t, err, session.ErrNotStatic)
}

// An agent that gives back one address after the other gets each of the others once, and none again.
func TestReplacementsUntilTheStockIsGone(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(testing.TB) *apptest.World{
		"SQLite": func(t testing.TB) *apptest.World { return apptest.Open(t, apptest.Options{Exits: 14}) }, // 7 of them static
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, store(t), apptest.Static, 4)
			s.measured("LT")
			had, balance := s.addresses(), s.Balance(s.agent)
			for i := range 3 {
				done, err := s.replace(replacements.Replace{IP: s.ip(i)})
				apptest.OK(t, err)
				if new := done.Replacement.New.String(); slices.Contains(had, new) {
					t.Errorf("it got %s again", new)
				}
				had = append(had, done.Replacement.New.String())
			}
			was := s.addresses()
			_, err := s.replace(replacements.Replace{IP: s.ip(3)})
			apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			if !slices.Equal(s.addresses(), was) {
				t.Errorf("a refused replacement made %v of %v", s.addresses(), was)
			}
			apptest.Equal(t, "the balance", s.Balance(s.agent), balance)
			s.measured("LT") // of the addresses that came in place of others, whose free replacement is used
			s.Clock.Advance(exit.Apart)
			s.measured("LT")
			_, err = s.replace(replacements.Replace{IP: s.ip(0), Refund: true})
			apptest.ErrorIs(t, err, replacement.ErrRefused)
		})
	}
}

// movingProber reaches the echo through no exit, and something happens meanwhile.
type movingProber struct{ meet func() }

func (p movingProber) Probe(context.Context, exit.Ref) (ports.Probe, error) {
	p.meet()
	return ports.Probe{Unreachable: true}, ports.ErrProvider
}

// A check that fails is no evidence about the address that came in place of the checked one meanwhile.
func TestAFailedCheckIsOfTheAddressThatWasChecked(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.Open(t, apptest.Options{Exits: 12}), apptest.Static, 1)
	s.measured("LT")
	s.Clock.Advance(time.Hour)
	checks := sessions.NewChecks(s.Sessions, movingProber{func() {
		_, err := s.replace(replacements.Replace{IP: s.ip(0)})
		apptest.OK(t, err)
		again := sessions.NewChecks(s.Sessions, prober{}, facts("DE"), s.Clock)
		_, err = again.Check(t.Context(), sessions.Check{AgentID: s.agent, SessionID: s.id})
		apptest.OK(t, err)
	}}, facts("DE"), s.Clock)
	_, err := checks.Check(t.Context(), sessions.Check{AgentID: s.agent, SessionID: s.id})
	apptest.ErrorIs(t, err, ports.ErrProvider)
	if m := s.Read(s.agent, s.id).Measured[0]; m == nil || m.Country != "DE" {
		t.Errorf("what was measured of the new address is %+v", m)
	}
	_, err = s.replace(replacements.Replace{IP: s.ip(0)})
	apptest.ErrorIs(t, err, replacement.ErrRefused)
	apptest.Equal(t, "failed checks of the new address", err.(*domain.Error).Details["failed_checks"], any(0))
}
