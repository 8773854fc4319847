package ordering_test

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// pauseCall is a call of the seller that waits: reached returns when it is there,
// and on lets it go.
func pauseCall(w *apptest.World, op fake.Op, s fake.Step) (reached, on func()) {
	gate := make(chan struct{})
	s.Gate = gate
	w.Seller.Next(op, s)
	n := w.Seller.Calls(op) + 1
	return func() { w.WaitForCall(op, n) }, func() { close(gate) }
}

// An answer of a seller from before another replica sent the order does not have what
// became of it: the refusal that it got refuses nothing.
func TestARefusalBeforeTheCallDoesNotCountAfterIt(t *testing.T) {
	t.Parallel()
	for _, op := range []fake.Op{fake.Quote, fake.Read} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w, second := apptest.TwoSellers(t)
			agent := w.RegisterFunded(10)
			var d sessions.Done
			var err error
			if op == fake.Quote {
				d, err = w.CreateWith(agent, "sta_both", idempotency.Call{})
				apptest.OK(t, err)
				_, err = w.Sessions.Terminate(t.Context(), agent, d.View.ID)
				apptest.OK(t, err)
				w.ExpectReconciled()
			} else {
				d, err = w.CreateWith(agent, "sta_both", idempotency.Call{})
				apptest.OK(t, err)
			}
			before := len(w.Seller.Live())
			// The slow one is refused when it is asked; the quick one buys meanwhile.
			reached, on := pauseCall(w, op, fake.Refuse(procurement.Temporary))
			var slow, quick sync.WaitGroup
			slow.Go(func() {
				if op == fake.Quote {
					_, _ = w.CreateWith(agent, "sta_both", apptest.Call("k"))
				} else {
					_, _ = w.Sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: d.View.ID, Call: apptest.Call("k")})
				}
			})
			reached()
			buying, answer := pauseCall(w, map[fake.Op]fake.Op{fake.Quote: fake.Provision, fake.Read: fake.Extend}[op], fake.Step{})
			w.Clock.Advance(2 * time.Minute)
			quick.Go(func() {
				if err := w.Driver.DriveDue(context.Background()); err != nil {
					t.Error(err)
				}
			})
			buying()
			on()
			slow.Wait()
			answer()
			quick.Wait()
			w.ExpectReconciled()
			apptest.Equal(t, "bought of the second", len(second.Sales()), 0)
			if op == fake.Quote {
				apptest.Equal(t, "bought of the first", len(w.Seller.Live()), before+1)
				return
			}
			v := w.Read(agent, d.View.ID)
			if v.Cost.Charged != apptest.Dollars("2") || v.Cost.Held != 0 || !v.ExpiresAt.Equal(d.View.ExpiresAt.Add(30*session.Day)) {
				t.Errorf("the renewal costs %+v and ends %s", v.Cost, v.ExpiresAt)
			}
		})
	}
}

// Two processes have asked for the price of one order: one of them buys.
func TestTheSecondProcessDoesNotSendTheOrder(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	reached, on := pauseCall(w, fake.Quote, fake.Step{})
	slow := make(chan error, 1)
	go func() { _, err := w.Create(agent, apptest.RemoteStatic); slow <- err }()
	reached()
	id := w.Column(`SELECT id FROM sessions`)[0]
	buying, answer := pauseCall(w, fake.Provision, fake.Step{})
	fast := make(chan error, 1)
	go func() { fast <- w.Driver.DriveSession(context.Background(), id) }()
	buying()
	on()
	apptest.OK(t, <-slow)
	answer()
	apptest.OK(t, <-fast)
	apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 1)
	apptest.Equal(t, "the session", w.Read(agent, id).Status, session.Active)
	w.ExpectReconciled()
}

// Of the job, the pass and the request that drive one session one buys.
func TestManyDriveOneSession(t *testing.T) {
	t.Parallel()
	for name, labelled := range map[string]bool{"labelled": true, "nameless": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			w.Seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = labelled })
			agent := w.RegisterFunded(100)
			reached, on := pauseCall(w, fake.Provision, fake.Step{})
			var d sessions.Done
			var wg sync.WaitGroup
			wg.Go(func() { d, _ = w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k")) })
			reached()
			id := w.Column(`SELECT session_id FROM upstream_orders`)[0]
			drive := func() {
				var others sync.WaitGroup
				for range 4 {
					others.Go(func() {
						if err := errors.Join(driveJob(w, id), w.Driver.DriveDue(context.Background())); err != nil {
							t.Error(err)
						}
					})
				}
				others.Wait()
			}
			drive()
			apptest.Equal(t, "while it is sent", lastOrder(w, id).Status, procurement.Sent)
			w.Clock.Advance(procurement.SendTimeout) // the process that sent it counts as dead
			drive()
			on()
			wg.Wait()
			w.ExpectReconciled()
			apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), 1)
			if d.View.ID != id {
				t.Fatalf("created %+v", d)
			}
		})
	}
}

