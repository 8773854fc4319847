package ordering_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/app/settlement"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

const lag = 10 * time.Minute

// lateWorld has a seller whose counter lags.
func lateWorld(t *testing.T) (*apptest.World, *fake.Provider, string, sessions.View) {
	t.Helper()
	w, seller, agent := directWorld(t)
	seller.SetClock(w.Clock.Now)
	seller.Can(func(c *procurement.Capabilities) { c.CounterLag = lag })
	return w, seller, agent, w.Buy(agent, "dyn_straight")
}

func uses(seller *fake.Provider, id string, bytes int64) {
	seller.Change(id, func(p *fake.Purchase) { p.Used = bytes })
}

// goOn does all that is due for a while, a minute at a time.
func goOn(w *apptest.World, d time.Duration) {
	w.T.Helper()
	for end := w.Clock.Now().Add(d); w.Clock.Now().Before(end); {
		apptest.OK(w.T, w.RunOrders())
		w.Clock.Advance(time.Minute)
	}
	apptest.OK(w.T, w.RunOrders())
}

// What the seller counts after the end is paid for, however the session ends: its access
// is cut first, and the counter is awaited.
func TestADirectSessionPaysWhatIsCountedLate(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *apptest.World, agent, id string) error{
		"terminated": func(w *apptest.World, agent, id string) error {
			_, err := w.Sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disabled": func(w *apptest.World, agent, _ string) error {
			return w.Accounts.Disable(context.Background(), agent, "abuse")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			uses(seller, v.ID, v.Bytes/10)
			apptest.OK(t, end(w, agent, v.ID))
			goOn(w, 0)
			now := w.Read(agent, v.ID)
			if now.Status != session.Terminated || now.Direct != nil || now.Cost.Held != apptest.Dollars("0.5")-now.Cost.Charged {
				t.Errorf("at once it is %s with %+v at %v", now.Status, now.Cost, now.Direct)
			}
			if p := seller.Of(v.ID)[0]; !p.Disabled || p.Released {
				t.Fatalf("at the seller it is disabled: %v, released: %v", p.Disabled, p.Released)
			}
			goOn(w, lag/2)
			uses(seller, v.ID, v.Bytes*9/10)
			goOn(w, lag/2+time.Minute)
			apptest.Equal(t, "counted", w.Read(agent, v.ID).Usage.Used(), v.Bytes*9/10)
			apptest.Equal(t, "held while the counter moves", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.05"))
			apptest.Equal(t, "kept at the seller", seller.Of(v.ID)[0].Released, false)
			goOn(w, lag)
			now = w.Read(agent, v.ID)
			if now.Cost.Charged != apptest.Dollars("0.45") || now.Cost.Held != 0 {
				t.Errorf("settled it cost %+v", now.Cost)
			}
			apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// A seller that counts beyond what was bought is paid what is held.
func TestADirectSessionPaysAtMostWhatItHolds(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	goOn(w, 0)
	uses(seller, v.ID, v.Bytes*3)
	goOn(w, lag)
	now := w.Read(agent, v.ID)
	if now.Cost.Charged != apptest.Dollars("0.5") || now.Cost.Held != 0 || now.Usage.Used() != v.Bytes {
		t.Errorf("it cost %+v for %d bytes", now.Cost, now.Usage.Used())
	}
	apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
}

// A counter without a delay is not awaited.
func TestACounterWithoutALagSettlesAtOnce(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	seller.Can(func(c *procurement.Capabilities) { c.CounterLag = 0 })
	uses(seller, v.ID, v.Bytes/2)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	apptest.OK(t, w.RunOrders())
	now := w.Read(agent, v.ID)
	if now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 || !seller.Of(v.ID)[0].Disabled {
		t.Errorf("it cost %+v", now.Cost)
	}
}

// A seller whose API is down delays the settlement, and one error is logged.
func TestASilentSellerDelaysTheSettlement(t *testing.T) {
	t.Parallel()
	for _, down := range []fake.Op{fake.Disable, fake.UsageOf} {
		t.Run(string(down), func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			var text bytes.Buffer
			w.Connect(0, w.Clock, nil, slog.New(slog.NewTextHandler(&text, nil)))
			alarms := func() int { return strings.Count(text.String(), "cannot be settled") }
			uses(seller, v.ID, v.Bytes/2)
			seller.Always(down, fake.Refuse(procurement.Temporary))
			_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
			goOn(w, settlement.AlarmAfter-2*time.Minute)
			apptest.Equal(t, "alarms before the hour", alarms(), 0)
			goOn(w, 3*time.Hour)
			apptest.Equal(t, "alarms", alarms(), 1)
			apptest.Equal(t, "logged", lateOrders(w), 1)
			apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.5"))
			seller.Always(down, fake.Step{})
			goOn(w, time.Hour)
			if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
				t.Errorf("back, it cost %+v", now.Cost)
			}
			apptest.Equal(t, "logged later", lateOrders(w), 0)
			apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// lateOrders counts the sessions whose settlement was reported as late.
func lateOrders(w *apptest.World) int {
	w.T.Helper()
	return owed(w, "direct").Late
}

// owed counts the orders that a provider owes.
func owed(w *apptest.World, provider string) (o procurement.Owed) {
	w.T.Helper()
	apptest.OK(w.T, w.Store.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		owed, err := tx.Orders().Owed(ctx)
		o = owed[provider]
		return err
	}))
	return o
}

// loses ends a session as lost at its seller, whatever the seller has.
func loses(w *apptest.World, id string) func(ctx context.Context, tx ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		orders, err := tx.Orders().Of(ctx, id)
		if err != nil {
			return err
		}
		orders[0].State, orders[0].LostAt = procurement.Gone, w.Clock.Now()
		if err := tx.Orders().Put(ctx, orders[0]); err != nil {
			return err
		}
		_, err = w.Transitions.Terminate(ctx, tx, s, session.ProviderLost, w.Clock.Now())
		return err
	}
}

// After three days the last count is what there is.
func TestASellerThatIsSilentForDaysIsPaidByItsLastCount(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(w *apptest.World){
		"its order is due":           func(w *apptest.World) { apptest.OK(w.T, w.Driver.DriveDue(context.Background())) },
		"its order is lost sight of": func(w *apptest.World) { apptest.OK(w.T, w.Tasks.Settle(context.Background())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			uses(seller, v.ID, v.Bytes/2)
			goOn(w, time.Minute)
			apptest.Equal(t, "counted", w.Read(agent, v.ID).Usage.Used(), v.Bytes/2)
			seller.Always(fake.Disable, fake.Refuse(procurement.Temporary))
			_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
			w.Clock.Advance(settlement.SettleWithin - time.Hour)
			how(w)
			apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held > 0, true)
			w.Clock.Advance(3 * time.Hour)
			how(w)
			if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
				t.Errorf("it cost %+v", now.Cost)
			}
			seller.Always(fake.Disable, fake.Step{})
			goOn(w, time.Hour)
			apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// Without a switch, what was used is read before the access is given up.
func TestASellerWithoutASwitchIsCountedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	seller.Always(fake.Disable, fake.Refuse(procurement.Unsupported))
	uses(seller, v.ID, v.Bytes/2)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	goOn(w, 0)
	apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
	if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
		t.Errorf("it cost %+v", now.Cost)
	}
	t.Run("and where it cannot be given up either, its counter is awaited", func(t *testing.T) {
		v := w.Buy(agent, "dyn_straight")
		seller.Always(fake.Release, fake.Refuse(procurement.Unsupported))
		_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
		apptest.OK(t, err)
		goOn(w, lag/2)
		uses(seller, v.ID, v.Bytes/5)
		apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.5"))
		goOn(w, 3*lag)
		if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.1") || now.Cost.Held != 0 {
			t.Errorf("it cost %+v", now.Cost)
		}
	})
}

// A counter that begins anew at the end is read until it is known that it did, and before the access is given up.
func TestACounterThatBeginsAnewAtTheEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lag      time.Duration
		unswitch bool
	}{"at once": {0, false}, "late": {lag, false}, "without a switch": {0, true}, "late without one": {lag, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			seller.Can(func(p *procurement.Capabilities) { p.CounterLag = c.lag })
			if c.unswitch {
				seller.Always(fake.Disable, fake.Refuse(procurement.Unsupported))
			}
			uses(seller, v.ID, v.Bytes*4/10)
			goOn(w, time.Minute)
			_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
			apptest.OK(t, err)
			uses(seller, v.ID, v.Bytes/10)
			goOn(w, 0)
			apptest.Equal(t, "given up at the seller at once", seller.Of(v.ID)[0].Released, false)
			goOn(w, 3*c.lag+2*time.Minute)
			if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
				t.Errorf("it cost %+v", now.Cost)
			}
			apptest.Equal(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// An access that the seller does not show is looked for again: an empty list makes
// nothing free.
func TestADirectSessionThatIsNotShownIsLookedForAgain(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	hide := func(gone bool) { seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = gone }) }
	hide(true)
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	goOn(w, time.Hour)
	apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held, apptest.Dollars("0.5"))
	hide(false)
	uses(seller, v.ID, v.Bytes/2)
	goOn(w, 3*lag)
	if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
		t.Errorf("shown again, it cost %+v", now.Cost)
	}
}

