package app_test

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
	"agentproxy/test/fake"
)

// paused is a call of the seller that waits: reached returns when it is there,
// and on lets it go.
func (w *world) paused(op fake.Op, s fake.Step) (reached, on func()) {
	gate := make(chan struct{})
	s.Gate = gate
	w.seller.Next(op, s)
	n := w.seller.Calls(op) + 1
	return func() { w.called(op, n) }, func() { close(gate) }
}

// Whoever asked a seller before another one sent the order knows nothing of what
// became of it: the refusal that it got refuses nothing.
func TestARefusalBeforeTheCallDoesNotCountAfterIt(t *testing.T) {
	t.Parallel()
	for _, op := range []fake.Op{fake.Quote, fake.Read} {
		t.Run(string(op), func(t *testing.T) {
			t.Parallel()
			w, second := pair(t)
			agent := w.rich(10)
			var d sessions.Done
			var err error
			if op == fake.Quote {
				d, err = w.createWith(agent, "sta_both", idempotency.Call{})
				ok(t, err)
				_, err = w.sessions.Terminate(t.Context(), agent, d.View.ID)
				ok(t, err)
				w.reconciled()
			} else {
				d, err = w.createWith(agent, "sta_both", idempotency.Call{})
				ok(t, err)
			}
			before := len(w.seller.Live())
			// The slow one is refused when it is asked; the quick one buys meanwhile.
			reached, on := w.paused(op, fake.Refuse(procurement.Temporary))
			var slow, quick sync.WaitGroup
			slow.Go(func() {
				if op == fake.Quote {
					_, _ = w.createWith(agent, "sta_both", key("k"))
				} else {
					_, _ = w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: d.View.ID, Call: key("k")})
				}
			})
			reached()
			buying, answer := w.paused(map[fake.Op]fake.Op{fake.Quote: fake.Provision, fake.Read: fake.Extend}[op], fake.Step{})
			w.clock.Advance(2 * time.Minute)
			quick.Go(func() {
				if err := w.driver.DriveDue(context.Background()); err != nil {
					t.Error(err)
				}
			})
			buying()
			on()
			slow.Wait()
			answer()
			quick.Wait()
			w.reconciled()
			same(t, "bought of the second", len(second.Sales()), 0)
			if op == fake.Quote {
				same(t, "bought of the first", len(w.seller.Live()), before+1)
				return
			}
			v := w.read(agent, d.View.ID)
			if v.Cost.Charged != dollars("2") || v.Cost.Held != 0 || !v.ExpiresAt.Equal(d.View.ExpiresAt.Add(30*session.Day)) {
				t.Errorf("the renewal costs %+v and ends %s", v.Cost, v.ExpiresAt)
			}
		})
	}
}

// Two processes have asked for the price of one order: one of them buys.
func TestWhoeverComesSecondDoesNotSendTheOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.register()
	reached, on := w.paused(fake.Quote, fake.Step{})
	slow := make(chan error, 1)
	go func() { _, err := w.create(agent, remoteStatic); slow <- err }()
	reached()
	id := w.texts(`SELECT id FROM sessions`)[0]
	buying, answer := w.paused(fake.Provision, fake.Step{})
	fast := make(chan error, 1)
	go func() { fast <- w.driver.DriveSession(context.Background(), id) }()
	buying()
	on()
	ok(t, <-slow)
	answer()
	ok(t, <-fast)
	same(t, "sent", w.seller.Calls(fake.Provision), 1)
	same(t, "the session", w.read(agent, id).Status, session.Active)
	w.reconciled()
}