// driveJob runs the job of a session, unless another one drives it at the moment.
func driveJob(w *apptest.World, id string) error {
	err := w.Driver.DriveSession(context.Background(), id)
	if _, later := errors.AsType[ports.RequeueAfter](err); later {
		return nil
	}
	return err
}

// slowProvider is a seller whose answers wait.
type slowProvider struct {
	*fake.Provider
	gate <-chan struct{}
	err  error
}

func (l *slowProvider) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := l.Provider.Order(context.WithoutCancel(ctx), in)
	<-l.gate
	return d, cmp.Or(l.err, err)
}

// A process whose order was decided meanwhile by another changes nothing and
// returns no error.
func TestALateDecisionIsIgnored(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{"bought": {}, "refused": fake.Refuse(procurement.Temporary), "unknown": fake.LoseAnswer()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, second := apptest.TwoSellers(t)
			agent := w.Register()
			w.Store.FailUpdates(2) // 1 holds: the process dies then
			d, err := w.CreateWith(agent, "sta_both", idempotency.Call{})
			apptest.OK(t, err)
			// The sooner one does its work and waits for its answer, which it does not
			// get before another one has asked for the order.
			gate := make(chan struct{})
			useOnly(w, []catalog.Product{apptest.SharedProduct("sta_both", session.Static, procurement.Source{Provider: "remote", SKU: "r"},
				procurement.Source{Provider: "second", Preference: 1})}, &slowProvider{w.Seller, gate, step.Err}, second)
			w.Clock.Advance(time.Minute)
			first := make(chan error)
			go func() { first <- w.Driver.DriveDue(context.Background()) }()
			w.WaitForCall(fake.Provision, 1)
			until(t, "the seller has sold it", func() bool { return len(w.Seller.Sales()) > 0 })
			for range 2 {
				w.Clock.Advance(procurement.SendTimeout)
				apptest.OK(t, w.Other.DriveDue(t.Context()))
			}
			apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Active)
			close(gate)
			apptest.OK(t, <-first)
			apptest.Equal(t, "the session after all", w.Read(agent, d.View.ID).Status, session.Active)
			apptest.Equal(t, "sold by the second", len(second.Sales()), 0)
			w.ExpectReconciled()
		})
	}
}

// An end at any moment of a purchase gives everything back, and what was bought
// is given up.
func TestTheSessionEndsWhileItIsBought(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *apptest.World, agent, id string) error{
		"terminate": func(w *apptest.World, agent, id string) error {
			_, err := w.Sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disable": func(w *apptest.World, agent, _ string) error {
			return w.Accounts.Disable(context.Background(), agent, "abuse")
		},
	}
	moments := []struct {
		name string
		op   fake.Op
		step fake.Step
		sent int
	}{
		{"before it is sent", fake.Quote, fake.Step{}, 0},
		{"after it is sent", fake.Provision, fake.Step{}, 1},
		{"and the answer is lost", fake.Provision, fake.LoseAnswer(), 1},
		{"and the request is lost", fake.Provision, fake.LoseRequest(), 1},
		{"and it is refused", fake.Provision, fake.Refuse(procurement.Temporary), 1},
	}
	for how, end := range ends {
		for _, m := range moments {
			t.Run(how+" "+m.name, func(t *testing.T) {
				t.Parallel()
				w, second := apptest.TwoSellers(t)
				agent := w.Register() // trial money
				reached, on := pauseCall(w, m.op, m.step)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = w.CreateWith(agent, "sta_both", apptest.Call("k")) })
				reached()
				id := w.Column(`SELECT id FROM sessions`)[0]
				apptest.OK(t, end(w, agent, id))
				on()
				wg.Wait()
				w.Clock.Advance(5 * time.Minute)
				w.ExpectReconciled()
				apptest.Equal(t, "sent", w.Seller.Calls(fake.Provision), m.sent)
				apptest.Equal(t, "sold by the second", len(second.Sales()), 0)
				v := w.Read(agent, id)
				if v.Status != session.Terminated || v.Cost.Charged != 0 || v.Cost.Held != 0 {
					t.Errorf("the session is %s and costs %+v", v.Status, v.Cost)
				}
				apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
			})
		}
		t.Run(how+" between the answer and its unit", func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			// The third update is the one that takes the answer.
			n := 0
			var id string
			var before func()
			before = func() {
				if n++; n < 3 {
					w.Store.Before = before
					return
				}
				id = w.Column(`SELECT id FROM sessions`)[0]
				apptest.OK(t, end(w, agent, id))
			}
			w.Store.Before = before
			_, _ = w.CreateWith(agent, apptest.RemoteStatic, apptest.Call("k"))
			apptest.Equal(t, "sold", len(w.Seller.Sales()), 1)
			w.ExpectReconciled()
			apptest.Equal(t, "the session", w.Read(agent, id).Status, session.Terminated)
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
		})
	}
}

