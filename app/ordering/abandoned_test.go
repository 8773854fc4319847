package ordering_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// final is a world whose seller takes nothing back.
func final(t *testing.T) *apptest.World {
	t.Helper()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	w.Seller.Can(func(c *procurement.Capabilities) { c.Cancels = false })
	return w
}

// terminate ends a session and demands that its cost is shown so.
func terminate(t *testing.T, w *apptest.World, agent, id string, want sessions.Cost) {
	t.Helper()
	balance := w.Balance(agent)
	e, err := sessions.Endings{Service: w.Sessions}.Try(t.Context(), agent, id)
	apptest.OK(t, err)
	v, err := w.Sessions.Terminate(t.Context(), agent, id)
	apptest.OK(t, err)
	apptest.Equal(t, "the money that came back", w.Balance(agent)-balance, e.Refunded)
	apptest.Equal(t, "the status", v.Status, session.Terminated)
	apptest.Equal(t, "the cost", v.Cost, want)
	apptest.Equal(t, "the cost that is read", w.Read(agent, id).Cost, want)
	w.Audit()
}

// An agent that orders again and again and gives up at once pays for what its seller
// delivers, or runs out of money.
func TestGivingUpIsNoWayToBuyForNothing(t *testing.T) {
	t.Parallel()
	w := final(t)
	w.Seller.SetAsync(3)
	agent := w.Register()
	bought := 0
	for i := range 40 {
		f := apptest.Form(apptest.RemoteStatic)
		f.Quantity = new(6)
		d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f, Call: apptest.Call(strconv.Itoa(i))})
		if err != nil {
			apptest.ErrorIs(t, err, billing.ErrInsufficientBalance)
			continue
		}
		bought++
		terminate(t, w, agent, d.View.ID, sessions.Cost{Held: apptest.Dollars("6")})
		apptest.OK(t, w.RunOrders())
	}
	apptest.Equal(t, "bought", bought, 1)
	w.RunMinutes(10)
	apptest.Equal(t, "charged", w.Column(`SELECT CAST(charged AS TEXT) FROM wallets WHERE agent_id = ?`, agent)[0], "6000000")
	apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("4"))
}

// What is given up while the seller works on it is held, then charged if it comes,
// and returned if it does not.
func TestWhatIsGivenUpAwaitsItsOutcome(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Remote, apptest.RemoteStatic} {
		for name, c := range map[string]struct {
			step fake.Step
			slow int // reads until it is delivered
			then func(p *fake.Purchase)
			paid bool
		}{
			"delivered":          {slow: 3, paid: true},
			"the answer is lost": {step: fake.LoseAnswer(), paid: true},
			"delivered later":    {step: fake.LoseAnswer(), slow: 3, paid: true},
			"refused":            {step: fake.LoseRequest()},
			"taken back":         {slow: 3, then: func(p *fake.Purchase) { p.Delivery.State = procurement.Gone }},
			"delivered otherwise": {slow: 3, then: func(p *fake.Purchase) {
				p.Delivery.IPs = append(p.Delivery.IPs, procurement.IP{Addr: fake.StaticExit(9)})
			}},
		} {
			t.Run(product+" "+name, func(t *testing.T) {
				t.Parallel()
				w := final(t)
				w.Seller.SetAsync(c.slow)
				w.Seller.Next(fake.Provision, c.step)
				agent := w.Register()
				d, err := w.CreateWith(agent, product, apptest.Call("k"))
				apptest.OK(t, err)
				price := d.View.Cost.Held
				if d.Outcome != ports.Pending || price == 0 {
					t.Fatalf("created %d, %+v", d.Outcome, d.View.Cost)
				}
				terminate(t, w, agent, d.View.ID, sessions.Cost{Held: price})
				b, err := w.Wallet.Balance(t.Context(), agent)
				apptest.OK(t, err)
				apptest.Equal(t, "held", b.Held, price)
				apptest.Equal(t, "spent today", spentToday(w, agent), strconv.FormatInt(int64(price), 10))
				if c.then != nil {
					w.Seller.Change(d.View.ID, c.then)
				}
				w.RunMinutes(30)
				want, entry, spent := sessions.Cost{Charged: price}, ", charge 0 of ", int64(price)
				if !c.paid {
					want, entry, spent = sessions.Cost{}, ", release ", 0
				}
				apptest.Equal(t, "the cost at last", w.Read(agent, d.View.ID).Cost, want)
				apptest.Equal(t, "spent today at last", spentToday(w, agent), strconv.FormatInt(spent, 10))
				if all := w.Entries(agent); !strings.HasSuffix(all, entry+strconv.FormatInt(int64(price), 10)) {
					t.Errorf("the ledger is %s", all)
				}
				if o := lastOrder(w, d.View.ID); !o.NextAt.IsZero() {
					t.Errorf("the order is due for ever: %+v", o)
				}
				again, err := w.CreateWith(agent, product, apptest.Call("k"))
				apptest.OK(t, err)
				apptest.Equal(t, "the first answer again", again.Outcome, ports.Pending)
			})
		}
	}
}

