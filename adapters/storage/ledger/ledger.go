// Package ledger keeps wallets and their entries, and sums them by month and by hour.
package ledger

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"agentproxy/adapters/storage/accounts"
	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/rows"
	"agentproxy/adapters/storage/usage"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// ledger keeps wallets and their entries. Its lists are in ledgerlists.go.
type ledger struct{ *work.Unit }

// Ledger returns the wallets and entries of a unit, to post to.
func Ledger(u *work.Unit) ports.Ledger { return ledger{u} }

// Statements returns the same, to read.
func Statements(u *work.Unit) ports.Statements { return ledger{u} }

func (r ledger) Open(ctx context.Context, w billing.Wallet) error {
	row := toRow(w)
	if err := r.Write(ctx).Create(&row).Error; err != nil {
		return fmt.Errorf("open wallet of %s: %w", w.AgentID, err)
	}
	return nil
}

func (r ledger) Wallet(_ context.Context, agentID string) (billing.Wallet, error) {
	w, err := r.wallet(agentID)
	return w.Wallet, err
}

func (r ledger) wallet(agentID string) (Stored, error) {
	w, found, err := Wallets.Get(r.Set, agentID)
	if err == nil && !found {
		err = account.ErrNotFound
	}
	return w, err
}

func (r ledger) Lock(_ context.Context, agentIDs []string) error {
	if !r.Locks() || len(agentIDs) == 0 {
		return nil
	}
	list, args := work.InTexts(agentIDs)
	query := "SELECT 1 FROM wallets WHERE agent_id IN " + list + " ORDER BY agent_id" + r.ForUpdate("wallets")
	return r.LockFirst("lock wallets", query, args...)
}

func (r ledger) EntryOf(ctx context.Context, ref string) (billing.Entry, bool, error) {
	var row entryRow
	found, err := work.One(r.ORM(ctx).Where("ref = ?", ref), &row)
	if err != nil {
		return billing.Entry{}, false, fmt.Errorf("read entry %s: %w", ref, err)
	}
	return fromEntryRow(row), found, nil
}

// Post keeps the rules of billing.Wallet.Apply. Where two units post one reference at the same time, the
// unique index refuses the entry of the second, which then runs again and finds it.
func (r ledger) Post(_ context.Context, p ports.Posting) (billing.Entry, error) {
	e := p.Entry
	_, booked, err := entryTable.Get(r.Set, e.Ref)
	if err != nil {
		return e, err
	}
	if booked {
		return e, ports.ErrDuplicate
	}
	w, err := r.wallet(e.AgentID)
	if err != nil {
		return e, err
	}
	if w.Wallet, err = w.Apply(p); err != nil {
		return e, err
	}
	w.entries++
	e.BalanceAfter = w.Balance()
	if err := Wallets.Put(r.Set, e.AgentID, w); err != nil {
		return e, err
	}
	if err := entryTable.Put(r.Set, e.Ref, toEntryRow(e, w.entries)); err != nil {
		return e, err
	}
	if err := accounts.MoveKey(r.Set, w.Wallet, p); err != nil {
		return e, err
	}
	totals := ports.Totals{Charged: e.Charged(), Refunded: e.Refunded(), Recharged: e.Recharged()}
	if totals == (ports.Totals{}) {
		return e, nil
	}
	return e, usage.AddHour(r.Set, e.AgentID, e.SessionID, cmp.Or(p.Hour, e.At).Truncate(time.Hour), totals)
}

func (r ledger) SetLive(_ context.Context, agentID, keyID string, delta int) error {
	w, err := r.wallet(agentID)
	if err != nil {
		return err
	}
	w.LiveSessions += delta
	if err := Wallets.Put(r.Set, agentID, w); err != nil {
		return err
	}
	return accounts.MoveKey(r.Set, w.Wallet, ports.Posting{Key: keyID, Live: delta})
}

func (r ledger) PutBudget(ctx context.Context, agentID string, b billing.Budget) error {
	row := toRow(billing.Wallet{Budget: b})
	n, err := r.Written(r.Write(ctx).Model(&Row{}).Where("agent_id = ?", agentID).
		Select("budget_daily", "budget_total", "budget_thresholds", "budget_paused").Updates(&row))
	return changedWallet(agentID, n, err)
}

