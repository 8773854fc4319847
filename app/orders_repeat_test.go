package app_test

import (
	"testing"
	"time"

	"agentproxy/domain/session"
	"agentproxy/domain/supply"
	"agentproxy/test/fake"
)

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
	}
}

// Two processes go on with one planned order. What the slower one is refused while
// it still asks for the price proves nothing about the order that the other one
// has sent meanwhile.
func TestARefusalBeforeAnOrderIsSentRefusesNoSentOrder(t *testing.T) {
	w, second := pair(t)
	agent := w.register()
	price, order := make(chan struct{}), make(chan struct{})
	w.seller.Next(fake.Quote, fake.Step{Gate: price, Err: supply.Refuse(supply.Temporary, "")}, fake.Step{})
	w.seller.Next(fake.Provision, fake.Step{Gate: order})
	slow, fast := make(chan error, 1), make(chan error, 1)
	go func() { _, err := w.createWith(agent, "sta_both", key("k")); slow <- err }()
	until(t, "the slow one asks for the price", func() bool { return w.seller.Calls(fake.Quote) == 1 })
	id := w.texts(`SELECT id FROM sessions`)[0]
	go func() { fast <- w.sessions.Provision(t.Context(), id) }()
	until(t, "the fast one has sent the order", func() bool { return w.seller.Calls(fake.Provision) == 1 })
	close(price)
	ok(t, <-slow)
	close(order)
	ok(t, <-fast)
	same(t, "the session", w.read(agent, id).Status, session.Active)
	same(t, "sold by the next source", len(second.Books()), 0)
	w.reconciled()
}

// A repetition that is refused does not prove that the first time nothing was
// bought.
func TestARefusedRepetitionRefusesNoOrder(t *testing.T) {
	for _, class := range []supply.Class{supply.RateLimited, supply.Invalid, supply.Auth, supply.InsufficientFunds} {
		w := newWorld(t)
		w.seller.Can(func(c *supply.Capabilities) { c.Repeatable = true })
		agent := w.register()
		w.seller.Next(fake.Provision, fake.LoseAnswer())
		d, err := w.create(agent, remote)
		ok(t, err)
		w.seller.Always(fake.Provision, fake.Refuse(class))
		w.reconciled()
		same(t, "the session", w.read(agent, d.View.ID).Status, session.Active)
		w.seller.Next(fake.Provision, fake.LoseRequest())
		d, err = w.create(agent, remote)
		ok(t, err)
		w.reconciled()
		same(t, "what was not bought", w.read(agent, d.View.ID).Status, session.Failed)
	}
}
