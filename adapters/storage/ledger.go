package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"agentproxy/adapters/storage/engine"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// ledger keeps wallets and their entries. What it lists is in ledgerlists.go.
type ledger struct{ *tx }

func (r ledger) Open(ctx context.Context, w billing.Wallet) error {
	row := toWalletRow(w)
	if err := r.write(ctx).Create(&row).Error; err != nil {
		return fmt.Errorf("open wallet of %s: %w", w.AgentID, err)
	}
	return nil
}

const (
	walletSelect = `SELECT w.agent_id, w.trial, w.own, w.held_trial, w.held_own, w.trial_expires_at, w.trial_expired, w.funded,
	w.charged, w.refunded, w.recharged, w.live_sessions, w.budget_daily, w.budget_total, w.budget_thresholds, w.budget_paused,
	w.spent_day, w.spent_today FROM wallets w `
	walletQuery = walletSelect + `WHERE w.agent_id = ?1`
)

func (r ledger) Wallet(_ context.Context, agentID string) (billing.Wallet, error) {
	w, err := scanWallet(r.row(walletQuery+r.lock("w"), agentID))
	if errors.Is(err, sql.ErrNoRows) {
		return billing.Wallet{}, account.ErrNotFound
	}
	if err != nil {
		return billing.Wallet{}, fmt.Errorf("read wallet of %s: %w", agentID, err)
	}
	return w, nil
}

// scanWallet takes a row of walletSelect.
func scanWallet(row engine.Row) (billing.Wallet, error) {
	var w walletRow
	err := row.Scan(&w.AgentID, &w.Trial, &w.Own, &w.HeldTrial, &w.HeldOwn,
		&w.TrialExpiresAt, &w.TrialExpired, &w.Funded, &w.Charged, &w.Refunded, &w.Recharged, &w.LiveSessions,
		&w.BudgetDaily, &w.BudgetTotal, &w.BudgetThresholds, &w.BudgetPaused, &w.SpentDay, &w.SpentToday)
	if err != nil {
		return billing.Wallet{}, err
	}
	return fromWalletRow(w)
}

// postWallet moves a wallet if every part of it stays at zero or above and the
// reference is new; where two units book one reference at once, the unique index
// refuses the entry of the second, which is run again and finds it here. Spending on a later day than the last begins that day's
// count; what is given back for an earlier day changes nothing.
const postWallet = `UPDATE wallets SET
	trial = trial + ?2, own = own + ?3, held_trial = held_trial + ?4, held_own = held_own + ?5,
	charged = charged + ?6, refunded = refunded + ?7, recharged = recharged + ?8,
	funded = CASE WHEN ?9 = 1 THEN 1 ELSE funded END,
	live_sessions = live_sessions + ?10,
	spent_today = CASE
		WHEN ?11 = spent_day AND spent_today + ?12 >= 0 THEN spent_today + ?12
		WHEN ?11 = spent_day THEN 0
		WHEN ?11 > spent_day AND ?12 > 0 THEN ?12
		ELSE spent_today END,
	spent_day = CASE WHEN ?11 > spent_day AND ?12 > 0 THEN ?11 ELSE spent_day END,
	entries = entries + 1
	WHERE agent_id = ?1
	AND trial + ?2 >= 0 AND own + ?3 >= 0 AND held_trial + ?4 >= 0 AND held_own + ?5 >= 0
	AND NOT EXISTS (SELECT 1 FROM ledger_entries WHERE ref = ?13)
	RETURNING trial + own, entries`

const insertEntry = `INSERT INTO ledger_entries (id, agent_id, ord, type, trial, own, held_trial, held_own,
	account, counter, ref, session_id, order_id, description, at, balance_after)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)`

func (r ledger) Post(ctx context.Context, p ports.Posting) (billing.Entry, error) {
	e := p.Entry
	totals := entryTotals(e)
	var ord int64
	err := r.returning(postWallet, []any{e.AgentID,
		int64(e.Available.Trial), int64(e.Available.Own), int64(e.Held.Trial), int64(e.Held.Own),
		int64(totals.Charged), int64(totals.Refunded), int64(totals.Recharged), flag(e.Type == billing.Recharge),
		p.Live, micros(p.Day), int64(p.Spent), e.Ref}, &e.BalanceAfter, &ord)
	if errors.Is(err, sql.ErrNoRows) {
		return e, r.refusal(ctx, e)
	}
	if err != nil {
		return e, fmt.Errorf("move wallet of %s: %w", e.AgentID, err)
	}
	err = r.later("book "+e.Ref, insertEntry, e.ID, e.AgentID, ord, string(e.Type), int64(e.Available.Trial),
		int64(e.Available.Own), int64(e.Held.Trial), int64(e.Held.Own), string(e.Account), int64(e.Counter),
		e.Ref, e.SessionID, e.OrderID, e.Description, micros(e.At), int64(e.BalanceAfter))
	if err != nil {
		return e, err
	}
	if totals == (ports.Totals{}) {
		return e, nil
	}
	return e, r.addHour(e.AgentID, e.SessionID, e.At.Truncate(time.Hour), totals)
}

