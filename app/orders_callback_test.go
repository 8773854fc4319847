package app_test

import (
	"net/http"
	"testing"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/ports"
	"agentproxy/test/fake"
)

// caller is a seller that calls back.
type caller struct {
	*fake.Provider
	refs []string
	err  error
}

func (c *caller) Callback(map[string][]string, []byte, time.Time) ([]string, error) {
	return c.refs, c.err
}

// A provider's call lets its orders be read before their time, and nothing else.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	seller := &caller{Provider: fake.NewProvider("calls")}
	seller.SetAsync(1)
	w := open(t, setup{more: []ports.Provider{seller}, sell: []catalog.Product{bothOf("sta_called", session.Static, procurement.Source{Provider: "calls"})}})
	agent := w.rich(100)
	call := func(name string) error { return w.callbacks.Receive(t.Context(), name, http.Header{}, nil) }
	for _, refs := range [][]string{nil, {"ref2", "unknown"}} {
		v := w.buy(agent, "sta_called")
		same(t, "before", v.Status, session.Creating)
		ok(t, w.work())
		same(t, "too early", w.read(agent, v.ID).Status, session.Creating)
		seller.refs = refs
		ok(t, call("calls"))
		ok(t, w.work())
		same(t, "sta_called", w.read(agent, v.ID).Status, session.Active)
	}
	v := w.buy(agent, "sta_called")
	seller.err = domain.ErrInvalid
	refused(t, call("calls"), domain.ErrInvalid)
	ok(t, w.work())
	same(t, "a forged call", w.read(agent, v.ID).Status, session.Creating)
	for _, name := range []string{"remote", "embedded", "nobody"} {
		if err := call(name); err == nil || err.(*domain.Error).Code != "NOT_FOUND" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A call that names an order hurries that one alone, and none that needs no look.
func TestACallbackHurriesWhatItNames(t *testing.T) {
	t.Parallel()
	seller := &caller{Provider: fake.NewProvider("calls")}
	w := open(t, setup{more: []ports.Provider{seller}, sell: []catalog.Product{bothOf("sta_called", session.Static, procurement.Source{Provider: "calls"})}})
	seller.SetClock(w.clock.Now)
	agent := w.rich(100)
	call := func(refs ...string) {
		t.Helper()
		seller.refs = refs
		ok(t, w.callbacks.Receive(t.Context(), "calls", nil, nil))
		ok(t, w.work())
	}
	live, ended := w.buy(agent, "sta_called"), w.buy(agent, "sta_called")
	_, err := w.sessions.Terminate(t.Context(), agent, ended.ID)
	ok(t, err)
	same(t, "jobs that give it up", len(w.pending()), 1)
	ok(t, w.work())
	w.clock.Advance(time.Minute)
	reads := seller.Calls(fake.Read)
	call()
	same(t, "a live one is read for a call without a name", seller.Calls(fake.Read), reads)
	call("ref2")
	if o := w.order(ended.ID); !o.NextAt.IsZero() {
		t.Errorf("one that is given up is due at %s", o.NextAt)
	}
	seller.Next(fake.Provision, fake.LoseAnswer())
	lost := w.buy(agent, "sta_called")
	same(t, "one that nobody knows of", lost.Status, session.Creating)
	call()
	same(t, "after a call without a name", w.read(agent, lost.ID).Status, session.Active)
	seller.SetAsync(1)
	one, other := w.buy(agent, "sta_called"), w.buy(agent, "sta_called")
	call("ref4")
	same(t, "the one that is named", w.read(agent, one.ID).Status, session.Active)
	same(t, "the other one", w.read(agent, other.ID).Status, session.Creating)
	t.Run("what is gone for a moment is not lost by being asked again", func(t *testing.T) {
		seller.Change(live.ID, func(p *fake.Purchase) { p.Gone = true })
		for range 300 {
			call("ref1")
			same(t, "the time to ask again", w.order(live.ID).NextAt, w.clock.Now().Add(procurement.LookAgainAfter))
			w.clock.Advance(20 * time.Second)
		}
		same(t, "the session", w.read(agent, live.ID).Status, session.Active)
		w.clock.Advance(procurement.LostAfter)
		ok(t, w.work())
		same(t, "later", w.read(agent, live.ID).Reason, session.ProviderLost)
	})
}
