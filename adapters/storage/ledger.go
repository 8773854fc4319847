package storage

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"agentproxy/adapters/storage/column"
	"agentproxy/adapters/storage/work"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// ledger keeps wallets and their entries. Its lists are in ledgerlists.go.
type ledger struct{ *tx }

func (r ledger) Open(ctx context.Context, w billing.Wallet) error {
	row := toWalletRow(w)
	if err := r.Write(ctx).Create(&row).Error; err != nil {
		return fmt.Errorf("open wallet of %s: %w", w.AgentID, err)
	}
	return nil
}

var walletQuery = "SELECT " + strings.Join(column.Names(new(walletRow)), ", ") + " FROM wallets WHERE agent_id = ?1"

func (r ledger) Wallet(_ context.Context, agentID string) (billing.Wallet, error) {
	if r.batch != nil {
		w, err := r.batch.wallet(agentID)
		return w.Wallet, err
	}
	var row walletRow
	err := r.Row(walletQuery+r.ForUpdate("wallets"), agentID).Scan(column.Targets(&row)...)
	if errors.Is(err, sql.ErrNoRows) {
		return billing.Wallet{}, account.ErrNotFound
	}
	if err != nil {
		return billing.Wallet{}, fmt.Errorf("read wallet of %s: %w", agentID, err)
	}
	return fromWalletRow(row)
}

func (r ledger) Lock(_ context.Context, agentIDs []string) error {
	if !r.Locks() || len(agentIDs) == 0 {
		return nil
	}
	list, args := work.InTexts(agentIDs)
	query := "SELECT 1 FROM wallets WHERE agent_id IN " + list + " ORDER BY agent_id" + r.ForUpdate("wallets")
	return r.LockFirst("lock wallets", query, args...)
}

// postWallet is billing.Wallet.Apply as one conditional update, which moves the wallet if every part
// of it stays at zero or above and the reference is new. Where two units post one reference at the
// same time, the unique index refuses the entry of the second, which then runs again and finds it.
const postWallet = `UPDATE wallets SET
	trial = trial + ?2, own = own + ?3, held_trial = held_trial + ?4, held_own = held_own + ?5,
	charged = charged + ?6, refunded = refunded + ?7, recharged = recharged + ?8,
	adjusted = adjusted + ?14, funded = CASE WHEN ?9 = 1 THEN 1 ELSE funded END,
	credited = CASE WHEN ?8 + ?14 > 0 THEN 1 ELSE credited END,
	live_sessions = live_sessions + ?10,
	spent_today = CASE
		WHEN ?11 = spent_day AND spent_today + ?12 >= 0 THEN spent_today + ?12
		WHEN ?11 = spent_day THEN 0
		WHEN ?11 > spent_day AND ?12 > 0 THEN ?12
		WHEN ?12 > 0 THEN spent_today + ?12
		ELSE spent_today END,
	spent_day = CASE WHEN ?12 > 0 AND (?11 > spent_day OR ?11 < spent_day - 86400000000) THEN ?11 ELSE spent_day END,
	entries = entries + 1
	WHERE agent_id = ?1
	AND trial + ?2 >= 0 AND own + ?3 >= 0 AND held_trial + ?4 >= 0 AND held_own + ?5 >= 0
	AND NOT EXISTS (SELECT 1 FROM ledger_entries WHERE ref = ?13)
	RETURNING trial + own, entries`

var (
	entryColumns = column.Names(new(entryRow))
	insertEntry  = "INSERT INTO ledger_entries (" + strings.Join(entryColumns, ", ") + ") VALUES (" +
		work.Placeholders(1, len(entryColumns)) + ")"
)

func (r ledger) EntryOf(ctx context.Context, ref string) (billing.Entry, bool, error) {
	var row entryRow
	found, err := work.One(r.ORM(ctx).Where("ref = ?", ref), &row)
	if err != nil {
		return billing.Entry{}, false, fmt.Errorf("read entry %s: %w", ref, err)
	}
	return fromEntryRow(row), found, nil
}

