package payments_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"agentproxy/adapters/chain"
	"agentproxy/adapters/storage"
	"agentproxy/adapters/system"
	"agentproxy/app/payments"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/campaign"
	"agentproxy/test/fake"
	"agentproxy/test/fake/trongrid"
	"agentproxy/test/sqlitetest"
	"agentproxy/test/syncbuffer"
)

// The periods of the tasks that read TRON, as they are wired.
const (
	watchEvery = 10 * time.Second
	idleEvery  = 30 * time.Second
	auditEvery = 10 * time.Minute
	auditLimit = 100
)

// tronService is a service that reads a fake TronGrid by the clock of a bubble.
type tronService struct {
	*fixture
	grid *trongrid.Server
}

// withTron runs a test with a clock that moves as soon as nothing else does.
func withTron(t *testing.T, test func(t *testing.T, x *tronService)) {
	synctest.Test(t, func(t *testing.T) {
		// Of a whole world other parts would keep goroutines beyond the bubble.
		db, err := storage.Open(t.Context(), storage.Config{Path: sqlitetest.File(t)})
		apptest.OK(t, err)
		defer func() { apptest.OK(t, db.Close()) }()
		_, err = db.Writer().Exec("PRAGMA synchronous = OFF") // a day has thousands of writes
		apptest.OK(t, err)
		b := &fixture{World: &apptest.World{T: t, DB: db, Store: &apptest.FaultyStore{Store: db}, IDs: new(fake.IDs)},
			keys: fake.NewKeys("a"), logs: &syncbuffer.Buffer{}}
		x := &tronService{fixture: b, grid: trongrid.New()}
		x.grid.Live()
		tron, err := chain.NewTron(chain.TronConfig{Network: "tron-mainnet", APIKey: "k", Client: &http.Client{Transport: x.grid},
			Logger: slog.New(slog.NewTextHandler(b.logs, nil))})
		apptest.OK(t, err)
		b.recharges = payments.NewOrders(payments.Config{}, b.Store, system.Clock{}, b.IDs, tron, b.keys)
		b.payments = payments.NewWatcher(b.Store, system.Clock{}, b.IDs, tron, slog.New(slog.NewTextHandler(b.logs, nil)))
		b.payments.SetIdle(idleEvery)
		test(t, x)
	})
}

// payer makes an agent and an order.
func (x *tronService) payer(amount string) (agent string, o recharge.Order) {
	agent = "agt_1"
	apptest.OK(x.T, x.Store.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		return openAccount(ctx, tx, agent)
	}))
	return agent, x.order(agent, amount)
}

// openAccount stores an agent with an empty wallet.
func openAccount(ctx context.Context, tx ports.Tx, agent string) (err error) {
	a := account.Agent{ID: agent, Status: account.Active, KeyHash: []byte("key of " + agent), SecretHash: []byte("secret")}
	if a.Referrer, err = tx.Referrers().Default(ctx); err != nil {
		return err
	}
	if err := tx.Agents().Insert(ctx, a); err != nil {
		return err
	}
	return tx.Ledger().Open(ctx, billing.Wallet{AgentID: agent, TrialExpiresAt: time.Now()})
}

// run runs the tasks for a time. Each is late rather than twice.
func (x *tronService) run(d time.Duration) {
	end := time.Now().Add(d)
	audit := time.Now().Add(auditEvery)
	for next := time.Now(); next.Before(end); next = later(next.Add(watchEvery), time.Now()) {
		time.Sleep(time.Until(next))
		if err := x.payments.Watch(x.T.Context()); err != nil {
			x.T.Fatalf("at %s: %v", time.Now(), err)
		}
		if !time.Now().Before(audit) {
			audit = audit.Add(auditEvery)
			if err := x.payments.Audit(x.T.Context(), auditLimit); err != nil {
				x.T.Fatalf("at %s: %v", time.Now(), err)
			}
		}
	}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// addAddresses makes a number of addresses, all but one of agents that order nothing.
func (x *tronService) addAddresses(addresses int) {
	for part := range (addresses + 999) / 1000 {
		apptest.OK(x.T, x.Store.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			for n := part * 1000; n < min(addresses, part*1000+1000); n++ {
				address := trongrid.Address(1000 + n)
				if err := openAccount(ctx, tx, "agt_"+address); err != nil {
					return err
				}
				index, err := tx.PayAddresses().NextIndex(ctx, "tron-mainnet", "c")
				if err != nil {
					return err
				}
				err = tx.PayAddresses().InsertAddress(ctx, recharge.Address{Network: "tron-mainnet", Fingerprint: "c", Index: index,
					AgentID: "agt_" + address, Address: address, CreatedAt: time.Now(), ReadThrough: time.Now()})
				if err != nil {
					return err
				}
			}
			return nil
		}))
	}
}

