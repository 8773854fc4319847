package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentproxy/app/notify"
	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// Wallet is an agent's money: what there is, what moved, what may be spent.
type Wallet struct {
	store ports.Unit[repos]
	clock ports.Clock
	ids   ports.IDs
}

// NewWallet wires the use cases.
func NewWallet(store ports.Store, clock ports.Clock, ids ports.IDs) *Wallet {
	return &Wallet{store: narrow(store), clock: clock, ids: ids}
}

// Balance is an agent's money at one moment.
type Balance struct {
	Wallet billing.Wallet
	Held   domain.Money // what open purchases hold and have not used
	Spent  domain.Money // ever, booked or not
	// Unbooked is what of Spent is not charged yet.
	Unbooked domain.Money
	IsTrial  bool
}

// Balance reads an agent's money.
func (u *Wallet) Balance(ctx context.Context, agentID string) (Balance, error) {
	var b Balance
	reads := ports.ReadSet{Agent: agentID, Money: true, Holding: true}
	err := u.store.View(ctx, reads, func(ctx context.Context, tx repos) (err error) {
		b, err = balance(ctx, tx, agentID, u.clock.Now())
		return err
	})
	return b, err
}

// balance reads what an agent has at a time. Trial credit that is past its date is left out, as a
// purchase does, even if it is not written off yet.
func balance(ctx context.Context, tx repos, agentID string, now time.Time) (Balance, error) {
	w, err := NewBook(tx, nil, now).Wallet(ctx, agentID, true)
	if err != nil {
		return Balance{}, err
	}
	unbooked, err := unbooked(ctx, tx, agentID, w)
	return Balance{Wallet: w, Held: w.Held.Total() - unbooked, Spent: w.Charged - w.Refunded + unbooked,
		Unbooked: unbooked, IsTrial: w.IsTrial(now)}, err
}

// unbooked returns what sessions have used up of what they hold since the last
// charge was booked: charges are booked by the hour.
func unbooked(ctx context.Context, tx repos, agentID string, w billing.Wallet) (domain.Money, error) {
	if w.Held.Total() == 0 {
		return 0, nil
	}
	var sum domain.Money
	hours, err := tx.Sessions().Unbooked(ctx, agentID)
	for _, h := range hours {
		sum += h.Charged
	}
	return sum, err
}

// Transactions lists an agent's entries, newest first.
func (u *Wallet) Transactions(
	ctx context.Context, agentID string, f ports.LedgerFilter, page domain.Page,
) (list domain.List[billing.Entry], err error) {
	if f.Type != "" && !slices.Contains(billing.Types, f.Type) {
		return list, domain.InvalidField("type", "must be a transaction type")
	}
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Statements().Entries(ctx, agentID, f, page)
		return err
	})
	return list, err
}

// TransactionsByKey sums the same list by key, as ports.Ledger has it.
func (u *Wallet) TransactionsByKey(ctx context.Context, agentID string, f ports.LedgerFilter) (
	list []ports.KeyEntries, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		list, err = tx.Statements().EntriesByKey(ctx, agentID, f)
		return err
	})
	return list, err
}

// BudgetView is a budget and what of it is spent.
type BudgetView struct {
	billing.Budget
	SpentToday domain.Money
	SpentTotal domain.Money
}

func budgetView(w billing.Wallet, now time.Time) BudgetView {
	return BudgetView{Budget: w.Budget, SpentToday: w.SpentOn(now), SpentTotal: w.SpentEver()}
}

// Budget reads an agent's own spending guard.
func (u *Wallet) Budget(ctx context.Context, agentID string) (v BudgetView, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		w, err := tx.Ledger().Wallet(ctx, agentID)
		v = budgetView(w, u.clock.Now())
		return err
	})
	return v, err
}

// SetBudget replaces the given fields of a budget. A limit that is given as nil
// is lifted.
type SetBudget struct {
	AgentID    string
	Daily      **domain.Money
	Total      **domain.Money
	Thresholds *[]int
	Paused     *bool
}

// SetBudget changes an agent's own spending guard.
func (u *Wallet) SetBudget(ctx context.Context, in SetBudget) (v BudgetView, err error) {
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		w, err := tx.Ledger().Wallet(ctx, in.AgentID)
		if err != nil {
			return err
		}
		if in.Daily != nil {
			w.Budget.Daily = *in.Daily
		}
		if in.Total != nil {
			w.Budget.Total = *in.Total
		}
		if in.Thresholds != nil {
			w.Budget.Thresholds = slices.Compact(slices.Sorted(slices.Values(*in.Thresholds)))
		}
		if in.Paused != nil {
			w.Budget.Paused = *in.Paused
		}
		if err := w.Budget.Check(); err != nil {
			return err
		}
		v = budgetView(w, u.clock.Now())
		return tx.Ledger().PutBudget(ctx, in.AgentID, w.Budget)
	})
	return v, err
}

// MaxReason bounds the reason of an operator's correction, in characters.
const MaxReason = 500

// Adjust books an operator's correction of an agent's balance.
func (u *Wallet) Adjust(
	ctx context.Context, agentID string, amount domain.Money, reason string,
) (billing.Entry, error) {
	return u.AdjustOnce(ctx, agentID, amount, reason, "")
}

// MaxAdjustment bounds one correction. The sums of reports have room for millions of these.
const MaxAdjustment = 1_000_000 * domain.Dollar

// MaxAdjustRef bounds the reference of a correction, in characters.
const MaxAdjustRef = 100

