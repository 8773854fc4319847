package payments_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/ledger"
	"agentproxy/app/payments"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func call(key, body string) idempotency.Call {
	return idempotency.Call{Key: key, Path: "/v1/billing/recharge", Hash: []byte(body)}
}

func TestCreateRecharge(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent := b.Register()
	d, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("12.50")})
	apptest.OK(t, err)
	o := d.View.Order
	apptest.Equal(t, "status", d.Outcome, ports.Created)
	if !regexp.MustCompile(`^PAY20260515120000[a-z0-9]{8,}$`).MatchString(o.ID) {
		t.Errorf("the id is %s", o.ID)
	}
	if o.Status != recharge.Pending || o.Amount != apptest.Dollars("12.5") || o.Network != "tron-test" || !b.chain.Valid(o.Address) ||
		!o.CreatedAt.Equal(fake.Start) || !o.ExpiresAt.Equal(fake.Start.Add(30*time.Minute)) || d.View.Required != fake.FinalBehind {
		t.Errorf("the order is %+v", d.View)
	}
	t.Run("the address is the agent's own, for ever", func(t *testing.T) {
		apptest.Equal(t, "the second order's", b.order(agent, "1").Address, o.Address)
		other := b.Register()
		if b.order(other, "1").Address == o.Address {
			t.Error("another agent has it too")
		}
	})
	t.Run("amounts outside the rules are refused, and nothing is stored", func(t *testing.T) {
		before := b.Dump()
		for _, amount := range []string{"0.99", "10000.01", "1.001", "0", "-1"} {
			for _, dry := range []bool{false, true} {
				_, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars(amount), DryRun: dry})
				apptest.ErrorIs(t, err, domain.ErrInvalid)
			}
		}
		apptest.Equal(t, "the database", b.Dump(), before)
	})
	t.Run("a dry run answers what would be and stores nothing", func(t *testing.T) {
		before := b.Dump()
		d, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), DryRun: true, Call: call("dry", "")})
		apptest.OK(t, err)
		if d.Outcome != ports.Completed || d.Quote == nil || *d.Quote != (ledger.Quote{BalanceAfter: apptest.Dollars("15")}) {
			t.Errorf("answered %+v", d.Quote)
		}
		apptest.Equal(t, "the database", b.Dump(), before)
	})
	t.Run("another agent's order is not found", func(t *testing.T) {
		_, err := b.recharges.Get(t.Context(), b.Register(), o.ID)
		apptest.ErrorIs(t, err, recharge.ErrNotFound)
		_, err = b.recharges.List(t.Context(), "", "", domain.Page{Number: 1, Size: 9})
		apptest.ErrorIs(t, err, account.ErrNotFound)
	})
	t.Run("lists", func(t *testing.T) {
		list, err := b.recharges.List(t.Context(), agent, recharge.Pending, domain.Page{Number: 1, Size: 9})
		apptest.OK(t, err)
		apptest.Equal(t, "the agent's", list.Total, 2)
		list, err = b.recharges.All(t.Context(), "", domain.Page{Number: 1, Size: 9})
		apptest.OK(t, err)
		apptest.Equal(t, "everybody's", list.Total, 3)
		_, err = b.recharges.List(t.Context(), agent, "lost", domain.Page{Number: 1, Size: 9})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	})
	t.Run("the operator sees the address", func(t *testing.T) {
		d, err := b.recharges.Show(t.Context(), o.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "wallet", d.Wallet.Address, o.Address)
		apptest.Equal(t, "index", d.Wallet.Index, recharge.FirstIndex)
	})
	t.Run("a disabled agent gets none", func(t *testing.T) {
		agent := b.Register()
		apptest.OK(t, b.Accounts.Disable(t.Context(), agent, "test"))
		for _, dry := range []bool{false, true} {
			_, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), DryRun: dry})
			apptest.ErrorIs(t, err, account.ErrDisabled)
		}
	})
}

func TestTenOpenOrders(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent := b.RegisterWithWebhook()
	for range recharge.MaxOpen {
		b.order(agent, "5")
	}
	before := b.Dump()
	for _, dry := range []bool{false, true} {
		_, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), DryRun: dry, Call: call("k", "")})
		apptest.ErrorIs(t, err, recharge.ErrLimit)
	}
	apptest.Equal(t, "the database", b.Dump(), before)
	b.advance(31 * time.Minute)
	b.settle()
	b.watch()
	d, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), Call: call("k", "")})
	apptest.OK(t, err)
	apptest.Equal(t, "replayed", d.Replayed, false)
	apptest.Equal(t, "events of the old ones", strings.Count(b.eventsOf(agent), "expired"), recharge.MaxOpen)
}

