package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
	"agentproxy/test/campaign"
)

var ledgerClaims = []claim{
	{"a wallet is read back as it was opened", walletRoundTrip},
	{"an entry is read back as it was booked", entryRoundTrip},
	{"of debits decided on stale reads exactly those that are paid for succeed", debitsAreExact},
	{"no part of a wallet goes below zero", partsStayPositive},
	{"a reference is booked once, whatever the caller makes of the refusal", refsAreUnique},
	{"an entry cannot be changed or removed", entriesAreKept},
	{"a posting moves the totals, the live count and the funding", postingMovesTotals},
	{"spending counts on its day", spendingCountsByDay},
	{"the live count changes without money", liveCount},
	{"a budget is read back as it was set", budgetRoundTrip},
	{"a trial is due from its end until it is marked", trialsDue},
	{"entries are listed newest first, page by page and by type", entryLists},
	{"any history of a wallet is what the rules give", ledgerModel},
}

func walletRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 0)
	want := billing.Wallet{AgentID: "agt_1", TrialExpiresAt: storeNow.Add(time.Hour)}
	if diff := cmp.Diff(want, wallet(t, st, "agt_1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func hold(agentID, ref string, trial, own domain.Money) ports.Posting {
	return ports.Posting{Entry: billing.Entry{ID: "txn_" + ref, AgentID: agentID, Type: billing.HoldEntry,
		Available: billing.Funds{Trial: -trial, Own: -own}, Held: billing.Funds{Trial: trial, Own: own}, Ref: ref,
		SessionID: "sess_1", At: storeNow}, Spent: trial + own, Day: billing.Day(storeNow), Live: 1}
}

func entryRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 5)
	p := hold("agt_1", "hold:1", 0, 3)
	p.Entry.OrderID, p.Entry.Description = "PAY1", "a purchase"
	booked := mustPost(t, st, p)
	want := p.Entry
	want.BalanceAfter = 2
	if diff := cmp.Diff(want, booked); diff != "" {
		t.Errorf("returned (-want +got):\n%s", diff)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{}, domain.Page{Number: 1, Size: 1})
		if diff := cmp.Diff([]billing.Entry{want}, list.Items); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
		return err
	})
}

// debitsAreExact catches a balance that is read and then written: each debit is decided on a
// snapshot that others outdate.
func debitsAreExact(t *testing.T, st ports.Store) {
	const callers, cent = 64, domain.Dollar / 100
	debits := int64(campaign.Rounds(600, 10_000))
	addAgent(t, st, "agt_1", domain.Money(debits/2)*cent)
	var next, paid, refused atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for n := next.Add(1); n <= debits; n = next.Add(1) {
				err := debit(t, st, fmt.Sprintf("debit:%d", n), cent)
				for errors.Is(err, domain.ErrUnavailable) { // the machine is busy; a repeated reference is booked once
					err = debit(t, st, fmt.Sprintf("debit:%d", n), cent)
				}
				switch {
				case err == nil, errors.Is(err, ports.ErrDuplicate):
					paid.Add(1)
				case errors.Is(err, billing.ErrInsufficientBalance):
					refused.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if paid.Load() != debits/2 || refused.Load() != debits/2 {
		t.Errorf("%d debits were paid and %d refused, want %d each", paid.Load(), refused.Load(), debits/2)
	}
	w := wallet(t, st, "agt_1")
	if w.Balance() != 0 || w.Held.Own != domain.Money(debits/2)*cent || w.LiveSessions != int(debits/2) {
		t.Errorf("the wallet has %v, holds %v, counts %d", w.Balance(), w.Held, w.LiveSessions)
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		list, err := tx.Statements().Entries(ctx, "agt_1", ports.LedgerFilter{Type: billing.HoldEntry}, domain.Page{Number: 1, Size: 1})
		if int64(list.Total) != debits/2 {
			t.Errorf("%d debits are booked, want %d", list.Total, debits/2)
		}
		return err
	})
}

func debit(t *testing.T, st ports.Store, ref string, x domain.Money) error {
	var decided billing.Entry
	err := st.View(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		w, err := tx.Ledger().Wallet(ctx, "agt_1")
		if err != nil {
			return err
		}
		decided, err = w.Hold(x, billing.AnyFunds)
		return err
	})
	if err != nil {
		return err
	}
	p := hold("agt_1", ref, 0, 0)
	p.Entry.Available, p.Entry.Held = decided.Available, decided.Held
	return st.Update(t.Context(), ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
		_, err := tx.Ledger().Post(ctx, p)
		return err
	})
}

