package replacements_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"agentproxy/app/operator"
	"agentproxy/app/replacements"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// state returns the only replacement of the session as it is stored.
func (s shop) state() replacement.Status {
	s.T.Helper()
	found := s.Column(`SELECT status FROM replacements WHERE session_id = ? ORDER BY at DESC`, s.id)
	if len(found) == 0 {
		return ""
	}
	return replacement.Status(found[0])
}

// pass advances the clock in steps until a time has passed, and drives the orders after each.
func (s shop) pass(d time.Duration) {
	s.T.Helper()
	for range 20 {
		s.Clock.Advance(d / 20)
		apptest.OK(s.T, s.RunOrders())
	}
}

// A seller that replaces is asked once, whatever becomes of its answer, and the session gets what its order has.
func TestASellerReplaces(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for what, c := range map[string]struct {
				step  fake.Step
				later bool
				want  replacement.Status // after a while
			}{
				"at once":                      {fake.Step{}, false, replacement.Done},
				"later":                        {fake.Step{}, true, replacement.Done},
				"the answer is lost":           {fake.LoseAnswer(), false, replacement.Done},
				"the answer is lost, later":    {fake.LoseAnswer(), true, replacement.Done},
				"the request is lost":          {fake.LoseRequest(), false, replacement.Refused},
				"refused":                      {fake.Refuse(procurement.OutOfStock), false, replacement.Refused},
				"refused for a time":           {fake.Refuse(procurement.RateLimited), false, replacement.Refused},
				"the seller does not know how": {fake.Refuse(procurement.Unsupported), false, replacement.Refused},
			} {
				s := open(t, store(t), apptest.RemoteStatic, 2)
				if c.later {
					s.Seller.ReplaceLater()
				}
				s.Seller.Next(fake.Exchange, c.step)
				was, balance := s.addresses(), s.Balance(s.agent)
				done, err := s.replace(replacements.Replace{IP: s.ip(1), Fault: procurement.Blocked})
				apptest.OK(t, err)
				apptest.Equal(t, what+": the ground", done.Replacement.Ground, replacement.Offered)
				if c.later || c.want == replacement.Refused && c.step.Err != nil && procurement.ClassOf(c.step.Err) == procurement.Ambiguous {
					apptest.Equal(t, what+": at first", done.Replacement.Status, replacement.Pending)
					_, err := s.replace(replacements.Replace{IP: s.ip(1), Fault: procurement.Blocked})
					apptest.ErrorIs(t, err, session.ErrNotReady)
				}
				s.pass(time.Hour)
				s.Seller.FinishReplacements()
				s.pass(25 * time.Hour)
				is := s.addresses()
				apptest.Equal(t, what, s.state(), c.want)
				apptest.Equal(t, what+": calls", s.Seller.Calls(fake.Exchange), 1)
				apptest.Equal(t, what+": the balance", s.Balance(s.agent), balance)
				if is[0] != was[0] || (is[1] == was[1]) != (c.want == replacement.Refused) {
					t.Errorf("%s: %v became %v", what, was, is)
				}
				r, err := operator.NewMoney(s.DB, s.Clock, s.Catalog).Margin(t.Context(), time.Time{}, time.Time{}, ports.ByProvider)
				apptest.OK(t, err)
				if m := r.Total; m.Orders != 1 || m.Unpriced+m.UnpricedSessions != 1 || (m.Replaced == 1) != (c.want == replacement.Done) || m.Returned != 0 {
					t.Errorf("%s: the margin is %+v", what, m)
				}
				if c.want == replacement.Done {
					_, err := s.replace(replacements.Replace{IP: s.ip(1), Fault: procurement.Blocked})
					apptest.ErrorIs(t, err, replacement.ErrRefused) // once in 30 days without a ground
				}
			}
		})
	}
}

