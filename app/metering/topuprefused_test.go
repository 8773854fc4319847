package metering_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"agentproxy/app/idempotency"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
	"agentproxy/domain/traffic"
	"agentproxy/test/apptest"
)

// change replaces the product of the sessions that these tests buy, after they were bought; nil removes it.
func change(w *apptest.World, how func(*catalog.Product)) {
	w.T.Helper()
	sold := slices.Clone(w.Catalog.Products(catalog.Filter{}, domain.Page{Number: 1, Size: 100}).Items)
	i := slices.IndexFunc(sold, func(p catalog.Product) bool { return p.No == apptest.Local })
	if how == nil {
		sold = slices.Delete(sold, i, i+1)
	} else {
		sold[i].Sources = slices.Clone(sold[i].Sources)
		how(&sold[i])
	}
	apptest.OK(w.T, w.Catalog.Replace(sold))
}

// What refuses an addition refuses that of a call, tried or not, and that of the session itself, and
// changes nothing in the ledger.
func TestRefusedAdditions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, code string
		before     func(*apptest.World, string)
	}{
		{"a tier that the account has not", "TIER_REQUIRED", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.MinTier = account.FundedTier })
		}},
		{"no own money for what trial credit does not pay", "INSUFFICIENT_BALANCE", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.OwnMoneyOnly = true })
		}},
		{"own money that is not enough", "INSUFFICIENT_BALANCE", func(w *apptest.World, agent string) {
			change(w, func(p *catalog.Product) { p.OwnMoneyOnly = true })
			_, err := w.Wallet.Adjust(w.T.Context(), agent, apptest.Dollars("0.039999"), "for the test")
			apptest.OK(w.T, err)
		}},
		{"a price that the balance does not cover", "INSUFFICIENT_BALANCE", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.Price = apptest.Dollars("1000") })
		}},
		{"a product that is sold no more", "PRODUCT_NOT_FOUND", func(w *apptest.World, _ string) { change(w, nil) }},
		{"a product that is not available", "PRODUCT_OUT_OF_STOCK", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.Available = false })
		}},
		{"a seller that costs more than the agent pays", "PRODUCT_OUT_OF_STOCK", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.Sources[0].Cost = apptest.Dollars("0.400001") })
		}},
		{"less than is sold now", "INVALID_REQUEST", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.MinBytes = 200_000_000 })
		}},
		{"more than is sold now", "INVALID_REQUEST", func(w *apptest.World, _ string) {
			change(w, func(p *catalog.Product) { p.MinBytes, p.MaxBytes = 1_000_000, 50_000_000 })
		}},
		{"a budget that is used up", "BUDGET_EXCEEDED", func(w *apptest.World, agent string) {
			w.SetBudget(agent, "0.05", "10", false)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.RegisterWithWebhook()
			v := autoSession(w, agent, 50, 5)
			c.before(w, agent)
			entries, dump := w.Entries(agent), w.Dump()
			request := sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: apptest.Gigabytes("0.1"),
				Call: idempotency.Call{Key: "k", Path: "/v1/sessions/" + v.ID + "/traffic", Hash: []byte("body")}}
			for _, request.DryRun = range []bool{true, false, false} { // repeated under its key
				_, err := w.Sessions.TopUp(t.Context(), request)
				if refusal, ok := errors.AsType[*domain.Error](err); !ok || refusal.Code != c.code {
					t.Errorf("dry run %t: %v, want %s", request.DryRun, err, c.code)
				}
			}
			apptest.Equal(t, "the database", w.Dump(), dump)

			for i := range 3 {
				w.UseBytes(v.ID, string(rune('a'+i)), 20_000_000)
				w.Clock.Advance(2 * time.Minute)
			}
			got := w.Read(agent, v.ID)
			if got.TopUps.Failed != c.code || got.Bytes != 100_000_000 || got.TopUps.No != 0 || got.Status != session.Active {
				t.Errorf("%s with %d bytes, %q", got.Status, got.Bytes, got.TopUps.Failed)
			}
			apptest.Equal(t, "the ledger", w.Entries(agent), entries)
			hooks, feed := newsOf(w, agent, v.ID)
			apptest.Equal(t, "events", hooks, "session.top_up_failed")
			apptest.Equal(t, "the feed", feed, "top_up_failed "+c.code)
		})
	}
}

// A key under which an addition was refused buys once when it is not refused any more.
func TestARefusedAdditionIsRepeatedUnderItsKey(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	agent := w.Register()
	v := w.BuySmall(agent)
	change(w, func(p *catalog.Product) { p.OwnMoneyOnly = true })
	request := sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: apptest.Gigabytes("0.1"),
		Call: idempotency.Call{Key: "k", Path: "/v1/sessions/" + v.ID + "/traffic", Hash: []byte("body")}}
	_, err := w.Sessions.TopUp(t.Context(), request)
	if err == nil {
		t.Fatal("trial credit was taken")
	}
	_, err = w.Wallet.Adjust(t.Context(), agent, apptest.Dollars("0.04"), "for the test")
	apptest.OK(t, err)
	for _, replayed := range []bool{false, true} {
		d, err := w.Sessions.TopUp(t.Context(), request)
		apptest.OK(t, err)
		apptest.Equal(t, "replayed", d.Replayed, replayed)
		apptest.Equal(t, "bytes", d.View.Bytes, 200_000_000)
	}
	apptest.Equal(t, "the ledger", w.Entries(agent), "trial_grant 10000000, hold -40000, adjustment 40000, hold -40000")
}

// A session that ended buys nothing more, whatever its gateway reports after that.
func TestAnEndedSessionBuysNothing(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*apptest.World, string, string) error{
		"by its agent": func(w *apptest.World, agent, id string) error {
			_, err := w.Sessions.Terminate(w.T.Context(), agent, id)
			return err
		},
		"with its account": func(w *apptest.World, agent, _ string) error {
			return w.Accounts.Disable(w.T.Context(), agent, "for the test")
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
			agent := w.Register()
			v := autoSession(w, agent, 99, 5)
			used := w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Want: 60_000_000}).Granted
			apptest.OK(t, end(w, agent, v.ID))
			before := w.Entries(agent)
			for _, dry := range []bool{true, false} {
				_, err := w.Sessions.TopUp(t.Context(), sessions.TopUp{AgentID: agent, SessionID: v.ID, Bytes: apptest.Gigabytes("0.1"), DryRun: dry})
				if !errors.Is(err, session.ErrOver) && !errors.Is(err, account.ErrDisabled) {
					t.Errorf("an addition: %v", err)
				}
			}
			apptest.Equal(t, "the ledger", w.Entries(agent), before)
			w.RenewLease(traffic.LeaseRequest{SessionID: v.ID, Lease: "a", Down: used, Close: true})
			got := w.Read(agent, v.ID)
			if got.Bytes != 100_000_000 || got.TopUps.No != 0 || got.TopUps.Failed != "" || used < 2_000_000 ||
				got.Cost.Charged != billing.TrafficCharge(used, apptest.Dollars("0.4")) {
				t.Errorf("%d bytes, %d additions, %q, charged %s", got.Bytes, got.TopUps.No, got.TopUps.Failed, got.Cost.Charged)
			}
		})
	}
}