func TestRechargeIdempotency(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent := b.Register()
	in := payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), Call: call("k", "body")}
	first, err := b.recharges.Create(t.Context(), in)
	apptest.OK(t, err)
	b.pay(first.View.Address, "5")
	b.settle()
	b.watch()
	before := b.Dump()
	again, err := b.recharges.Create(t.Context(), in)
	apptest.OK(t, err)
	if !again.Replayed || again.Outcome != ports.Created || again.View.ID != first.View.ID || again.View.Status != recharge.Paid || again.View.TxID == "" {
		t.Errorf("replayed %+v", again)
	}
	in.Call.Hash = []byte("other")
	_, err = b.recharges.Create(t.Context(), in)
	apptest.ErrorIs(t, err, domain.ErrIdempotencyConflict)
	apptest.Equal(t, "the database", b.Dump(), before)
	other := in
	other.AgentID = b.Register()
	d, err := b.recharges.Create(t.Context(), other)
	apptest.OK(t, err)
	apptest.Equal(t, "another agent's", d.Replayed, false)
	b.Clock.Advance(24*time.Hour + time.Second)
	d, err = b.recharges.Create(t.Context(), in)
	apptest.OK(t, err)
	apptest.Equal(t, "after a day", d.Replayed, false)
}

func TestParallelRecharges(t *testing.T) {
	t.Parallel()
	for _, keys := range []int{1, 200} {
		t.Run(fmt.Sprintf("%d keys", keys), func(t *testing.T) {
			t.Parallel()
			b := fixtureOf(apptest.New(t))
			agent := b.Register()
			var made, replayed, limited atomic.Int32
			apptest.Concurrently(200, func(i int) {
				in := payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5"), Call: call(fmt.Sprint(i%keys), "body")}
				d, err := b.recharges.Create(context.Background(), in)
				for range 10 { // the pool of a busy server: the key makes it safe to repeat
					if !errors.Is(err, domain.ErrUnavailable) {
						break
					}
					d, err = b.recharges.Create(context.Background(), in)
				}
				switch {
				case errors.Is(err, recharge.ErrLimit):
					limited.Add(1)
				case err != nil:
					t.Error(err)
				case d.Replayed:
					replayed.Add(1)
				default:
					made.Add(1)
				}
			})
			want := min(keys, recharge.MaxOpen)
			apptest.Equal(t, "made", int(made.Load()), want)
			apptest.Equal(t, "others", int(replayed.Load()+limited.Load()), 200-want)
			apptest.Equal(t, "orders", len(b.Column(`SELECT id FROM recharge_orders`)), want)
			apptest.Equal(t, "addresses", len(b.Column(`SELECT address FROM recharge_addresses`)), 1)
		})
	}
}

// wrongKeys derives what is no address (F22).
type wrongKeys struct{ *fake.Keys }

func (wrongKeys) Address(uint32) (string, error) { return "", nil }

func TestAnInvalidAddressIsNeverShown(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent := b.Register()
	u := payments.NewOrders(payments.Config{}, b.Store, b.Clock, b.IDs, b.chain, wrongKeys{b.keys})
	before := b.Dump()
	if _, err := u.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5")}); err == nil {
		t.Error("an order without an address was made")
	}
	apptest.Equal(t, "the database", b.Dump(), before)
	o := b.order(agent, "5")
	b.Exec(`UPDATE recharge_addresses SET address = LOWER(address)`)
	if _, err := b.recharges.Create(t.Context(), payments.CreateOrder{AgentID: agent, Amount: apptest.Dollars("5")}); err == nil {
		t.Error("an address that was damaged was shown")
	}
	b.Exec(`UPDATE recharge_addresses SET address = ?`, o.Address)
}

// A new account key brings a new address; the old one is credited as before and
// given to no other agent.
func TestAccountKeyChanges(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, old := b.payer("5")
	b.keys = fake.NewKeys("b")
	b.restart()
	o := b.order(agent, "7")
	if o.Address == old.Address {
		t.Fatal("the address is the old one")
	}
	b.pay(old.Address, "5")
	b.pay(o.Address, "7")
	b.settle()
	b.watch()
	b.expectOrder(old, recharge.Paid, "5")
	b.expectOrder(o, recharge.Paid, "7")
	b.advance(recharge.Late / 10)
	b.pay(old.Address, "3")
	b.settle()
	b.watch()
	b.expectCredited(agent, "15")
	seen := map[string]bool{old.Address: true, o.Address: true}
	for _, name := range []string{"a", "b", "a"} {
		b.keys = fake.NewKeys(name)
		b.restart()
		_, other := b.payer("1")
		if seen[other.Address] {
			t.Errorf("%s was given out twice", other.Address)
		}
		seen[other.Address] = true
	}
	b.keys = fake.NewKeys("a")
	b.restart()
	apptest.Equal(t, "back under the first key", b.order(agent, "1").Address, old.Address)
	b.expectAllCredited()
}

func TestTidyForgetsWebhookEvents(t *testing.T) {
	t.Parallel()
	b := newFixture(t)
	agent, _ := b.payer("10")
	b.advance(recharge.Window + 2*time.Minute)
	b.watch()
	apptest.Equal(t, "events", b.eventsOf(agent), "expired")
	b.Clock.Advance(30 * 24 * time.Hour)
	apptest.OK(t, b.Tasks.Purge(t.Context()))
	apptest.Equal(t, "after 30 days", b.eventsOf(agent), "expired")
	b.Clock.Advance(time.Hour + time.Second)
	apptest.OK(t, b.Tasks.Purge(t.Context()))
	apptest.Equal(t, "after more", b.eventsOf(agent), "")
}