// A decision about an order that was decided otherwise meanwhile is refused.
func TestTheSecondDecisionIsRefused(t *testing.T) {
	t.Parallel()
	for _, adopted := range []bool{true, false} {
		w := apptest.New(t)
		agent := w.Register()
		w.Seller.Next(fake.Provision, fake.LoseAnswer())
		v := w.Buy(agent, apptest.RemoteStatic)
		o := lastOrder(w, v.ID)
		adopt := func() error {
			_, err := w.Desk.Adopt(t.Context(), o.ID, w.Seller.Of(v.ID)[0].Delivery.Ref)
			return err
		}
		release := func() error {
			_, err := w.Desk.Release(t.Context(), o.ID)
			return err
		}
		first, second, want := release, adopt, session.Failed
		if adopted {
			first, second, want = adopt, release, session.Active
		}
		w.Store.Before = func() { apptest.OK(t, first()) }
		apptest.ErrorIs(t, second(), procurement.ErrDecided)
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, want)
	}
}

// A renewal whose session ends is paid if the seller made it, and only then. It is the service's then, and one that was sent in time keeps the session alive.
func TestTheSessionEndsWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *apptest.World, agent, id string) error{
		"terminated": func(w *apptest.World, agent, id string) error {
			_, err := w.Sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disabled": func(w *apptest.World, agent, _ string) error {
			return w.Accounts.Disable(context.Background(), agent, "abuse")
		},
		"expired": func(w *apptest.World, _, _ string) error {
			w.Clock.Advance(time.Hour + time.Minute)
			return w.Tasks.ExpireSessions(context.Background())
		},
	}
	moments := []struct {
		name string
		op   fake.Op
		step fake.Step
		sent int
		made bool
	}{
		{"before it is sent", fake.Read, fake.Step{}, 0, false},
		{"after it is sent", fake.Extend, fake.Step{}, 1, true},
		{"and the answer is lost", fake.Extend, fake.LoseAnswer(), 1, true},
		{"and the request is lost", fake.Extend, fake.LoseRequest(), 1, false},
		{"and it is refused", fake.Extend, fake.Refuse(procurement.Temporary), 1, false},
	}
	for how, end := range ends {
		for _, m := range moments {
			t.Run(how+" "+m.name, func(t *testing.T) {
				t.Parallel()
				w := apptest.New(t)
				agent := w.Register()
				v := w.Buy(agent, apptest.RemoteStatic)
				w.Clock.Advance(30*session.Day - time.Hour)
				apptest.OK(t, w.Tasks.ExpireTrials(t.Context()))
				_, err := w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("5"), "for the test")
				apptest.OK(t, err)
				before := w.Balance(agent)
				spent := func() string {
					return w.Column(`SELECT CAST(spent_today AS TEXT) FROM wallets WHERE agent_id = ?`, agent)[0]
				}
				reached, on := pauseCall(w, m.op, m.step)
				var wg sync.WaitGroup
				var answer error
				renew := func() error {
					in := sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("k")}
					_, err := w.Sessions.Renew(context.Background(), in)
					return err
				}
				wg.Go(func() { answer = renew() })
				reached()
				apptest.Equal(t, "while it is renewed", w.Balance(agent), before-apptest.Dollars("1"))
				apptest.Equal(t, "spent today", spent(), "1000000")
				apptest.OK(t, end(w, agent, v.ID))
				if kept := w.Read(agent, v.ID).Cost.Held; kept != apptest.Dollars("1") && m.sent > 0 {
					t.Errorf("the session holds %s for what was sent", kept)
				}
				w.Audit()
				on()
				wg.Wait()
				if how != "expired" || m.sent == 0 {
					apptest.ErrorIs(t, answer, session.ErrOver)
					apptest.ErrorIs(t, renew(), session.ErrOver)
				}
				w.Clock.Advance(20 * time.Minute)
				_ = w.RunOrders()
				apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
				w.ExpectReconciled()
				apptest.Equal(t, "sent", w.Seller.Calls(fake.Extend), m.sent)
				want, cost, end, today := before, apptest.Dollars("1"), v.ExpiresAt, "0"
				if m.made {
					want, cost, today = before-apptest.Dollars("1"), apptest.Dollars("2"), "1000000"
				}
				lives := m.made && how == "expired"
				if lives {
					end = end.Add(30 * session.Day)
				}
				now := w.Read(agent, v.ID)
				if now.Status.Over() == lives || now.Cost.Held != 0 || now.Cost.Charged != cost || !now.ExpiresAt.Equal(end) {
					t.Errorf("the session is %s, %+v, ends %s", now.Status, now.Cost, now.ExpiresAt)
				}
				apptest.Equal(t, "the balance", w.Balance(agent), want)
				apptest.Equal(t, "spent today after all", spent(), today)
			})
		}
	}
}