// An order that was not sent yet is given back at once, and so is one that its
// seller takes back.
func TestWhatIsGivenUpInTimeIsFree(t *testing.T) {
	t.Parallel()
	t.Run("before it is sent", func(t *testing.T) {
		t.Parallel()
		w := final(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.RemoteAsync)
		terminate(t, w, agent, v.ID, sessions.Cost{})
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "sold", len(w.Seller.Sales()), 0)
	})
	t.Run("where the seller takes it back", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		w.Seller.SetAsync(3)
		agent := w.Register()
		v := w.Buy(agent, apptest.RemoteStatic)
		terminate(t, w, agent, v.ID, sessions.Cost{})
		w.ExpectReconciled()
		apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
	})
	t.Run("where it takes back traffic alone", func(t *testing.T) {
		t.Parallel()
		w := final(t)
		w.Seller.Can(func(c *procurement.Capabilities) { c.CancelsTraffic = true })
		w.Seller.SetAsync(3)
		agent := w.Register()
		terminate(t, w, agent, w.Buy(agent, apptest.Remote).ID, sessions.Cost{})
		terminate(t, w, agent, w.Buy(agent, apptest.RemoteStatic).ID, sessions.Cost{Held: apptest.Dollars("1")})
		w.RunMinutes(10)
	})
}

// An account that is shut out pays for what its seller was sent, as one that gives up.
func TestADisabledAgentPaysWhatWasSent(t *testing.T) {
	t.Parallel()
	w := final(t)
	w.Seller.SetAsync(3)
	agent := w.Register()
	v := w.Buy(agent, apptest.RemoteStatic)
	apptest.OK(t, w.Accounts.Disable(t.Context(), agent, "abuse"))
	apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Held: apptest.Dollars("1")})
	w.Audit()
	w.RunMinutes(10)
	apptest.Equal(t, "the cost at last", w.Read(agent, v.ID).Cost, sessions.Cost{Charged: apptest.Dollars("1")})
	apptest.Equal(t, "the order", lastOrder(w, v.ID).Reason, "it runs to its end at the provider")
}

// The operator's decision about a frozen order settles the session that has ended.
func TestTheOperatorSettlesWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	for name, adopted := range map[string]bool{"adopted": true, "released": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := final(t)
			agent := w.Register()
			w.Seller.Next(fake.Provision, fake.LoseAnswer())
			w.Seller.Always(fake.Find, fake.Refuse(procurement.Temporary))
			v := w.Buy(agent, apptest.RemoteStatic)
			terminate(t, w, agent, v.ID, sessions.Cost{Held: apptest.Dollars("1")})
			for range 200 {
				w.Clock.Advance(10 * time.Minute)
				apptest.OK(t, w.RunOrders())
			}
			o, want := lastOrder(w, v.ID), sessions.Cost{}
			apptest.Equal(t, "frozen", o.FrozenAt.IsZero(), false)
			apptest.Equal(t, "the cost", w.Read(agent, v.ID).Cost, sessions.Cost{Held: apptest.Dollars("1")})
			w.Audit()
			var err error
			if adopted {
				want.Charged = apptest.Dollars("1")
				_, err = w.Desk.Adopt(t.Context(), o.ID, w.Seller.Of(v.ID)[0].Delivery.Ref)
			} else {
				_, err = w.Desk.Release(t.Context(), o.ID)
			}
			apptest.OK(t, err)
			apptest.Equal(t, "the cost at last", w.Read(agent, v.ID).Cost, want)
		})
	}
}