// What a seller takes is charged to the agent and its key, shown before, and given back if it refuses. It is no part
// of what unused days are reckoned of.
func TestAFeeIsChargedOnceOrGivenBack(t *testing.T) {
	t.Parallel()
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			s := open(t, store(t), apptest.RemoteStatic, 1)
			s.Seller.ChargeReplacements(procurement.Quote{Cost: domain.Dollar, Stock: procurement.StockYes})
			balance, price := s.Balance(s.agent), s.Read(s.agent, s.id).Cost.Charged
			try, err := s.replace(replacements.Replace{IP: s.ip(0), DryRun: true})
			apptest.OK(t, err)
			if try.Quote.Cost != domain.Dollar || try.Quote.BalanceAfter != balance-domain.Dollar {
				t.Errorf("a dry run: %+v", try.Quote)
			}
			_, err = s.replace(replacements.Replace{IP: s.ip(0), MaxCost: new(domain.Dollar / 2)})
			apptest.ErrorIs(t, err, sessions.ErrPriceMismatch)
			apptest.Equal(t, "the balance", s.Balance(s.agent), balance)

			s.Seller.Next(fake.Exchange, fake.Refuse(procurement.OutOfStock))
			done, err := s.replace(replacements.Replace{IP: s.ip(0)})
			apptest.OK(t, err)
			apptest.Equal(t, "refused", done.Replacement.Status, replacement.Refused)
			apptest.Equal(t, "the balance after a refusal", s.Balance(s.agent), balance)

			_, err = s.replace(replacements.Replace{IP: s.ip(0)})
			apptest.ErrorIs(t, err, replacement.ErrRefused) // a seller that refused is not asked again at once
			s.Clock.Advance(session.Day)
			done, err = s.replace(replacements.Replace{IP: s.ip(0)})
			apptest.OK(t, err)
			apptest.Equal(t, "done", done.Replacement.Status, replacement.Done)
			apptest.Equal(t, "the balance", s.Balance(s.agent), balance-domain.Dollar)
			apptest.OK(t, s.Accounts.Disable(t.Context(), s.agent, "test"))
			v := s.Read(s.agent, s.id)
			apptest.Equal(t, "refunded of the refusal and the days", v.Cost.Refunded, domain.Dollar+price*29/30)
		})
	}
}

// A session that ends while its seller is asked ends the replacement.
func TestASessionEndsDuringAReplacement(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.RemoteStatic, 1)
	s.Seller.ChargeReplacements(procurement.Quote{Cost: domain.Dollar, Stock: procurement.StockYes})
	s.Seller.ReplaceLater()
	balance := s.Balance(s.agent)
	_, err := s.replace(replacements.Replace{IP: s.ip(0)})
	apptest.OK(t, err)
	_, err = s.Sessions.Terminate(t.Context(), s.agent, s.id)
	apptest.OK(t, err)
	s.pass(time.Hour)
	apptest.Equal(t, "the replacement", s.state(), replacement.Refused)
	apptest.Equal(t, "the balance", s.Balance(s.agent), balance)
	if n := len(s.Column(`SELECT id FROM upstream_orders WHERE status NOT IN ('confirmed', 'refused') OR kind = 'purchase' AND closed_at = 0`)); n != 0 {
		t.Errorf("%d orders are open", n)
	}
}

// A renewal and a replacement at a seller are not under way at once: each would hide the other's outcome.
func TestARenewalWaitsForAReplacement(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.RemoteStatic, 1)
	s.Seller.ReplaceLater()
	_, err := s.replace(replacements.Replace{IP: s.ip(0)})
	apptest.OK(t, err)
	_, err = s.Sessions.Renew(t.Context(), sessions.Renew{AgentID: s.agent, SessionID: s.id})
	apptest.ErrorIs(t, err, session.ErrNotReady)
	s.Seller.FinishReplacements()
	s.pass(time.Hour)
	apptest.Equal(t, "the replacement", s.state(), replacement.Done)
	s.Seller.Next(fake.Extend, fake.LoseRequest())
	_, err = s.Sessions.Renew(t.Context(), sessions.Renew{AgentID: s.agent, SessionID: s.id})
	apptest.OK(t, err)
	_, err = s.replace(replacements.Replace{IP: s.ip(0)})
	apptest.ErrorIs(t, err, session.ErrNotReady)
}

// A seller without another address is not asked; on a ground the address ends with a refund all the same.
func TestASellerIsOutOfStock(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.RemoteStatic, 2)
	s.Seller.ChargeReplacements(procurement.Quote{Stock: procurement.StockNo})
	_, err := s.replace(replacements.Replace{IP: s.ip(0), Refund: true})
	apptest.ErrorIs(t, err, catalog.ErrOutOfStock) // it is no free ground
	s.measured("LT")
	ended := s.ip(0)
	done, err := s.replace(replacements.Replace{IP: ended, Refund: true})
	apptest.OK(t, err)
	apptest.Equal(t, "the status", done.Replacement.Status, replacement.Ended)
	apptest.Equal(t, "calls", s.Seller.Calls(fake.Exchange), 0)
	s.pass(4 * time.Hour) // the seller's order still has the address
	v := s.Read(s.agent, s.id)
	if !v.Exits[0].Ended || v.Exits[0].IP != ended || v.Live() != 1 {
		t.Errorf("the exits are %+v", v.Exits)
	}
	_, err = s.replace(replacements.Replace{IP: netip.MustParseAddr("192.0.2.200"), Refund: true})
	apptest.ErrorIs(t, err, domain.ErrInvalid)
}