// AdjustOnce is like Adjust with the operator's reference, so that an answer that was lost can be
// asked for again: a correction that was booked under it is returned, and booked no second time.
// The reference of a correction of another agent or amount is refused.
func (u *Wallet) AdjustOnce(
	ctx context.Context, agentID string, amount domain.Money, reason, ref string,
) (booked billing.Entry, err error) {
	if utf8.RuneCountInString(ref) > MaxAdjustRef {
		return booked, domain.InvalidField("ref", "must have at most %d characters", MaxAdjustRef)
	}
	if amount == 0 || amount > MaxAdjustment || amount < -MaxAdjustment {
		return booked, domain.InvalidField("amount", "must not be 0, and at most %s either way", MaxAdjustment)
	}
	if reason == "" || utf8.RuneCountInString(reason) > MaxReason {
		return booked, domain.InvalidField("reason", "must have 1 to %d characters", MaxReason)
	}
	err = u.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		w, err := tx.Ledger().Wallet(ctx, agentID)
		if err != nil {
			return err
		}
		entryRef := ""
		if ref != "" { // before Adjust: the balance may cover the correction once and not twice
			entryRef = "adjust:ref:" + ref
			old, found, err := tx.Ledger().EntryOf(ctx, entryRef)
			switch {
			case err != nil:
				return err
			case found && (old.AgentID != agentID || old.Amount() != amount):
				return domain.InvalidField("ref", "was used for a correction of %s by %s USD; choose another one",
					old.AgentID, old.Amount())
			case found:
				booked = old
				return nil
			}
		}
		e, err := w.Adjust(amount, reason)
		if err != nil {
			return err
		}
		e.ID, e.AgentID, e.At = u.ids.New(billing.IDPrefix), agentID, u.clock.Now()
		e.Ref = cmp.Or(entryRef, "adjust:"+e.ID)
		if booked, err = tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
			return err
		}
		return notify.BalanceChanged(ctx, tx, u.ids, e.At, booked)
	})
	return booked, err
}

// UsageReport is what an agent's sessions used and cost in a period.
type UsageReport struct {
	Period string
	From   time.Time
	To     time.Time
	Totals ports.Totals // of all sessions
	ByKey  []KeyTotals  // if they were asked for, in the order of their ids
	// Sessions are those that used or cost something, the newest first: all, or a page of them.
	Sessions domain.List[ports.SessionTotal]
}

// UsageReport sums a period that ends with the current UTC day: that day, the
// last 7 or the last 30. An empty period is a day. A page without a size has all sessions.
func (u *Wallet) UsageReport(ctx context.Context, agentID, period string, page domain.Page) (UsageReport, error) {
	return u.KeyReport(ctx, agentID, "", period, page)
}

// KeyReport is as UsageReport, of the sessions that a key bought; of all if keyID is empty.
func (u *Wallet) KeyReport(ctx context.Context, agentID, keyID, period string, page domain.Page) (UsageReport, error) {
	return u.Report(ctx, ReportQuery{AgentID: agentID, Key: keyID, Period: period, Page: page})
}

// ReportQuery asks for a usage report.
type ReportQuery struct {
	AgentID, Period string
	Key             string // of the sessions that it bought; empty: of all
	ByKey           bool   // with the totals of each key
	Page            domain.Page
}

// KeyTotals are the totals of the sessions that one key bought; without an id of those whose key is not known.
type KeyTotals struct {
	Key      string
	Sessions int
	ports.Totals
}

// Report reads a usage report.
func (u *Wallet) Report(ctx context.Context, q ReportQuery) (UsageReport, error) {
	days, ok := map[string]int{"": 1, "day": 1, "week": 7, "month": 30}[q.Period]
	if !ok {
		return UsageReport{}, domain.InvalidField("period", "must be day, week or month")
	}
	now := u.clock.Now()
	r := UsageReport{Period: cmp.Or(q.Period, "day"), To: billing.Day(now).Add(session.Day)}
	r.From = r.To.AddDate(0, 0, -days)
	err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
		if q.Page.Size > 0 && q.Key == "" && !q.ByKey {
			return r.readPage(ctx, tx, q.AgentID, q.Page)
		}
		all, err := tx.Statements().SessionTotals(ctx, q.AgentID, r.From, r.To)
		if q.Key != "" {
			all = slices.DeleteFunc(all, func(t ports.SessionTotal) bool { return t.Key != q.Key })
		}
		r.sum(all)
		if !q.ByKey {
			r.ByKey = nil
		}
		if err == nil && q.Page.Size > 0 {
			r.Sessions, err = domain.PagedAfter(all, q.Page, func(t ports.SessionTotal) int64 { return t.Place })
		}
		return err
	})
	return r, err
}

// sum makes sessions the report, with the totals of all and of each key.
func (r *UsageReport) sum(all []ports.SessionTotal) {
	r.Sessions.Items, r.Sessions.Total, r.Totals = all, len(all), ports.Totals{}
	keys := map[string]KeyTotals{}
	for _, item := range all {
		r.Totals = r.Totals.Plus(item.Totals)
		k := keys[item.Key]
		keys[item.Key] = KeyTotals{item.Key, k.Sessions + 1, k.Plus(item.Totals)}
	}
	r.ByKey = slices.SortedFunc(maps.Values(keys), func(a, b KeyTotals) int { return strings.Compare(a.Key, b.Key) })
}

// readPage reads a page of the sessions, and the totals of all.
func (r *UsageReport) readPage(ctx context.Context, tx repos, agentID string, page domain.Page) (err error) {
	r.Sessions, r.Totals, err = tx.Statements().SessionTotalsPage(ctx, agentID, r.From, r.To, page)
	if err != nil {
		return err
	}
	hours, err := tx.Sessions().Unbooked(ctx, agentID)
	for _, h := range hours {
		if !h.Start.Before(r.From) && h.Start.Before(r.To) {
			r.Totals.Charged += h.Charged
		}
	}
	return err
}
