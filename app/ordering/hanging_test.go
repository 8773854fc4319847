package ordering_test

import (
	"context"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// A provider that does not answer delays the orders of no other one.
func TestAProviderThatHangsDelaysNoOther(t *testing.T) {
	t.Parallel()
	w, second := apptest.TwoSellers(t)
	agent := w.RegisterFunded(100)
	w.Seller.SetAsync(3)
	for range 12 {
		w.Buy(agent, apptest.RemoteStatic)
	}
	hold := make(chan struct{})
	w.Seller.Always(fake.Read, fake.Step{Gate: hold})
	second.SetAsync(1)
	w.Seller.SetReady(false)
	d, err := w.CreateWith(agent, "sta_both", apptest.Call("k"))
	apptest.OK(t, err)
	apptest.Equal(t, "bought of", d.View.Provider, "second")
	w.Clock.Advance(time.Minute)
	run := make(chan error, 1)
	go func() { run <- w.Driver.DriveDue(context.Background()) }()
	until(t, "the session is active while the others hang", func() bool {
		return w.Read(agent, d.View.ID).Status == session.Active
	})
	if n := w.Seller.Calls(fake.Read); n > 8 {
		t.Errorf("%d calls hang at one provider", n)
	}
	w.Seller.Always(fake.Read, fake.Step{})
	close(hold)
	apptest.OK(t, <-run)
	apptest.OK(t, w.Driver.Wait(t.Context()))
}

// A call that a provider keeps waiting is answered as accepted in time, and done in the
// background.
func TestAnAgentDoesNotWaitForASlowProvider(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	quick := sessions.New(sessions.Config{AnswerWithin: time.Millisecond}, w.Base(), w.Catalog,
		w.Transitions, w.Driver, w.Fulfilment, w.Hub)
	agent := w.RegisterFunded(10)
	reached, on := pauseCall(w, fake.Provision, fake.Step{})
	in := sessions.Create{AgentID: agent, Form: apptest.Form(apptest.RemoteStatic), Call: apptest.Call("k")}
	d, err := quick.Create(t.Context(), in)
	apptest.OK(t, err)
	apptest.Equal(t, "the outcome", d.Outcome, ports.Pending)
	apptest.Equal(t, "the session", d.View.Status, session.Creating)
	reached()
	again, err := quick.Create(t.Context(), in)
	apptest.OK(t, err)
	apptest.Equal(t, "the outcome again", again.Outcome, ports.Pending)
	on()
	apptest.OK(t, w.Driver.Wait(t.Context()))
	v := w.Read(agent, d.View.ID)
	apptest.Equal(t, "the session at last", v.Status, session.Active)

	reached, on = pauseCall(w, fake.Extend, fake.Step{})
	d, err = quick.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID, Call: apptest.Call("r")})
	apptest.OK(t, err)
	apptest.Equal(t, "the outcome of the renewal", d.Outcome, ports.Pending)
	reached()
	on()
	apptest.OK(t, w.Driver.Wait(t.Context()))
	apptest.Equal(t, "the end", w.Read(agent, v.ID).ExpiresAt, v.ExpiresAt.Add(30*session.Day))
	apptest.Equal(t, "sold", len(w.Seller.Sales()), 1)
}

// deadlined notes until when the calls that spend money may take, and how long that was.
type deadlined struct {
	*fake.Provider
	ends []time.Time
	left []time.Duration
}

func (d *deadlined) note(ctx context.Context) {
	end, _ := ctx.Deadline()
	d.ends, d.left = append(d.ends, end), append(d.left, time.Until(end))
}

func (d *deadlined) Order(ctx context.Context, in procurement.Intent) (procurement.Delivery, error) {
	d.note(ctx)
	return d.Provider.Order(ctx, in)
}

func (d *deadlined) Renew(ctx context.Context, ref string, in procurement.Intent) ([]procurement.Renewed, error) {
	d.note(ctx)
	return d.Provider.Renew(ctx, ref, in)
}

// A call that spends money has the two minutes that sellers document, and ends before
// the order counts as that of a process that died.
func TestACallThatSpendsMoneyHasTime(t *testing.T) {
	t.Parallel()
	slow := &deadlined{Provider: fake.NewProvider("slow")}
	product := apptest.SharedProduct("sta_slow", session.Static, procurement.Source{Provider: "slow"})
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{slow}, Products: []catalog.Product{product}})
	slow.SetClock(w.Clock.Now)
	agent := w.RegisterFunded(10)
	bought := time.Now()
	v := w.Buy(agent, "sta_slow")
	renewed := time.Now()
	_, err := w.Sessions.Renew(t.Context(), sessions.Renew{AgentID: agent, SessionID: v.ID})
	apptest.OK(t, err)
	apptest.Equal(t, "calls", len(slow.left), 2)
	for n, began := range []time.Time{bought, renewed} { // each is before the time of its call began
		if left := slow.left[n]; slow.ends[n].Sub(began) < 2*time.Minute || left >= procurement.SendTimeout {
			t.Errorf("a call has %s", left)
		}
	}
}