func (r ledger) Post(ctx context.Context, p ports.Posting) (billing.Entry, error) {
	if r.batch != nil {
		return r.batch.post(p)
	}
	e := p.Entry
	totals := ports.Totals{Charged: e.Charged(), Refunded: e.Refunded(), Recharged: e.Recharged()}
	var ord int64
	err := r.Returning(postWallet, []any{e.AgentID,
		int64(e.Available.Trial), int64(e.Available.Own), int64(e.Held.Trial), int64(e.Held.Own),
		int64(totals.Charged), int64(totals.Refunded), int64(totals.Recharged), column.Flag(e.Type == billing.Recharge),
		p.Live, column.Micros(p.Day), int64(p.Spent), e.Ref, int64(e.Adjusted())}, &e.BalanceAfter, &ord)
	if errors.Is(err, sql.ErrNoRows) {
		return e, r.refusal(ctx, e)
	}
	if err != nil {
		return e, fmt.Errorf("move wallet of %s: %w", e.AgentID, err)
	}
	row := toEntryRow(e, ord)
	err = r.Later("book "+e.Ref, insertEntry, column.Values(&row)...)
	if err != nil {
		return e, err
	}
	if totals == (ports.Totals{}) {
		return e, nil
	}
	return e, r.addHour(e.AgentID, e.SessionID, cmp.Or(p.Hour, e.At).Truncate(time.Hour), totals)
}

// refusal returns the reason for which an entry moved nothing.
func (r ledger) refusal(ctx context.Context, e billing.Entry) error {
	var booked int
	if err := r.Row(`SELECT COUNT(*) FROM ledger_entries WHERE ref = ?1`, e.Ref).Scan(&booked); err != nil {
		return fmt.Errorf("look for %s: %w", e.Ref, err)
	}
	if booked > 0 {
		return ports.ErrDuplicate
	}
	w, err := r.Wallet(ctx, e.AgentID)
	if err != nil {
		return err
	}
	return w.Insufficient(-e.Amount())
}

func (r ledger) SetLive(_ context.Context, agentID string, delta int) error {
	if r.batch != nil {
		return r.batch.setLive(agentID, delta)
	}
	n, err := r.Exec(`UPDATE wallets SET live_sessions = live_sessions + ?2 WHERE agent_id = ?1`, agentID, delta)
	return changedWallet(agentID, n, err)
}

func (r ledger) PutBudget(ctx context.Context, agentID string, b billing.Budget) error {
	row := toWalletRow(billing.Wallet{Budget: b})
	n, err := r.Written(r.Write(ctx).Model(&walletRow{}).Where("agent_id = ?", agentID).
		Select("budget_daily", "budget_total", "budget_thresholds", "budget_paused").Updates(&row))
	return changedWallet(agentID, n, err)
}

func (r ledger) ExpireTrial(ctx context.Context, agentID string) error {
	n, err := r.Written(r.Write(ctx).Model(&walletRow{}).Where("agent_id = ?", agentID).Update("trial_expired", true))
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
	err = r.ORM(ctx).Model(&walletRow{}).Where(hasTrial+" AND trial_expires_at <= ?", column.Micros(now)).
		Order("trial_expires_at").Limit(limit).Pluck("agent_id", &due).Error
	return due, work.Wrap("list trials that are due", err)
}

func (r ledger) TrialsEnding(ctx context.Context, from, to time.Time, limit int) ([]billing.Wallet, error) {
	var rows []walletRow
	err := r.ORM(ctx).Joins("JOIN agents a ON a.id = wallets.agent_id").
		Where(hasTrial+" AND trial_expires_at > ? AND trial_expires_at <= ?", column.Micros(from), column.Micros(to)).
		Where("funded = 0 AND a.webhook_url <> ''").Order("trial_expires_at").Limit(limit).Find(&rows).Error
	list := make([]billing.Wallet, len(rows))
	for i, row := range rows {
		if err == nil {
			list[i], err = fromWalletRow(row)
		}
	}
	return list, work.Wrap("list trials that end", err)
}

const addHour = `INSERT INTO usage_hours
	(agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)` + addHourAgain

// addHour adds to the totals of one session in one hour.
func (t *tx) addHour(agentID, sessionID string, hour time.Time, add ports.Totals) error {
	return t.Later("add to the hour of "+sessionID, addHour, agentID, column.Micros(hour), sessionID, add.Up, add.Down,
		add.Connections,
		int64(add.Charged), int64(add.Refunded), int64(add.Recharged))
}
