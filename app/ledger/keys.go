package ledger

import (
	"context"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// keyWallet returns the money of a key; false for one without a restriction. Agents without restricted keys cost no
// query.
func (b Book) keyWallet(ctx context.Context, w billing.Wallet, keyID string) (billing.KeyWallet, bool, error) {
	if w.RestrictedKeys == 0 || keyID == "" {
		return billing.KeyWallet{}, false, nil
	}
	return b.tx.KeyWallets().Get(ctx, w.AgentID, keyID)
}

// MaySpend returns billing.ErrBudgetExceeded if the budget of the agent, or that of the key that buys or bought the
// session, does not allow a cost.
func (b Book) MaySpend(ctx context.Context, w billing.Wallet, keyID string, cost domain.Money) error {
	if err := w.MaySpend(cost, b.now); err != nil {
		return err
	}
	k, restricted, err := b.keyWallet(ctx, w, keyID)
	if err != nil || !restricted {
		return err
	}
	return k.MaySpend(cost, b.now)
}

// LiveOf returns how many live sessions a key has, and how many it may have; 0 without such a limit.
func (b Book) LiveOf(ctx context.Context, w billing.Wallet, keyID string) (live, most int, err error) {
	k, _, err := b.keyWallet(ctx, w, keyID)
	return k.LiveSessions, k.Limits.MaxSessions, err
}

// Spends returns account.ErrKeyRestricted if a key may not spend on a session of a product that a key bought or buys.
// A key that was restricted when it was authenticated, and has no limits any more, may have ended meanwhile:
// account.ErrInvalidKey.
func (b Book) Spends(ctx context.Context, w billing.Wallet, by account.Spender, buyer, product string) error {
	k, restricted, err := b.keyWallet(ctx, w, by.KeyID)
	switch {
	case err != nil:
		return err
	case by.Restricted && !restricted:
		return account.ErrInvalidKey
	}
	by.Restricted = restricted
	if err := by.May(buyer); err != nil {
		return err
	}
	return k.Limits.Allows(product)
}

// KeyBalance is what a restricted key may spend and has spent.
type KeyBalance struct {
	billing.KeyWallet
	Left    domain.Money // the least that a limit leaves for one purchase
	Limited bool         // whether a limit on money is set
}

// Key reads the money of a restricted key; false for a key without a restriction.
func (u *Wallet) Key(ctx context.Context, agentID, keyID string) (b KeyBalance, restricted bool, err error) {
	err = u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		if b.KeyWallet, restricted, err = tx.KeyWallets().Get(ctx, agentID, keyID); err != nil || !restricted {
			return err
		}
		spent, err := tx.Sessions().SpentByKey(ctx, agentID)
		b.Held, b.Spent = spent[keyID].Held, spent[keyID].Spent
		b.Left, b.Limited = b.KeyWallet.Left(u.clock.Now())
		return err
	})
	return b, restricted, err
}
