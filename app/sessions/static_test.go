package sessions_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/test/apptest"
)

func TestSessionLimit(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{SessionLimit: 2})
	agent := w.Register()
	first := w.Buy(agent, apptest.Local)
	w.Buy(agent, apptest.LocalAsync)
	_, err := w.Create(agent, apptest.Local)
	apptest.ErrorIs(t, err, session.ErrLimit)
	if e := err.(*domain.Error); !e.Retryable || e.RetryAfter < time.Second || e.Details["limit"] != 2 {
		t.Errorf("the refusal is %+v", e)
	}
	_, err = w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: apptest.Form(apptest.Local), DryRun: true})
	apptest.ErrorIs(t, err, session.ErrLimit)
	w.Buy(w.Register(), apptest.Local) // another agent
	_, err = w.Sessions.Terminate(t.Context(), agent, first.ID)
	apptest.OK(t, err)
	w.Buy(agent, apptest.Local)
}

// A static address is one session's alone while it lives.
func TestStaticAddressesAreExclusive(t *testing.T) {
	t.Parallel()
	for _, product := range []string{apptest.Static, apptest.StaticAsync} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{Exits: 6, RepeatUpdates: true}) // three static ones
			agent := w.RegisterFunded(100)
			buy := func(n int) (sessions.View, error) {
				f := apptest.Form(product)
				f.Quantity = &n
				d, err := w.Sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
				if err != nil {
					return d.View, err
				}
				apptest.OK(t, w.RunOrders())
				v := w.Read(agent, d.View.ID)
				if v.Status == session.Failed {
					apptest.Equal(t, "the failure", v.Failure.Code, catalog.ErrOutOfStock.Code)
					return v, catalog.ErrOutOfStock
				}
				return v, nil
			}
			two, err := buy(2)
			apptest.OK(t, err)
			before := w.Balance(agent)
			_, err = buy(2)
			apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			apptest.Equal(t, "the balance", w.Balance(agent), before)
			one, err := buy(1)
			apptest.OK(t, err)
			taken := map[string]bool{}
			for _, e := range append(two.Exits, one.Exits...) {
				taken[e.IP.String()] = true
			}
			apptest.Equal(t, "different addresses", len(taken), 3)
			_, err = buy(1)
			apptest.ErrorIs(t, err, catalog.ErrOutOfStock)
			_, err = w.Sessions.Terminate(t.Context(), agent, two.ID)
			apptest.OK(t, err)
			again, err := buy(1)
			apptest.OK(t, err)
			if !strings.Contains(two.Exits[0].IP.String()+" "+two.Exits[1].IP.String(), again.Exits[0].IP.String()) {
				t.Errorf("got %v, free were %v", again.Exits, two.Exits)
			}
			w.Clock.Advance(31 * session.Day)
			apptest.OK(t, w.Tasks.ExpireSessions(t.Context()))
			_, err = buy(3)
			apptest.OK(t, err)
		})
	}
}