func (r ledger) ExpireTrial(ctx context.Context, agentID string) error {
	n, err := r.Written(r.Write(ctx).Model(&Row{}).Where("agent_id = ?", agentID).Update("trial_expired", true))
	return changedWallet(agentID, n, err)
}

func changedWallet(agentID string, n int64, err error) error {
	if err != nil {
		return fmt.Errorf("change wallet of %s: %w", agentID, err)
	}
	if n == 0 {
		return account.ErrNotFound
	}
	return nil
}

// hasTrial repeats the text of the partial index, which is not used otherwise.
const hasTrial = "trial_expired = 0 AND trial_expires_at > 0"

func (r ledger) TrialsDue(ctx context.Context, now time.Time, limit int) (due []string, err error) {
	err = r.ORM(ctx).Model(&Row{}).Where(hasTrial+" AND trial_expires_at <= ?", column.Micros(now)).
		Order("trial_expires_at").Limit(limit).Pluck("agent_id", &due).Error
	return due, work.Wrap("list trials that are due", err)
}

func (r ledger) TrialsEnding(ctx context.Context, from, to time.Time, limit int) ([]billing.Wallet, error) {
	var rows []Row
	err := r.ORM(ctx).
		Where(hasTrial+" AND trial_expires_at > ? AND trial_expires_at <= ?", column.Micros(from), column.Micros(to)).
		Where("funded = 0").Order("trial_expires_at").Limit(limit).Find(&rows).Error
	list := make([]billing.Wallet, len(rows))
	for i, row := range rows {
		if err == nil {
			list[i], err = FromRow(row)
		}
	}
	return list, work.Wrap("list trials that end", err)
}

// entryRow is a row of ledger_entries.
type entryRow struct {
	ID           string
	AgentID      string
	Ord          int64
	Type         billing.Type
	Trial        domain.Money
	Own          domain.Money
	HeldTrial    domain.Money
	HeldOwn      domain.Money
	Account      billing.Account
	Counter      domain.Money
	Ref          string
	SessionID    string
	OrderID      string
	Description  string
	At           int64
	BalanceAfter domain.Money
}

func (entryRow) TableName() string { return "ledger_entries" }

var insertEntries = rows.Insert[entryRow]("book entries", "ledger_entries", "")

// entryTable has the entries by their references, of which no two are the same. They are booked in the order in
// which they were posted, and never changed.
var entryTable = &rows.Table[string, entryRow]{
	Order:  work.EntryOrder,
	Unread: rows.Always[string],
	Find: func(s *rows.Set, ref string) (row entryRow, found bool, err error) {
		var one int
		found, err = s.Find([]any{&one}, "SELECT 1 FROM ledger_entries WHERE ref = ?1", "", ref)
		return row, found, work.Wrap("look for "+ref, err)
	},
	Write: func(_ *rows.Set, to rows.Writer, changed []rows.Change[string, entryRow]) error {
		return insertEntries.Write(to, rows.Map(changed, rows.Change[string, entryRow].Value))
	},
}

func toEntryRow(e billing.Entry, ord int64) entryRow {
	return entryRow{ID: e.ID, AgentID: e.AgentID, Ord: ord, Type: e.Type, Trial: e.Available.Trial, Own: e.Available.Own,
		HeldTrial: e.Held.Trial, HeldOwn: e.Held.Own, Account: e.Account, Counter: e.Counter, Ref: e.Ref,
		SessionID: e.SessionID, OrderID: e.OrderID, Description: e.Description, At: column.Micros(e.At),
		BalanceAfter: e.BalanceAfter}
}

func fromEntryRow(r entryRow) billing.Entry {
	return billing.Entry{ID: r.ID, AgentID: r.AgentID, Type: r.Type, Available: billing.Funds{Trial: r.Trial, Own: r.Own},
		Held: billing.Funds{Trial: r.HeldTrial, Own: r.HeldOwn}, Account: r.Account, Counter: r.Counter, Ref: r.Ref,
		SessionID: r.SessionID, OrderID: r.OrderID, Description: r.Description, At: column.Time(r.At),
		BalanceAfter: r.BalanceAfter}
}