// A lost direct session is paid by its last count, and given up at the seller.
func TestALostDirectSessionPaysItsLastCount(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	uses(seller, v.ID, v.Bytes/5)
	goOn(w, time.Minute)
	seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	calls := seller.Calls(fake.Release)
	goOn(w, procurement.LostAfter+2*procurement.RereadAfter)
	now := w.Read(agent, v.ID)
	if now.Reason != session.ProviderLost || now.Cost.Charged != apptest.Dollars("0.1") || now.Cost.Held != 0 {
		t.Errorf("it is %s with %+v", now.Reason, now.Cost)
	}
	apptest.Equal(t, "given up at the seller", seller.Calls(fake.Release), calls+1)
	t.Run("one that is back when it is cut is counted as any other", func(t *testing.T) {
		v := w.Buy(agent, "dyn_straight")
		apptest.OK(t, w.Store.Update(t.Context(), ports.ReadSet{}, loses(w, v.ID)))
		uses(seller, v.ID, v.Bytes/2)
		goOn(w, 3*lag)
		if now := w.Read(agent, v.ID); now.Cost.Charged != apptest.Dollars("0.25") || now.Cost.Held != 0 {
			t.Errorf("it cost %+v", now.Cost)
		}
	})
}

// The job of the hour that a session ended in does not settle it before its seller counts.
func TestTheHourOfAnEndedDirectSessionDoesNotSettleIt(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	uses(seller, v.ID, v.Bytes/10)
	goOn(w, time.Minute) // stores the job of the hour
	seller.Always(fake.Disable, fake.Refuse(procurement.Temporary))
	_, err := w.Sessions.Terminate(t.Context(), agent, v.ID)
	apptest.OK(t, err)
	uses(seller, v.ID, v.Bytes/2)
	w.Clock.Advance(time.Hour + time.Minute)
	apptest.OK(t, w.RunOrders())
	apptest.OK(t, w.Tasks.Settle(t.Context()))
	apptest.Equal(t, "held", w.Read(agent, v.ID).Cost.Held > 0, true)
	seller.Always(fake.Disable, fake.Step{})
	goOn(w, time.Hour)
	apptest.Equal(t, "charged", w.Read(agent, v.ID).Cost.Charged, apptest.Dollars("0.25"))
}