func partsStayPositive(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 10)
	before := wallet(t, st, "agt_1")
	entry := func(trial, own, heldTrial, heldOwn domain.Money) ports.Posting {
		return ports.Posting{Entry: billing.Entry{ID: "txn_x", AgentID: "agt_1", Type: billing.Adjustment,
			Available: billing.Funds{Trial: trial, Own: own}, Held: billing.Funds{Trial: heldTrial, Own: heldOwn},
			Account: billing.Corrections, Counter: -(trial + own + heldTrial + heldOwn), Ref: "x", At: storeNow}}
	}
	for name, p := range map[string]ports.Posting{
		"trial": entry(-1, 0, 0, 0), "own": entry(0, -11, 0, 0), "held trial": entry(0, 0, -1, 0), "held own": entry(0, 0, 0, -1),
		"own although the sum is not": entry(20, -11, 0, 0),
	} {
		if _, err := post(t, st, p); !errors.Is(err, billing.ErrInsufficientBalance) {
			t.Errorf("%s below zero: %v", name, err)
		}
	}
	if diff := cmp.Diff(before, wallet(t, st, "agt_1")); diff != "" {
		t.Errorf("the wallet moved:\n%s", diff)
	}
	p := entry(0, 1, 0, 0)
	p.Entry.AgentID = "agt_2"
	if _, err := post(t, st, p); !errors.Is(err, account.ErrNotFound) {
		t.Errorf("an unknown agent: %v", err)
	}
}

func refsAreUnique(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 10)
	addAgent(t, st, "agt_2", 10)
	mustPost(t, st, fund("agt_1", "transfer:1", 5))
	for _, agentID := range []string{"agt_1", "agt_2"} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error {
			if _, err := tx.Ledger().Post(ctx, fund(agentID, "transfer:1", 5)); !errors.Is(err, ports.ErrDuplicate) {
				t.Errorf("booking it again for %s: %v", agentID, err)
			}
			return nil // the unit goes on without it
		})
	}
	view(t, st, func(ctx context.Context, tx ports.Tx) error {
		e, found, err := tx.Ledger().EntryOf(ctx, "transfer:1")
		if !found || err != nil || e.AgentID != "agt_1" || e.Amount() != 5 || e.BalanceAfter != 15 {
			t.Errorf("the entry of the reference is %+v, %t, %v", e, found, err)
		}
		if e, found, err = tx.Ledger().EntryOf(ctx, "transfer:2"); found || err != nil {
			t.Errorf("a reference that was not booked has %+v, %v", e, err)
		}
		return nil
	})
	if a, b := wallet(t, st, "agt_1").Balance(), wallet(t, st, "agt_2").Balance(); a != 15 || b != 10 {
		t.Errorf("the balances are %d and %d, want 15 and 10", a, b)
	}
}

func entriesAreKept(t *testing.T, st ports.Store) {
	raw, ok := st.(interface{ Writer() *sql.DB })
	if !ok {
		t.Skip("the store has no way around the port")
	}
	addAgent(t, st, "agt_1", 10)
	for _, statement := range []string{
		"UPDATE ledger_entries SET own = 11, counter = -11",
		"UPDATE ledger_entries SET description = ''",
		"DELETE FROM ledger_entries",
	} {
		if _, err := raw.Writer().ExecContext(t.Context(), statement); err == nil {
			t.Errorf("the database accepts %s", statement)
		}
	}
	unbalanced := fund("agt_1", "unbalanced", 5)
	unbalanced.Entry.Counter = 0
	if _, err := post(t, st, unbalanced); err == nil {
		t.Error("the database accepts an entry that does not sum to zero")
	}
	if w := wallet(t, st, "agt_1"); w.Balance() != 10 {
		t.Errorf("the balance is %v", w.Balance())
	}
}

