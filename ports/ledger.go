package ports

import (
	"context"
	"time"

	"agentproxy/domain/billing"
)

// Posting is an entry and what else moves with it in the wallet.
type Posting = billing.Posting

// Ledger keeps wallets and the entries that moved them. An entry is never
// changed or removed: the database refuses it.
type Ledger interface {
	// Open makes the empty wallet of a new agent.
	Open(ctx context.Context, w billing.Wallet) error
	// Lock locks wallets in the order of their agents until the end of the unit, as Wallet
	// locks one. A unit that moves several locks them before it posts the first entry.
	Lock(ctx context.Context, agentIDs []string) error
	// Wallet returns the wallet of an agent, or account.ErrNotFound.
	Wallet(ctx context.Context, agentID string) (billing.Wallet, error)
	// Post books an entry and moves the wallet by it, which it locks: no part of the
	// wallet goes below zero, else billing.ErrInsufficientBalance. A restricted key
	// that bought the session of the entry moves with it. Post returns
	// the entry with its balance after. A Ref that exists is ErrDuplicate.
	Post(ctx context.Context, p Posting) (billing.Entry, error)
	// EntryOf finds the entry of a Ref; false if there is none.
	EntryOf(ctx context.Context, ref string) (billing.Entry, bool, error)
	// SetLive changes the count of live sessions, and that of the key that bought them, without moving money.
	SetLive(ctx context.Context, agentID, keyID string, delta int) error
	PutBudget(ctx context.Context, agentID string, b billing.Budget) error
	// ExpireTrial marks the trial of a wallet as over.
	ExpireTrial(ctx context.Context, agentID string) error
	// TrialsDue lists agents whose trial ended at or before now and is not yet
	// marked as over.
	TrialsDue(ctx context.Context, now time.Time, limit int) ([]string, error)
	// TrialsEnding lists wallets of agents with a webhook that are trials until a
	// time after from and until to, the first to end first.
	TrialsEnding(ctx context.Context, from, to time.Time, limit int) ([]billing.Wallet, error)
}