// Of the job, the pass and the request that drive one session one buys.
func TestManyDriveOneSession(t *testing.T) {
	t.Parallel()
	for name, labelled := range map[string]bool{"labelled": true, "nameless": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.seller.Can(func(c *procurement.Capabilities) { c.KeepsOrderKey = labelled })
			agent := w.rich(100)
			reached, on := w.paused(fake.Provision, fake.Step{})
			var d sessions.Done
			var wg sync.WaitGroup
			wg.Go(func() { d, _ = w.createWith(agent, remoteStatic, key("k")) })
			reached()
			id := w.texts(`SELECT session_id FROM upstream_orders`)[0]
			drive := func() {
				var others sync.WaitGroup
				for range 4 {
					others.Go(func() {
						if err := errors.Join(w.driver.DriveSession(context.Background(), id), w.driver.DriveDue(context.Background())); err != nil {
							t.Error(err)
						}
					})
				}
				others.Wait()
			}
			drive()
			same(t, "while it is sent", w.order(id).Status, procurement.Sent)
			w.clock.Advance(2 * time.Minute) // the process that sent it counts as dead
			drive()
			on()
			wg.Wait()
			w.reconciled()
			same(t, "sent", w.seller.Calls(fake.Provision), 1)
			if d.View.ID != id {
				t.Fatalf("created %+v", d)
			}
		})
	}
}

// late is a seller whose answers wait.
type late struct {
	*fake.Provider
	gate <-chan struct{}
	err  error
}

func (l *late) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d, err := l.Provider.Order(context.WithoutCancel(ctx), in)
	<-l.gate
	return d, cmp.Or(l.err, err)
}

// A process whose order was decided meanwhile by another changes nothing and
// returns no error.
func TestWhoComesTooLateHasNoSay(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]fake.Step{"bought": {}, "refused": fake.Refuse(procurement.Temporary), "unknown": fake.LoseAnswer()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, second := pair(t)
			agent := w.register()
			w.store.failUpdates(2) // 1 holds: the process dies then
			d, err := w.createWith(agent, "sta_both", idempotency.Call{})
			ok(t, err)
			// The sooner one does its work and waits for its answer, which it does not
			// get before another one has asked for the order.
			gate := make(chan struct{})
			w.onlyWith([]catalog.Product{bothOf("sta_both", session.Static, procurement.Source{Provider: "remote", SKU: "r"},
				procurement.Source{Provider: "second", Preference: 1})}, &late{w.seller, gate, step.Err}, second)
			w.clock.Advance(time.Minute)
			first := make(chan error)
			go func() { first <- w.driver.DriveDue(context.Background()) }()
			w.called(fake.Provision, 1)
			for len(w.seller.Sales()) == 0 {
				time.Sleep(time.Millisecond)
			}
			for range 2 {
				w.clock.Advance(2 * time.Minute)
				ok(t, w.driver.DriveDue(t.Context()))
			}
			same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
			close(gate)
			ok(t, <-first)
			same(t, "the session after all", w.read(agent, d.View.ID).Status, session.Active)
			same(t, "sold by the second", len(second.Sales()), 0)
			w.reconciled()
		})
	}
}

// An end at any moment of a purchase gives everything back, and what was bought
// is given up.
func TestTheSessionEndsWhileItIsBought(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *world, agent, id string) error{
		"terminate": func(w *world, agent, id string) error {
			_, err := w.sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disable": func(w *world, agent, _ string) error { return w.accounts.Disable(context.Background(), agent, "abuse") },
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
				w, second := pair(t)
				agent := w.register() // trial money
				reached, on := w.paused(m.op, m.step)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = w.createWith(agent, "sta_both", key("k")) })
				reached()
				id := w.texts(`SELECT id FROM sessions`)[0]
				ok(t, end(w, agent, id))
				on()
				wg.Wait()
				w.clock.Advance(5 * time.Minute)
				w.reconciled()
				same(t, "sent", w.seller.Calls(fake.Provision), m.sent)
				same(t, "sold by the second", len(second.Sales()), 0)
				v := w.read(agent, id)
				if v.Status != session.Terminated || v.Cost.Charged != 0 || v.Cost.Held != 0 {
					t.Errorf("the session is %s and costs %+v", v.Status, v.Cost)
				}
				same(t, "the balance", w.balance(agent), dollars("10"))
			})
		}
		t.Run(how+" between the answer and its unit", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			// The third update is the one that takes the answer.
			n := 0
			var id string
			var before func()
			before = func() {
				if n++; n < 3 {
					w.store.before = before
					return
				}
				id = w.texts(`SELECT id FROM sessions`)[0]
				ok(t, end(w, agent, id))
			}
			w.store.before = before
			_, _ = w.createWith(agent, remoteStatic, key("k"))
			same(t, "sold", len(w.seller.Sales()), 1)
			w.reconciled()
			same(t, "the session", w.read(agent, id).Status, session.Terminated)
			same(t, "the balance", w.balance(agent), dollars("10"))
		})
	}
}