// entryTotals is what an entry adds to the money totals of its agent.
func entryTotals(e billing.Entry) (t ports.Totals) {
	switch e.Type {
	case billing.ChargeEntry:
		t.Charged = e.Charged()
	case billing.RefundEntry:
		t.Refunded = e.Amount()
	case billing.Recharge:
		t.Recharged = e.Amount()
	}
	return t
}

// refusal says why an entry moved nothing.
func (r ledger) refusal(ctx context.Context, e billing.Entry) error {
	var booked int
	if err := r.row(`SELECT COUNT(*) FROM ledger_entries WHERE ref = ?1`, e.Ref).Scan(&booked); err != nil {
		return fmt.Errorf("look for %s: %w", e.Ref, err)
	}
	if booked > 0 {
		return ports.ErrDuplicate
	}
	w, err := r.Wallet(ctx, e.AgentID)
	if err != nil {
		return err
	}
	return billing.ErrInsufficientBalance.
		With("required", -e.Amount()).With("available", w.Balance()).With("currency", domain.Currency)
}

func (r ledger) SetLive(_ context.Context, agentID string, delta int) error {
	n, err := r.exec(`UPDATE wallets SET live_sessions = live_sessions + ?2 WHERE agent_id = ?1`, agentID, delta)
	return changedWallet(agentID, n, err)
}

func (r ledger) PutBudget(_ context.Context, agentID string, b billing.Budget) error {
	row := toWalletRow(billing.Wallet{Budget: b})
	n, err := r.exec(`UPDATE wallets SET budget_daily = ?2, budget_total = ?3, budget_thresholds = ?4,
		budget_paused = ?5 WHERE agent_id = ?1`,
		agentID, row.BudgetDaily, row.BudgetTotal, row.BudgetThresholds, flag(row.BudgetPaused))
	return changedWallet(agentID, n, err)
}

func (r ledger) ExpireTrial(_ context.Context, agentID string) error {
	n, err := r.exec(`UPDATE wallets SET trial_expired = 1 WHERE agent_id = ?1`, agentID)
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

func (r ledger) TrialsDue(ctx context.Context, now time.Time, limit int) ([]string, error) {
	due, err := r.texts(ctx, `SELECT agent_id FROM wallets WHERE trial_expired = 0 AND trial_expires_at > 0
		AND trial_expires_at <= ?1 ORDER BY trial_expires_at LIMIT ?2`, micros(now), limit)
	if err != nil {
		return nil, fmt.Errorf("list trials that are due: %w", err)
	}
	return due, nil
}

const trialsEnding = walletSelect + `JOIN agents a ON a.id = w.agent_id
	WHERE w.trial_expired = 0 AND w.trial_expires_at > 0 AND w.trial_expires_at > ?1 AND w.trial_expires_at <= ?2
	AND w.funded = 0 AND a.webhook_url <> '' ORDER BY w.trial_expires_at LIMIT ?3`

func (r ledger) TrialsEnding(ctx context.Context, from, to time.Time, limit int) ([]billing.Wallet, error) {
	list, err := listed(ctx, r.tx, 0, scanWallet, trialsEnding, micros(from), micros(to), limit)
	if err != nil {
		return nil, fmt.Errorf("list trials that end: %w", err)
	}
	return list, nil
}

const addHour = `INSERT INTO usage_hours (agent_id, hour, session_id, up, down, connections, charged, refunded, recharged)
	VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
	ON CONFLICT (agent_id, hour, session_id) DO UPDATE SET
	up = usage_hours.up + excluded.up, down = usage_hours.down + excluded.down,
	connections = usage_hours.connections + excluded.connections,
	charged = usage_hours.charged + excluded.charged, refunded = usage_hours.refunded + excluded.refunded,
	recharged = usage_hours.recharged + excluded.recharged`

// addHour adds to the totals of one session in one hour.
func (t *tx) addHour(agentID, sessionID string, hour time.Time, add ports.Totals) error {
	return t.later("add to the hour of "+sessionID, addHour, agentID, micros(hour), sessionID, add.Up, add.Down, add.Connections,
		int64(add.Charged), int64(add.Refunded), int64(add.Recharged))
}
