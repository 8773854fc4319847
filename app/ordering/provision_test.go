package ordering_test

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
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// A session that ends while its provider works gives everything back at once,
// and the order is released at the provider.
func TestTerminateWhileTheProviderWorks(t *testing.T) {
	t.Parallel()
	for name, product := range map[string]string{"in the call": apptest.Remote, "in the job": apptest.RemoteAsync} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			hold := make(chan struct{})
			w.Seller.Next(fake.Provision, fake.Step{Gate: hold})
			var err error
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err = w.Create(agent, product); product == apptest.RemoteAsync {
					err = w.RunOrders()
				}
			})
			w.WaitForCall(fake.Provision, 1)
			id := w.Column(`SELECT id FROM sessions`)[0]
			v, ended := w.Sessions.Terminate(t.Context(), agent, id)
			apptest.OK(t, ended)
			if v.Status != session.Terminated || v.Cost != (sessions.Cost{}) || w.Balance(agent) != apptest.Dollars("10") {
				t.Errorf("terminated %+v, the balance is %s", v.Session, w.Balance(agent))
			}
			apptest.OK(t, w.Other.DriveSession(t.Context(), id)) // the release is sent before the seller has sold anything
			close(hold)
			wg.Wait()
			apptest.Equal(t, "sold", len(w.Seller.Sales()), 1)
			if product == apptest.Remote {
				apptest.ErrorIs(t, err, session.ErrOver)
			} else {
				apptest.OK(t, err)
			}
			w.ExpectReconciled()
		})
	}
	t.Run("and the provider refuses then", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		v := w.Buy(agent, apptest.RemoteAsync)
		w.Seller.Next(fake.Provision, fake.Refuse(procurement.Temporary))
		w.Store.Before = func() {
			_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
		}
		apptest.OK(t, w.Driver.DriveSession(t.Context(), v.ID))
		apptest.Equal(t, "the session", w.Read(agent, v.ID).Status, session.Terminated)
		w.ExpectReconciled()
	})
	t.Run("and the process dies then", func(t *testing.T) {
		t.Parallel()
		w := apptest.New(t)
		agent := w.Register()
		w.Seller.Next(fake.Provision, fake.LoseRequest())
		d, err := w.Create(agent, apptest.Remote)
		apptest.OK(t, err)
		_, err = w.Sessions.Terminate(t.Context(), agent, d.View.ID)
		apptest.OK(t, err)
		apptest.OK(t, w.RunOrders())
		// The lost request arrives after all.
		_, err = w.Seller.Order(t.Context(), procurement.Intent{Key: w.Column(`SELECT id FROM upstream_orders`)[0], SessionID: d.View.ID,
			Type: session.Dynamic, Quantity: 1})
		apptest.OK(t, err)
		w.ExpectReconciled()
	})
}

// Whatever the provider answers, one order is one session.
func TestProviderDeliversWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, product := range map[string]string{"in the call": apptest.RemoteStatic, "in the job": "sta_async"} {
		t.Run("an address of another session, "+name, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.Register()
			first := w.Buy(agent, apptest.RemoteStatic)
			w.Exec(`UPDATE static_addresses SET ip = '198.51.100.2' WHERE session_id = ?`, first.ID)
			w.Exec(`UPDATE sessions SET exits = '198.51.100.2' WHERE id = ?`, first.ID)
			d, err := w.Create(agent, product)
			if product == apptest.RemoteStatic {
				apptest.ErrorIs(t, err, ports.ErrProvider)
			} else {
				apptest.OK(t, err)
				apptest.OK(t, w.RunOrders())
				apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Failed)
			}
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("9"))
			w.ExpectReconciled()
		})
		t.Run("too few addresses, "+name, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{EmptyDeliveries: true})
			agent := w.Register()
			d, err := w.Create(agent, product)
			apptest.OK(t, err)
			apptest.OK(t, w.RunOrders())
			apptest.Equal(t, "at first", w.Read(agent, d.View.ID).Status, session.Creating) // the rest may follow
			w.Seller.Change(d.View.ID, func(p *fake.Purchase) { p.Delivery.IPs = nil })
			for range 15 {
				w.Clock.Advance(time.Minute)
				apptest.OK(t, w.RunOrders())
			}
			apptest.Equal(t, "the session", w.Read(agent, d.View.ID).Status, session.Failed)
			apptest.Equal(t, "the balance", w.Balance(agent), apptest.Dollars("10"))
			apptest.Equal(t, "still bought", len(w.Seller.Live()), 0)
		})
	}
}

// Jobs run twice, at once, and while the session ends: there is one outcome.
func TestProvisionRacesWithTerminate(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.LocalAsync, apptest.StaticAsync, apptest.RemoteAsync} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.New(t)
			agent := w.RegisterFunded(100)
			for range 20 {
				v := w.Buy(agent, product)
				var wg sync.WaitGroup
				var ended sessions.View
				for range 3 {
					wg.Go(func() {
						if err := driveJob(w, v.ID); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Go(func() {
					var err error
					if ended, err = w.Sessions.Terminate(context.Background(), agent, v.ID); err != nil {
						t.Error(err)
					}
				})
				wg.Wait()
				now := w.Read(agent, v.ID)
				if now.Status != session.Terminated || now.Cost != ended.Cost || now.Cost.Held != 0 {
					t.Errorf("ended as %+v %+v, is %+v", ended.Status, ended.Cost, now.Cost)
				}
				if started := !now.ActivatedAt.IsZero(); started != (now.Cost.Charged > 0) && now.Type == session.Static {
					t.Errorf("started %v, charged %s", started, now.Cost.Charged)
				}
			}
			w.ExpectReconciled()
		})
	}
}

// 30 percent of a thousand calls go wrong in every way there is.
func TestFaultyProvider(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.RegisterFunded(10_000)
	steps := []fake.Step{fake.LoseAnswer(), fake.LoseRequest(), fake.Refuse(procurement.Temporary), fake.Refuse(procurement.TimedOut),
		{Err: errors.New("garbage"), Work: true}, {Err: errors.New("garbage")}}
	const creates = 300
	for i := range creates {
		if i%10 < 3 {
			w.Seller.Next(fake.Provision, steps[i%len(steps)])
		}
		product := []string{apptest.Remote, apptest.RemoteAsync, apptest.RemoteStatic}[i%3]
		d, err := w.CreateWith(agent, product, idempotency.Call{Key: w.Secrets.ProxyPassword(string(rune(i)), 0), Path: "/s", Hash: []byte{1}})
		if err == nil && i%4 == 0 {
			_, err = w.Sessions.Terminate(t.Context(), agent, d.View.ID)
			apptest.OK(t, err)
		}
		if i%7 == 0 {
			_ = w.RunOrders()
		}
	}
	w.Clock.Advance(time.Minute)
	_, _ = w.RunOrders(), w.RunOrders()
	w.ExpectReconciled()
	counts := w.Column(`SELECT status || ' ' || COUNT(*) FROM sessions GROUP BY status ORDER BY 1`)
	t.Logf("of %d: %v", creates, counts)
}