// A decision about an order that was decided otherwise meanwhile is refused.
func TestTheSecondDecisionIsRefused(t *testing.T) {
	t.Parallel()
	for _, adopted := range []bool{true, false} {
		w := newWorld(t)
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		v := w.buy(agent, remoteStatic)
		o := w.order(v.ID)
		adopt := func() error {
			_, err := w.desk.Adopt(t.Context(), o.ID, w.seller.Of(v.ID)[0].Delivery.Ref)
			return err
		}
		release := func() error {
			_, err := w.desk.Release(t.Context(), o.ID)
			return err
		}
		first, second, want := release, adopt, session.Failed
		if adopted {
			first, second, want = adopt, release, session.Active
		}
		w.store.before = func() { ok(t, first()) }
		refused(t, second(), procurement.ErrDecided)
		same(t, "the session", w.read(agent, v.ID).Status, want)
	}
}

// A renewal whose session ends takes nothing, whatever becomes of it, and the
// budget of the day is free again.
func TestTheSessionEndsWhileItIsRenewed(t *testing.T) {
	t.Parallel()
	ends := map[string]func(w *world, agent, id string) error{
		"terminated": func(w *world, agent, id string) error {
			_, err := w.sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disabled": func(w *world, agent, _ string) error { return w.accounts.Disable(context.Background(), agent, "abuse") },
		"expired": func(w *world, _, _ string) error {
			w.clock.Advance(time.Hour + time.Minute)
			return w.passes.ExpireSessions(context.Background())
		},
	}
	moments := []struct {
		name string
		op   fake.Op
		step fake.Step
		sent int
	}{
		{"before it is sent", fake.Read, fake.Step{}, 0},
		{"after it is sent", fake.Extend, fake.Step{}, 1},
		{"and the answer is lost", fake.Extend, fake.LoseAnswer(), 1},
		{"and the request is lost", fake.Extend, fake.LoseRequest(), 1},
		{"and it is refused", fake.Extend, fake.Refuse(procurement.Temporary), 1},
	}
	for how, end := range ends {
		for _, m := range moments {
			t.Run(how+" "+m.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				agent := w.register()
				v := w.buy(agent, remoteStatic)
				w.clock.Advance(30*session.Day - time.Hour)
				ok(t, w.passes.ExpireTrials(t.Context()))
				_, err := w.wallet.Adjust(t.Context(), agent, dollars("5"), "for the test")
				ok(t, err)
				before := w.balance(agent)
				spent := func() string {
					return w.texts(`SELECT CAST(spent_today AS TEXT) FROM wallets WHERE agent_id = ?`, agent)[0]
				}
				reached, on := w.paused(m.op, m.step)
				var wg sync.WaitGroup
				wg.Go(func() {
					_, _ = w.sessions.Renew(context.Background(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: key("k")})
				})
				reached()
				same(t, "while it is renewed", w.balance(agent), before-dollars("1"))
				same(t, "spent today", spent(), "1000000")
				ok(t, end(w, agent, v.ID))
				on()
				wg.Wait()
				w.clock.Advance(20 * time.Minute)
				w.reconciled()
				same(t, "sent", w.seller.Calls(fake.Extend), m.sent)
				now := w.read(agent, v.ID)
				if !now.Status.Over() || now.Cost.Held != 0 || now.Cost.Charged != dollars("1") || !now.ExpiresAt.Equal(v.ExpiresAt) {
					t.Errorf("the session is %s, %+v, ends %s", now.Status, now.Cost, now.ExpiresAt)
				}
				same(t, "the balance", w.balance(agent), before)
				same(t, "spent today after all", spent(), "0")
			})
		}
	}
}
