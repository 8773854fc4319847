package contract

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// model is the wallet after a history of postings, by billing.Wallet.Apply.
type model struct {
	t       *rapid.T
	st      ports.Store
	wallet  billing.Wallet
	entries int
}

// ledgerModel runs random histories, each with a wallet of its own, and compares
// the store with the model after every step.
func ledgerModel(t *testing.T, st ports.Store) {
	var wallets atomic.Int64
	rapid.Check(t, func(rt *rapid.T) {
		id := fmt.Sprintf("agt_%d", wallets.Add(1))
		addAgent(t, st, id, 0)
		m := &model{t: rt, st: st, wallet: billing.Wallet{AgentID: id, TrialExpiresAt: storeNow.Add(time.Hour)}}
		amount := rapid.Int64Range(0, 50)
		split := func(name string) billing.Funds {
			return billing.Funds{Trial: domain.Money(amount.Draw(rt, name+" trial")), Own: domain.Money(amount.Draw(rt, name+" own"))}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"recharge": func(*rapid.T) {
				x := domain.Money(amount.Draw(rt, "own"))
				m.post(billing.Entry{Type: billing.Recharge, Available: billing.Funds{Own: x}, Account: billing.USDT, Counter: -x}, 0)
			},
			"adjust": func(*rapid.T) {
				x := domain.Money(rapid.Int64Range(-50, 50).Draw(rt, "own"))
				m.post(billing.Entry{Type: billing.Adjustment, Available: billing.Funds{Own: x}, Account: billing.Corrections, Counter: -x}, 0)
			},
			"grant": func(*rapid.T) { m.post(billing.GrantTrial(domain.Money(amount.Draw(rt, "trial"))), 0) },
			"hold": func(*rapid.T) {
				s := split("hold")
				m.post(billing.Entry{Type: billing.HoldEntry, Available: s.Neg(), Held: s}, s.Total())
			},
			"charge": func(*rapid.T) {
				s := split("charge")
				m.post(billing.Entry{Type: billing.ChargeEntry, Held: s.Neg(), Account: billing.Revenue, Counter: s.Total()}, 0)
			},
			"release": func(*rapid.T) {
				s := split("release")
				m.post(billing.Entry{Type: billing.Release, Available: s, Held: s.Neg()}, -s.Total())
			},
			"refund": func(*rapid.T) {
				s := split("refund")
				m.post(billing.Entry{Type: billing.RefundEntry, Available: s, Account: billing.Revenue, Counter: -s.Total()}, 0)
			},
			"expire": func(*rapid.T) {
				x := domain.Money(amount.Draw(rt, "trial"))
				m.post(billing.Entry{Type: billing.TrialExpiry, Available: billing.Funds{Trial: -x}, Account: billing.TrialExpired, Counter: x}, 0)
			},
		})
	})
}

// post books an entry in the store and in the model, which must agree on the wallet or its refusal.
// The day and the counts are drawn.
func (m *model) post(e billing.Entry, spent domain.Money) {
	e.AgentID, e.At = m.wallet.AgentID, storeNow
	e.Ref = fmt.Sprintf("%s:%d", e.AgentID, m.entries)
	e.ID = "txn_" + e.Ref
	day := billing.Day(storeNow).AddDate(0, 0, rapid.IntRange(-1, 2).Draw(m.t, "day"))
	p := billing.Posting{Entry: e, Spent: spent, Day: day, Live: rapid.IntRange(-1, 1).Draw(m.t, "live")}
	after, refusal := m.wallet.Apply(p)
	var booked billing.Entry
	err := m.st.Update(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) (err error) {
		booked, err = tx.Ledger().Post(ctx, p)
		return err
	})
	if refusal != nil {
		if !errors.Is(err, billing.ErrInsufficientBalance) || fmt.Sprint(details(err)) != fmt.Sprint(details(refusal)) {
			m.t.Fatalf("%s of %+v and %+v: %v, want %v", e.Type, e.Available, e.Held, err, refusal)
		}
		return
	}
	if err != nil || booked.BalanceAfter != after.Balance() {
		m.t.Fatalf("%s: balance after %d, %v; want %d", e.Type, booked.BalanceAfter, err, after.Balance())
	}
	m.wallet = after
	m.entries++
}

// details returns the details of a refusal.
func details(err error) map[string]any {
	e, _ := errors.AsType[*domain.Error](err)
	return e.Details
}

func (m *model) check(*rapid.T) {
	err := m.st.View(context.Background(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		got, err := tx.Ledger().Wallet(ctx, m.wallet.AgentID)
		if diff := cmp.Diff(m.wallet, got); diff != "" {
			m.t.Fatalf("the wallet (-model +store):\n%s", diff)
		}
		list, listErr := tx.Statements().Entries(ctx, m.wallet.AgentID, ports.LedgerFilter{}, domain.Page{Number: 1, Size: 1})
		if list.Total != m.entries {
			m.t.Fatalf("%d entries, want %d", list.Total, m.entries)
		}
		return errors.Join(err, listErr)
	})
	if err != nil {
		m.t.Fatal(err)
	}
}