func postingMovesTotals(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	mustPost(t, st, hold("agt_1", "hold:1", 0, 60))
	mustPost(t, st, ports.Posting{Live: -1, Entry: billing.Entry{ID: "txn_c", AgentID: "agt_1", Type: billing.ChargeEntry,
		Held: billing.Funds{Own: -40}, Account: billing.Revenue, Counter: 40, Ref: "charge:1", SessionID: "sess_1", At: storeNow}})
	mustPost(t, st, ports.Posting{Entry: billing.Entry{ID: "txn_r", AgentID: "agt_1", Type: billing.RefundEntry,
		Available: billing.Funds{Own: 15}, Account: billing.Revenue, Counter: -15, Ref: "refund:1", SessionID: "sess_1", At: storeNow}})
	mustPost(t, st, adjust("agt_1", "adjust:1", 9))
	mustPost(t, st, adjust("agt_1", "adjust:2", -4))
	want := billing.Wallet{AgentID: "agt_1", TrialExpiresAt: storeNow.Add(time.Hour), Available: billing.Funds{Own: 60},
		Held: billing.Funds{Own: 20}, Funded: true, Charged: 40, Refunded: 15, Recharged: 100, Adjusted: 9,
		SpentDay: billing.Day(storeNow), SpentToday: 60}
	if diff := cmp.Diff(want, wallet(t, st, "agt_1")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func spendingCountsByDay(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 100)
	day := billing.Day(storeNow)
	for i, step := range []struct {
		day   time.Time
		spent domain.Money
		today domain.Money
		on    time.Time
	}{
		{day, 10, 10, day},
		{day, 5, 15, day},
		{day, -4, 11, day},
		{day.Add(24 * time.Hour), -3, 11, day}, // nothing was spent on that day
		{day.Add(24 * time.Hour), 7, 7, day.Add(24 * time.Hour)},   // a new day begins
		{day, -5, 7, day.Add(24 * time.Hour)},                      // given back for the day before
		{day, 5, 12, day.Add(24 * time.Hour)},                      // a late hold counts on the later day
		{day.Add(24 * time.Hour), -19, 0, day.Add(24 * time.Hour)}, // never below zero
		{time.Time{}, 0, 0, day.Add(24 * time.Hour)},               // nothing to do with spending
		{day.Add(240 * time.Hour), 2, 2, day.Add(240 * time.Hour)}, // days are left out
		{day.Add(24 * time.Hour), 3, 5, day.Add(24 * time.Hour)},   // the clock was ahead: it all counts, and on the right day
		{day.Add(48 * time.Hour), 1, 1, day.Add(48 * time.Hour)},   // which ends as every day
	} {
		p := fund("agt_1", fmt.Sprint("step:", i), 1)
		p.Spent, p.Day = step.spent, step.day
		mustPost(t, st, p)
		if w := wallet(t, st, "agt_1"); w.SpentToday != step.today || !w.SpentDay.Equal(step.on) {
			t.Errorf("step %d: %d on %v, want %d on %v", i, w.SpentToday, w.SpentDay, step.today, step.on)
		}
	}
}

func liveCount(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 10)
	update(t, st, func(ctx context.Context, tx ports.Tx) error {
		return errors.Join(tx.Ledger().SetLive(ctx, "agt_1", "", 3), tx.Ledger().SetLive(ctx, "agt_1", "", -1))
	})
	if w := wallet(t, st, "agt_1"); w.LiveSessions != 2 || w.Balance() != 10 {
		t.Errorf("%d live sessions, balance %v", w.LiveSessions, w.Balance())
	}
}

func budgetRoundTrip(t *testing.T, st ports.Store) {
	addAgent(t, st, "agt_1", 10)
	zero, ten := domain.Money(0), 10*domain.Dollar
	for _, want := range []billing.Budget{
		{Daily: &ten, Thresholds: []int{50, 80, 100}, Paused: true},
		{Total: &zero},
		{},
	} {
		update(t, st, func(ctx context.Context, tx ports.Tx) error { return tx.Ledger().PutBudget(ctx, "agt_1", want) })
		if diff := cmp.Diff(want, wallet(t, st, "agt_1").Budget); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