// requests is how many calls were made, and how many if each of a batch counts.
func (x *tronService) requests() (made, counted int) {
	for _, c := range x.grid.Calls() {
		made++
		counted += c.Count()
	}
	return made, counted
}

// A day of calls to TronGrid, whose free plan has 100,000. An order is open all day, so that the
// chain is read as often as it ever is, and each hour a payment comes in. By default one hour is
// played; where there are many addresses the later ones have fewer calls than the first.
func TestCallsOfADay(t *testing.T) {
	for _, day := range []struct{ addresses, hours int }{
		{0, campaign.Rounds(1, 24)}, {3, campaign.Rounds(1, 24)}, {10, campaign.Rounds(1, 24)}, {11, campaign.Rounds(1, 24)},
		{campaign.Rounds(1100, 10_000), campaign.Rounds(1, 24)},
	} {
		t.Run(fmt.Sprint(day.addresses), func(t *testing.T) {
			withTron(t, func(t *testing.T, x *tronService) {
				x.addAddresses(max(day.addresses-1, 0))
				var agent string
				var o recharge.Order
				if day.addresses > 0 {
					agent, o = x.payer("10")
				}
				x.grid.Quota(100_000, http.StatusForbidden)
				for range day.hours {
					for half := range 2 { // an order is open all the time
						if day.addresses > 0 {
							x.order(agent, "1000")
						}
						if half == 0 && day.addresses > 0 {
							x.grid.Send(trongrid.Address(1), o.Address, 1_000_000)
						}
						x.run(30 * time.Minute)
					}
				}
				made, counted := x.requests()
				made, counted = made*24/day.hours, counted*24/day.hours
				t.Logf("%6d addresses: %d requests a day, %d if each call of a batch counts", day.addresses, made, counted)
				if counted >= 60_000 || made == 0 {
					t.Errorf("%d calls a day", counted)
				}
				if day.addresses > 0 {
					x.expectCredited(agent, fmt.Sprint(day.hours))
				}
			})
		})
	}
}

// When the quota is used up a payment is credited all the same, within minutes.
func TestAPaymentWithoutAQuota(t *testing.T) {
	for _, status := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			withTron(t, func(t *testing.T, x *tronService) {
				x.addAddresses(2500)
				agent, o := x.payer("10")
				x.run(time.Minute)
				x.grid.Quota(100_000, status)
				x.grid.Spend()
				x.run(5 * time.Minute)
				x.grid.Send(trongrid.Address(1), o.Address, 10_000_000)
				x.run(3 * time.Minute)
				x.expectOrder(o, recharge.Paid, "10")
				x.expectCredited(agent, "10")
				apptest.Equal(t, "it is logged", x.logged("quota"), true)
			})
		})
	}
}

// Three days of downtime with ten thousand addresses are caught up with in less than 300 calls.
func TestDownForThreeDays(t *testing.T) {
	addresses := campaign.Rounds(1100, 10_000)
	most := (addresses + 999) / 1000 * 30
	withTron(t, func(t *testing.T, x *tronService) {
		x.addAddresses(addresses - 1)
		agent, o := x.payer("10")
		x.run(time.Minute)
		time.Sleep(36 * time.Hour)
		x.grid.Send(trongrid.Address(1), o.Address, 7_000_000)
		x.grid.Mine(0)
		time.Sleep(36 * time.Hour)
		x.grid.Forget()
		behind := x.grid.Solid()
		for passes := 1; ; passes++ {
			apptest.OK(t, x.payments.Watch(t.Context()))
			st, err := x.payments.Status(t.Context())
			apptest.OK(t, err)
			if st.Final >= behind {
				t.Logf("caught up in %d passes", passes)
				break
			}
			if passes == 100 {
				t.Fatalf("block %d after %d passes, want %d", st.Final, passes, behind)
			}
			time.Sleep(watchEvery)
		}
		x.expectCredited(agent, "7")
		_, counted := x.requests()
		t.Logf("%d calls for %d addresses", counted, addresses)
		if counted >= most {
			t.Errorf("%d calls", counted)
		}
	})
}
