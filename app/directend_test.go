package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/direct"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

const lag = 10 * time.Minute

// lateWorld has a seller whose counter lags.
func lateWorld(t *testing.T) (*world, *fake.Provider, string, sessions.View) {
	t.Helper()
	w, seller, agent := directWorld(t)
	seller.SetClock(w.clock.Now)
	seller.Can(func(c *procurement.Capabilities) { c.CounterLag = lag })
	return w, seller, agent, w.buy(agent, "dyn_straight")
}

func (w *world) uses(seller *fake.Provider, id string, bytes int64) {
	seller.Change(id, func(p *fake.Purchase) { p.Used = bytes })
}

// goOn does all that is due for a while, a minute at a time.
func (w *world) goOn(d time.Duration) {
	w.t.Helper()
	for end := w.clock.Now().Add(d); w.clock.Now().Before(end); {
		ok(w.t, w.work())
		w.clock.Advance(time.Minute)
	}
	ok(w.t, w.work())
}

// What the seller counts after the end is paid for, however the session ends: its access
// is cut first, and the counter is awaited.
func TestADirectSessionPaysWhatIsCountedLate(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(w *world, agent, id string) error{
		"terminated": func(w *world, agent, id string) error {
			_, err := w.sessions.Terminate(context.Background(), agent, id)
			return err
		},
		"disabled": func(w *world, agent, _ string) error { return w.accounts.Disable(context.Background(), agent, "abuse") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			w.uses(seller, v.ID, v.Bytes/10)
			ok(t, end(w, agent, v.ID))
			w.goOn(0)
			now := w.read(agent, v.ID)
			if now.Status != session.Terminated || now.Direct != nil || now.Cost.Held != dollars("0.5")-now.Cost.Charged {
				t.Errorf("at once it is %s with %+v at %v", now.Status, now.Cost, now.Direct)
			}
			if p := seller.Of(v.ID)[0]; !p.Disabled || p.Released {
				t.Fatalf("at the seller it is disabled: %v, released: %v", p.Disabled, p.Released)
			}
			w.goOn(lag / 2)
			w.uses(seller, v.ID, v.Bytes*9/10)
			w.goOn(lag/2 + time.Minute)
			same(t, "counted", w.read(agent, v.ID).Usage.Used(), v.Bytes*9/10)
			same(t, "held while the counter moves", w.read(agent, v.ID).Cost.Held, dollars("0.05"))
			same(t, "kept at the seller", seller.Of(v.ID)[0].Released, false)
			w.goOn(lag)
			now = w.read(agent, v.ID)
			if now.Cost.Charged != dollars("0.45") || now.Cost.Held != 0 {
				t.Errorf("settled it cost %+v", now.Cost)
			}
			same(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// A seller that counts beyond what was bought is paid what is held.
func TestADirectSessionPaysAtMostWhatItHolds(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	w.goOn(0)
	w.uses(seller, v.ID, v.Bytes*3)
	w.goOn(lag)
	now := w.read(agent, v.ID)
	if now.Cost.Charged != dollars("0.5") || now.Cost.Held != 0 || now.Usage.Used() != v.Bytes {
		t.Errorf("it cost %+v for %d bytes", now.Cost, now.Usage.Used())
	}
	same(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
}

// A counter that says that it is up to date is not awaited.
func TestACounterWithoutALagSettlesAtOnce(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	seller.Can(func(c *procurement.Capabilities) { c.CounterLag = 0 })
	w.uses(seller, v.ID, v.Bytes/2)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	ok(t, w.work())
	now := w.read(agent, v.ID)
	if now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 || !seller.Of(v.ID)[0].Disabled {
		t.Errorf("it cost %+v", now.Cost)
	}
}

// A seller whose API is down delays the settlement. The operator is told once.
func TestASilentSellerDelaysTheSettlement(t *testing.T) {
	t.Parallel()
	for _, down := range []fake.Op{fake.Disable, fake.UsageOf} {
		t.Run(string(down), func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			var text bytes.Buffer
			w.connect(0, w.clock, nil, slog.New(slog.NewTextHandler(&text, nil)))
			alarms := func() int { return strings.Count(text.String(), "cannot be settled") }
			w.uses(seller, v.ID, v.Bytes/2)
			seller.Always(down, fake.Refuse(procurement.Temporary))
			_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
			w.goOn(direct.AlarmAfter - 2*time.Minute)
			same(t, "alarms before the hour", alarms(), 0)
			w.goOn(3 * time.Hour)
			same(t, "alarms", alarms(), 1)
			same(t, "told of", w.late(), 1)
			same(t, "held", w.read(agent, v.ID).Cost.Held, dollars("0.5"))
			seller.Always(down, fake.Step{})
			w.goOn(time.Hour)
			if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 {
				t.Errorf("back, it cost %+v", now.Cost)
			}
			same(t, "told of it later", w.late(), 0)
			same(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// late counts the sessions whose settlement the operator was told of.
func (w *world) late() int {
	w.t.Helper()
	return w.owed("direct").Late
}

// owed counts the orders that a provider owes.
func (w *world) owed(provider string) (o procurement.Owed) {
	w.t.Helper()
	ok(w.t, w.store.View(context.Background(), func(ctx context.Context, tx ports.Tx) error {
		owed, err := tx.Orders().Owed(ctx)
		o = owed[provider]
		return err
	}))
	return o
}

// loses ends a session as lost at its seller, whatever the seller has.
func (w *world) loses(id string) func(ctx context.Context, tx ports.Tx) error {
	return func(ctx context.Context, tx ports.Tx) error {
		s, err := tx.Sessions().Load(ctx, id)
		if err != nil {
			return err
		}
		orders, err := tx.Orders().Of(ctx, id)
		if err != nil {
			return err
		}
		orders[0].State, orders[0].LostAt = procurement.Gone, w.clock.Now()
		if err := tx.Orders().Put(ctx, orders[0]); err != nil {
			return err
		}
		_, err = w.life.Terminate(ctx, tx, s, session.ProviderLost, w.clock.Now())
		return err
	}
}

// After three days the last count is what there is.
func TestASellerThatIsSilentForDaysIsPaidByItsLastCount(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]func(w *world){
		"its order is due":           func(w *world) { ok(w.t, w.driver.DriveDue(context.Background())) },
		"its order is lost sight of": func(w *world) { ok(w.t, w.passes.Settle(context.Background())) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, seller, agent, v := lateWorld(t)
			w.uses(seller, v.ID, v.Bytes/2)
			w.goOn(time.Minute)
			same(t, "counted", w.read(agent, v.ID).Usage.Used(), v.Bytes/2)
			seller.Always(fake.Disable, fake.Refuse(procurement.Temporary))
			_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
			ok(t, err)
			w.clock.Advance(direct.SettleWithin - time.Hour)
			how(w)
			same(t, "held", w.read(agent, v.ID).Cost.Held > 0, true)
			w.clock.Advance(3 * time.Hour)
			how(w)
			if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 {
				t.Errorf("it cost %+v", now.Cost)
			}
			seller.Always(fake.Disable, fake.Step{})
			w.goOn(time.Hour)
			same(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
		})
	}
}

// Without a switch, what was used is read before the access is given up.
func TestASellerWithoutASwitchIsCountedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	seller.Always(fake.Disable, fake.Refuse(procurement.Unsupported))
	w.uses(seller, v.ID, v.Bytes/2)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	w.goOn(0)
	same(t, "given up at the seller", seller.Of(v.ID)[0].Released, true)
	if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 {
		t.Errorf("it cost %+v", now.Cost)
	}
	t.Run("and where it cannot be given up either, its counter is awaited", func(t *testing.T) {
		v := w.buy(agent, "dyn_straight")
		seller.Always(fake.Release, fake.Refuse(procurement.Unsupported))
		_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
		ok(t, err)
		w.goOn(lag / 2)
		w.uses(seller, v.ID, v.Bytes/5)
		same(t, "held", w.read(agent, v.ID).Cost.Held, dollars("0.5"))
		w.goOn(3 * lag)
		if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.1") || now.Cost.Held != 0 {
			t.Errorf("it cost %+v", now.Cost)
		}
	})
}

// An access that the seller does not show is looked for again: an empty list makes
// nothing free.
func TestADirectSessionThatIsNotShownIsLookedForAgain(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	hide := func(gone bool) { seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = gone }) }
	hide(true)
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	w.goOn(time.Hour)
	same(t, "held", w.read(agent, v.ID).Cost.Held, dollars("0.5"))
	hide(false)
	w.uses(seller, v.ID, v.Bytes/2)
	w.goOn(3 * lag)
	if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 {
		t.Errorf("shown again, it cost %+v", now.Cost)
	}
}

// A lost direct session is paid by its last count, and given up at the seller.
func TestALostDirectSessionPaysItsLastCount(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	w.uses(seller, v.ID, v.Bytes/5)
	w.goOn(time.Minute)
	seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	calls := seller.Calls(fake.Release)
	w.goOn(procurement.LostAfter + 2*procurement.LookAgainAfter)
	now := w.read(agent, v.ID)
	if now.Reason != session.ProviderLost || now.Cost.Charged != dollars("0.1") || now.Cost.Held != 0 {
		t.Errorf("it is %s with %+v", now.Reason, now.Cost)
	}
	same(t, "given up at the seller", seller.Calls(fake.Release), calls+1)
	t.Run("one that is back when it is cut is counted as any other", func(t *testing.T) {
		v := w.buy(agent, "dyn_straight")
		ok(t, w.store.Update(t.Context(), w.loses(v.ID)))
		w.uses(seller, v.ID, v.Bytes/2)
		w.goOn(3 * lag)
		if now := w.read(agent, v.ID); now.Cost.Charged != dollars("0.25") || now.Cost.Held != 0 {
			t.Errorf("it cost %+v", now.Cost)
		}
	})
}

// The job of the hour that a session ended in does not settle it before its seller counts.
func TestTheHourOfAnEndedDirectSessionDoesNotSettleIt(t *testing.T) {
	t.Parallel()
	w, seller, agent, v := lateWorld(t)
	w.uses(seller, v.ID, v.Bytes/10)
	w.goOn(time.Minute) // stores the job of the hour
	seller.Always(fake.Disable, fake.Refuse(procurement.Temporary))
	_, err := w.sessions.Terminate(t.Context(), agent, v.ID)
	ok(t, err)
	w.uses(seller, v.ID, v.Bytes/2)
	w.clock.Advance(time.Hour + time.Minute)
	ok(t, w.work())
	ok(t, w.passes.Sweep(t.Context()))
	same(t, "held", w.read(agent, v.ID).Cost.Held > 0, true)
	seller.Always(fake.Disable, fake.Step{})
	w.goOn(time.Hour)
	same(t, "charged", w.read(agent, v.ID).Cost.Charged, dollars("0.25"))
}