// An address that the agent connects to at its seller goes on there, so that its days are not refunded; an address that
// the gateway has in between is cut off, and they are.
func TestAnAddressAtItsSellerIsNotRefunded(t *testing.T) {
	t.Parallel()
	for _, direct := range []bool{false, true} {
		seller := fake.NewProvider("direct")
		seller.Can(func(c *procurement.Capabilities) { c.ViaUpstream, c.Direct = true, true })
		p := apptest.SharedProduct("sta_straight", session.Static, procurement.Source{Provider: "direct"})
		p.Direct = direct
		w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{seller}, Products: []catalog.Product{p}})
		s := open(t, w, p.No, 2)
		apptest.Equal(t, "it has an address at its seller", len(s.Read(s.agent, s.id).Direct) > 0, direct)
		seller.ChargeReplacements(procurement.Quote{Stock: procurement.StockNo})
		s.measured("LT")
		balance := s.Balance(s.agent)
		for _, dry := range []bool{true, false} {
			done, err := s.replace(replacements.Replace{IP: s.ip(0), Refund: true, DryRun: dry})
			if direct {
				apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			} else if apptest.OK(t, err); done.Replacement.Status != replacement.Ended {
				t.Errorf("without a refund: %+v", done.Replacement)
			}
		}
		if v := s.Read(s.agent, s.id); direct && (v.Live() != 2 || s.Balance(s.agent) != balance) ||
			!direct && (v.Live() != 1 || s.Balance(s.agent) <= balance) {
			t.Errorf("direct %v: %d addresses live, the balance was %v and is %v", direct, v.Live(), balance, s.Balance(s.agent))
		}
	}
}

// Wherever the process dies, the seller is asked once at most, and in the end the session has what its order has.
func TestAReplacementSurvivesACrash(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		s := open(t, apptest.New(t), apptest.RemoteStatic, 2)
		s.Seller.ChargeReplacements(procurement.Quote{Cost: domain.Dollar, Stock: procurement.StockYes})
		balance := s.Balance(s.agent)
		s.Store.FailUpdates(n)
		_, failed := s.replace(replacements.Replace{IP: s.ip(1)})
		updates := s.Store.CountUpdates()
		s.Store.FailUpdates()
		s.pass(time.Hour)
		s.pass(25 * time.Hour)
		state, calls := s.state(), s.Seller.Calls(fake.Exchange)
		if calls > 1 || state == replacement.Pending || failed != nil && state == replacement.Done && calls == 0 {
			t.Fatalf("the %d. update fails: %s after %d calls, %v", n, state, calls, failed)
		}
		fee := domain.Money(0)
		if state == replacement.Done {
			fee = domain.Dollar
		}
		apptest.Equal(t, "the balance", s.Balance(s.agent), balance-fee)
		has := session.Addresses(s.Seller.Sales()[0].Delivery.Exits(session.Static))
		if !slices.Equal(s.addresses(), has) {
			t.Errorf("the %d. update fails: the session has %v, its order %v", n, s.addresses(), has)
		}
		if n > 20 || n > updates && failed == nil && state == replacement.Done {
			if n < 4 {
				t.Errorf("a replacement has %d updates only", n)
			}
			return
		}
	}
}

// An address that was given back is not ordered for the same agent again.
func TestASellerIsAskedForOtherAddresses(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.RemoteStatic, 1)
	was := s.ip(0)
	_, err := s.replace(replacements.Replace{IP: was})
	apptest.OK(t, err)
	if again := s.Buy(s.agent, apptest.RemoteStatic).Exits[0].IP; again == was {
		t.Errorf("the agent was sold %v again", again)
	}
	apptest.Equal(t, "the address of another agent", s.Buy(s.RegisterFunded(100), apptest.RemoteStatic).Exits[0].IP, was)
	s.Clock.Advance(replacement.NotSoldAgain)
	_, err = s.Sessions.Terminate(t.Context(), s.agent, s.id)
	apptest.OK(t, err)
}

// A repeated call is answered as the first one, whether its seller answers now or not.
func TestARepeatedCallDoesNotAskTheSeller(t *testing.T) {
	t.Parallel()
	s := open(t, apptest.New(t), apptest.RemoteStatic, 1)
	s.Seller.ReplaceLater()
	in := replacements.Replace{IP: s.ip(0), Call: apptest.Call("once")}
	first, err := s.replace(in)
	apptest.OK(t, err)
	s.Seller.Always(fake.QuoteReplace, fake.Refuse(procurement.Temporary))
	again, err := s.replace(in)
	apptest.OK(t, err)
	if !again.Replayed || again.Replacement != first.Replacement {
		t.Errorf("repeated: %+v, first %+v", again.Replacement, first.Replacement)
	}
	in.Call = apptest.Call("another")
	_, err = s.replace(in)
	apptest.ErrorIs(t, err, ports.ErrProvider)
}
