package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"agentproxy/app/reconcile"
	"agentproxy/app/sessions"
	"agentproxy/domain/procurement"
	"agentproxy/domain/session"
	"agentproxy/test/fake"
)

// Many that vanish at once are a fault of the seller's list: nothing ends for it, however
// long it lasts, and the operator is told once.
func TestASellerThatShowsNothingEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var text bytes.Buffer
	watch := reconcile.NewWatch(w.store, slog.New(slog.NewTextHandler(&text, nil)))
	agent := w.rich(100)
	var bought []sessions.View
	for range 3 {
		bought = append(bought, w.buy(agent, remoteStatic), w.buy(agent, remote))
	}
	hide := func(gone bool) {
		for _, v := range bought {
			w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = gone })
		}
	}
	alarms := func(of string) int { return strings.Count(text.String(), of) }
	hide(true)
	for range 10 {
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		ok(t, watch.Run(t.Context()))
	}
	for _, v := range bought {
		same(t, v.ID, w.read(agent, v.ID).Status, session.Active)
	}
	same(t, "given up at the seller", w.seller.Calls(fake.Release), 0)
	same(t, "told of", alarms("the provider does not show many of its orders"), 1)
	hide(false)
	w.clock.Advance(procurement.LookAgainAfter)
	ok(t, w.work())
	ok(t, watch.Run(t.Context()))
	ok(t, watch.Run(t.Context()))
	same(t, "missing after it shows them again", w.owed("remote").Missing, 0)
	same(t, "told that they are back", alarms("the provider shows its orders again"), 1)

	t.Run("one alone is lost after a second look", func(t *testing.T) {
		w.seller.Change(bought[0].ID, func(p *fake.Purchase) { p.Gone = true })
		w.clock.Advance(time.Hour)
		ok(t, w.work())
		w.clock.Advance(procurement.LostAfter)
		ok(t, w.work())
		ok(t, w.work())
		same(t, "the session", w.read(agent, bought[0].ID).Reason, session.ProviderLost)
		same(t, "the others", w.read(agent, bought[1].ID).Status, session.Active)
		same(t, "given up at the seller", w.seller.Calls(fake.Release), 1)
	})
}

// What is on its way to a session is not given up either when the seller shows nothing.
func TestASellerThatShowsNothingFailsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seller.SetAsync(1000)
	agent := w.rich(100)
	one, two := w.buy(agent, remoteStatic), w.buy(agent, remoteStatic)
	for _, v := range []sessions.View{one, two} {
		w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = true })
	}
	w.pass(6 * 60)
	for _, v := range []sessions.View{one, two} {
		same(t, v.ID, w.read(agent, v.ID).Status, session.Creating)
		w.seller.Change(v.ID, func(p *fake.Purchase) { p.Gone = false })
	}
	w.seller.SetAsync(0)
	w.seller.Change(one.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	w.seller.Change(two.ID, func(p *fake.Purchase) { p.Delivery.State = procurement.Live })
	w.pass(20)
	for _, v := range []sessions.View{one, two} {
		same(t, v.ID, w.read(agent, v.ID).Status, session.Active)
		same(t, v.ID+" is missing", w.order(v.ID).LostAt.IsZero(), true)
	}
}
