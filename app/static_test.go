package app_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

func TestSessionLimit(t *testing.T) {
	t.Parallel()
	w := open(t, setup{limit: 2})
	agent := w.register()
	first := w.buy(agent, local)
	w.buy(agent, localLater)
	_, err := w.create(agent, local)
	refused(t, err, session.ErrLimit)
	if e := err.(*domain.Error); !e.Retryable || e.RetryAfter < time.Second || e.Details["limit"] != 2 {
		t.Errorf("the refusal is %+v", e)
	}
	_, err = w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: form(local), DryRun: true})
	refused(t, err, session.ErrLimit)
	w.buy(w.register(), local) // another agent
	_, err = w.sessions.Terminate(t.Context(), agent, first.ID)
	ok(t, err)
	w.buy(agent, local)
}

// A static address is one session's alone while it lives.
func TestStaticAddressesAreExclusive(t *testing.T) {
	t.Parallel()
	for _, product := range []string{static, staticLater} {
		t.Run(product, func(t *testing.T) {
			t.Parallel()
			w := open(t, setup{exits: 6, unruly: true}) // three static ones
			agent := w.rich(100)
			buy := func(n int) (sessions.View, error) {
				f := form(product)
				f.Quantity = &n
				d, err := w.sessions.Create(t.Context(), sessions.Create{AgentID: agent, Form: f})
				if err != nil {
					return d.View, err
				}
				ok(t, w.work())
				v := w.read(agent, d.View.ID)
				if v.Status == session.Failed {
					same(t, "the failure", v.Failure.Code, catalog.ErrOutOfStock.Code)
					return v, catalog.ErrOutOfStock
				}
				return v, nil
			}
			two, err := buy(2)
			ok(t, err)
			before := w.balance(agent)
			_, err = buy(2)
			refused(t, err, catalog.ErrOutOfStock)
			same(t, "the balance", w.balance(agent), before)
			one, err := buy(1)
			ok(t, err)
			taken := map[string]bool{}
			for _, e := range append(two.Exits, one.Exits...) {
				taken[e.IP.String()] = true
			}
			same(t, "different addresses", len(taken), 3)
			_, err = buy(1)
			refused(t, err, catalog.ErrOutOfStock)
			_, err = w.sessions.Terminate(t.Context(), agent, two.ID)
			ok(t, err)
			again, err := buy(1)
			ok(t, err)
			if !strings.Contains(two.Exits[0].IP.String()+" "+two.Exits[1].IP.String(), again.Exits[0].IP.String()) {
				t.Errorf("got %v, free were %v", again.Exits, two.Exits)
			}
			w.clock.Advance(31 * session.Day)
			ok(t, w.passes.ExpireSessions(t.Context()))
			_, err = buy(3)
			ok(t, err)
		})
	}
}