// An agent is notified of the cost of its session when it gives up, and again when the
// outcome is known.
func TestNotificationsOfGivingUp(t *testing.T) {
	t.Parallel()
	w := final(t)
	w.Seller.SetAsync(3)
	agent := w.RegisterWithWebhook()
	v := w.Buy(agent, apptest.RemoteStatic)
	terminate(t, w, agent, v.ID, sessions.Cost{Held: apptest.Dollars("1")})
	notified := func() string {
		all := w.Column(`SELECT type || ' ' || data FROM outbox WHERE agent_id = ? ORDER BY seq`, agent)
		return strings.ReplaceAll(all[len(all)-1], v.ID, "ID")
	}
	const end = `"refunded":"0","session_id":"ID","status":"terminated","status_reason":"agent_request"}`
	apptest.Equal(t, "notified", notified(), `session.terminated {"charged":"0","held":"1",`+end)
	w.RunMinutes(10)
	apptest.Equal(t, "notified at last", notified(), `session.terminated {"charged":"1","held":"0",`+end)
	list, err := w.Sessions.Events(t.Context(), agent, v.ID, domain.Page{Number: 1, Size: 20})
	apptest.OK(t, err)
	apptest.Equal(t, "in the feed", list.Total, 2)
	apptest.Equal(t, "the last", list.Items[0].Type, "charged")
}

// A create whose session was ended by another call is not answered as a success, and
// neither is its repetition.
func TestACreateOfASessionThatEndedIsRefused(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{"delivered": {}, "the answer is lost": fake.LoseAnswer()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := final(t)
			agent := w.Register()
			reached, on := pauseCall(w, fake.Provision, step)
			var err error
			var wg sync.WaitGroup
			wg.Go(func() { _, err = w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k")) })
			reached()
			id := w.Column(`SELECT id FROM sessions`)[0]
			terminate(t, w, agent, id, sessions.Cost{Held: apptest.Dollars("1")})
			_, again := w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.ErrorIs(t, again, session.ErrOver)
			on()
			wg.Wait()
			apptest.ErrorIs(t, err, session.ErrOver)
			_, again = w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.ErrorIs(t, again, session.ErrOver)
			w.RunMinutes(10)
			apptest.Equal(t, "the cost", w.Read(agent, id).Cost, sessions.Cost{Charged: apptest.Dollars("1")})
			apptest.Equal(t, "sold", len(w.Seller.Sales()), 1)
		})
	}
}

// Tunnels are not cut at the end of a session whose renewal is on its way.
func TestARenewalKeepsTheRouteOpen(t *testing.T) {
	t.Parallel()
	w := final(t)
	agent := w.RegisterFunded(10)
	v := w.Buy(agent, apptest.RemoteStatic)
	w.Clock.Set(v.ExpiresAt.Add(-2 * time.Second))
	w.Seller.Next(fake.Extend, fake.LoseAnswer())
	d, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
	apptest.OK(t, err)
	apptest.Equal(t, "the outcome", d.Outcome, ports.Pending)
	w.Clock.Advance(3 * time.Second)
	apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
	route, err := w.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	if route.Status != session.Active || !route.ExpiresAt.IsZero() {
		t.Errorf("the route is %s until %s", route.Status, route.ExpiresAt)
	}
	w.RunMinutes(5)
	apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	again, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")})
	apptest.OK(t, err)
	apptest.Equal(t, "the first answer again", again.Outcome, ports.Pending)
	route, err = w.Traffic.Route(t.Context(), v.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "the end of the route", route.ExpiresAt, v.ExpiresAt.Add(30*session.Day))
}
