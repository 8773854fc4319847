package ordering_test

import (
	"net/http"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

// callbackProvider is a seller that calls back.
type callbackProvider struct {
	*fake.Provider
	refs []string
	err  error
}

func (c *callbackProvider) Callback(map[string][]string, []byte, time.Time) ([]string, error) {
	return c.refs, c.err
}

// A provider's call lets its orders be read before their time, and nothing else.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	seller := &callbackProvider{Provider: fake.NewProvider("calls")}
	seller.SetAsync(1)
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{seller}, Products: []catalog.Product{apptest.SharedProduct("sta_called", session.Static, procurement.Source{Provider: "calls"})}})
	agent := w.RegisterFunded(100)
	call := func(name string) error { return w.Callbacks.Receive(t.Context(), name, http.Header{}, nil) }
	for _, refs := range [][]string{nil, {"ref2", "unknown"}} {
		v := w.Buy(agent, "sta_called")
		apptest.Equal(t, "before", v.Status, session.Creating)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "too early", w.Read(agent, v.ID).Status, session.Creating)
		seller.refs = refs
		apptest.OK(t, call("calls"))
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "sta_called", w.Read(agent, v.ID).Status, session.Active)
	}
	v := w.Buy(agent, "sta_called")
	seller.err = domain.ErrInvalid
	apptest.ErrorIs(t, call("calls"), domain.ErrInvalid)
	apptest.OK(t, w.RunOrders())
	apptest.Equal(t, "a forged call", w.Read(agent, v.ID).Status, session.Creating)
	for _, name := range []string{"remote", "embedded", "unknown"} {
		if err := call(name); err == nil || err.(*domain.Error).Code != "NOT_FOUND" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call that names an order hurries that one alone, and none that needs no look.
func TestACallbackHurriesWhatItNames(t *testing.T) {
	t.Parallel()
	seller := &callbackProvider{Provider: fake.NewProvider("calls")}
	w := apptest.Open(t, apptest.Options{Providers: []ports.Provider{seller}, Products: []catalog.Product{apptest.SharedProduct("sta_called", session.Static, procurement.Source{Provider: "calls"})}})
	seller.SetClock(w.Clock.Now)
	agent := w.RegisterFunded(100)
	call := func(refs ...string) {
		t.Helper()
		seller.refs = refs
		apptest.OK(t, w.Callbacks.Receive(t.Context(), "calls", nil, nil))
		apptest.OK(t, w.RunOrders())
	}
	live, ended := w.Buy(agent, "sta_called"), w.Buy(agent, "sta_called")
	_, err := w.Sessions.Terminate(t.Context(), agent, ended.ID)
	apptest.OK(t, err)
	apptest.Equal(t, "jobs that give it up", len(w.OrderJobs()), 1)
	apptest.OK(t, w.RunOrders())
	w.Clock.Advance(time.Minute)
	reads := seller.Calls(fake.Read)
	call()
	apptest.Equal(t, "a live one is read for a call without a name", seller.Calls(fake.Read), reads)
	call("ref2")
	if o := lastOrder(w, ended.ID); !o.NextAt.IsZero() {
		t.Errorf("one that is given up is due at %s", o.NextAt)
	}
	seller.Next(fake.Provision, fake.LoseAnswer())
	lost := w.Buy(agent, "sta_called")
	apptest.Equal(t, "an unknown one", lost.Status, session.Creating)
	call()
	apptest.Equal(t, "after a call without a name", w.Read(agent, lost.ID).Status, session.Active)
	seller.SetAsync(1)
	one, other := w.Buy(agent, "sta_called"), w.Buy(agent, "sta_called")
	call("ref4")
	apptest.Equal(t, "the one that is named", w.Read(agent, one.ID).Status, session.Active)
	apptest.Equal(t, "the other one", w.Read(agent, other.ID).Status, session.Creating)
	t.Run("what is gone for a moment is not lost by being asked again", func(t *testing.T) {
		seller.Change(live.ID, func(p *fake.Purchase) { p.Gone = true })
		for range 300 {
			call("ref1")
			apptest.Equal(t, "the time to ask again", lastOrder(w, live.ID).NextAt, w.Clock.Now().Add(procurement.RereadAfter))
			w.Clock.Advance(20 * time.Second)
		}
		apptest.Equal(t, "the session", w.Read(agent, live.ID).Status, session.Active)
		w.Clock.Advance(procurement.LostAfter)
		apptest.OK(t, w.RunOrders())
		apptest.Equal(t, "later", w.Read(agent, live.ID).Reason, session.ProviderLost)
	})
}
