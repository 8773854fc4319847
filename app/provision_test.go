package app_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// A session that ends while its provider works gives everything back at once,
// and the order is released at the provider.
func TestTerminateWhileTheProviderWorks(t *testing.T) {
	t.Parallel()
	for name, product := range map[string]string{"in the call": remote, "in the job": remoteLater} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			hold := make(chan struct{})
			w.seller.Next(fake.Provision, fake.Step{Gate: hold})
			var d sessions.Done
			var err error
			var wg sync.WaitGroup
			wg.Go(func() {
				if d, err = w.create(agent, product); product == remoteLater {
					err = w.work()
				}
			})
			w.called(fake.Provision, 1)
			id := w.texts(`SELECT id FROM sessions`)[0]
			v, ended := w.sessions.Terminate(t.Context(), agent, id)
			ok(t, ended)
			if v.Status != session.Terminated || v.Cost != (sessions.Cost{}) || w.balance(agent) != dollars("10") {
				t.Errorf("terminated %+v, the balance is %s", v.Session, w.balance(agent))
			}
			ok(t, w.work()) // the release is sent before the seller has sold anything
			close(hold)
			wg.Wait()
			ok(t, err)
			same(t, "sold", len(w.seller.Sales()), 1)
			if product == remote {
				same(t, "the answer", d.View.Status, session.Terminated)
			}
			w.reconciled()
		})
	}
	t.Run("and the provider refuses then", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		v := w.buy(agent, remoteLater)
		w.seller.Next(fake.Provision, fake.Refuse(procurement.Temporary))
		w.store.before = func() {
			_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
		}
		ok(t, w.driver.DriveSession(t.Context(), v.ID))
		same(t, "the session", w.read(agent, v.ID).Status, session.Terminated)
		w.reconciled()
	})
	t.Run("and the process dies then", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.create(agent, remote)
		ok(t, err)
		_, err = w.sessions.Terminate(t.Context(), agent, d.View.ID)
		ok(t, err)
		ok(t, w.work())
		// The lost request arrives after all.
		_, err = w.seller.Order(t.Context(), procurement.Intent{Key: w.texts(`SELECT id FROM upstream_orders`)[0], SessionID: d.View.ID,
			Type: session.Dynamic, Quantity: 1})
		ok(t, err)
		w.reconciled()
	})
}

// Whatever the provider answers, one order is one session.
func TestProviderDeliversWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, product := range map[string]string{"in the call": remoteStatic, "in the job": "sta_async"} {
		t.Run("an address of another session, "+name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.register()
			first := w.buy(agent, remoteStatic)
			w.exec(`UPDATE static_addresses SET ip = '198.51.100.2' WHERE session_id = ?`, first.ID)
			w.exec(`UPDATE sessions SET exits = '198.51.100.2' WHERE id = ?`, first.ID)
			d, err := w.create(agent, product)
			if product == remoteStatic {
				refused(t, err, ports.ErrProvider)
			} else {
				ok(t, err)
				ok(t, w.work())
				same(t, "the session", w.read(agent, d.View.ID).Status, session.Failed)
			}
			same(t, "the balance", w.balance(agent), dollars("9"))
			w.reconciled()
		})
		t.Run("too few addresses, "+name, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{stingy: true})
			agent := w.register()
			d, err := w.create(agent, product)
			ok(t, err)
			ok(t, w.work())
			same(t, "at first", w.read(agent, d.View.ID).Status, session.Creating) // the rest may follow
			w.seller.Change(d.View.ID, func(p *fake.Purchase) { p.Delivery.IPs = nil })
			for range 15 {
				w.clock.Advance(time.Minute)
				ok(t, w.work())
			}
			same(t, "the session", w.read(agent, d.View.ID).Status, session.Failed)
			same(t, "the balance", w.balance(agent), dollars("10"))
			same(t, "still bought", len(w.seller.Live()), 0)
		})
	}
}

// Jobs run twice, at once, and while the session ends: there is one outcome.
func TestProvisionRacesWithTerminate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{localLater, staticLater, remoteLater} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			agent := w.rich(100)
			for range 20 {
				v := w.buy(agent, product)
				var wg sync.WaitGroup
				var ended sessions.View
				for range 3 {
					wg.Go(func() {
						if err := w.driver.DriveSession(context.Background(), v.ID); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Go(func() {
					var err error
					if ended, err = w.sessions.Terminate(context.Background(), agent, v.ID); err != nil {
						t.Error(err)
					}
				})
				wg.Wait()
				now := w.read(agent, v.ID)
				if now.Status != session.Terminated || now.Cost != ended.Cost || now.Cost.Held != 0 {
					t.Errorf("ended as %+v %+v, is %+v", ended.Status, ended.Cost, now.Cost)
				}
				if started := !now.ActivatedAt.IsZero(); started != (now.Cost.Charged > 0) && now.Type == session.Static {
					t.Errorf("started %v, charged %s", started, now.Cost.Charged)
				}
			}
			w.reconciled()
		})
	}
}

// 30 percent of a thousand calls go wrong in every way there is.
func TestFaultyProvider(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.rich(10_000)
	steps := []fake.Step{fake.LoseAnswer(), fake.LoseRequest(), fake.Refuse(procurement.Temporary), fake.Refuse(procurement.TimedOut),
		{Err: errors.New("garbage"), Work: true}, {Err: errors.New("garbage")}}
	const creates = 300
	for i := range creates {
		if i%10 < 3 {
			w.seller.Next(fake.Provision, steps[i%len(steps)])
		}
		product := []string{remote, remoteLater, remoteStatic}[i%3]
		d, err := w.createWith(agent, product, idempotency.Call{Key: w.secrets.ProxyPassword(string(rune(i))), Path: "/s", Hash: []byte{1}})
		if err == nil && i%4 == 0 {
			_, err = w.sessions.Terminate(t.Context(), agent, d.View.ID)
			ok(t, err)
		}
		if i%7 == 0 {
			_ = w.work()
		}
	}
	w.clock.Advance(time.Minute)
	_, _ = w.work(), w.work()
	w.reconciled()
	counts := w.texts(`SELECT status || ' ' || COUNT(*) FROM sessions GROUP BY status ORDER BY 1`)
	t.Logf("of %d: %v", creates, counts)
}
