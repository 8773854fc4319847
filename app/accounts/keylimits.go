package accounts

import (
	"cmp"
	"context"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/ports"
)

// allKeys returns the keys of an account with what restricts them, the first one first and then the newest. A first
// key that was replaced is restricted as the first one is.
func allKeys(ctx context.Context, tx repos, agent account.Agent) ([]account.Key, error) {
	further, err := tx.Keys().Further(ctx, agent.ID)
	if err != nil {
		return nil, err
	}
	wallets, err := tx.KeyWallets().List(ctx, agent.ID)
	limits := map[string]account.Limits{}
	for _, w := range wallets {
		limits[w.KeyID] = w.Limits
	}
	keys := append([]account.Key{agent.FirstKey()}, further...)
	for i, k := range keys {
		if k.Replaced {
			k.ID = keys[0].ID
		}
		keys[i].Limits = limits[k.ID]
	}
	return keys, err
}

// stillFree refuses a caller whose key was restricted since it was authenticated.
func stillFree(ctx context.Context, tx repos, c Caller) error {
	wallets, err := tx.KeyWallets().List(ctx, c.AgentID)
	key := c.Spender().KeyID
	if slices.ContainsFunc(wallets, func(w billing.KeyWallet) bool { return w.KeyID == key }) {
		return cmp.Or[error](err, account.ErrKeyRestricted)
	}
	return err
}

// KeyChange asks for other limits of a key. What a field does not give stays; nil within it is no limit.
type KeyChange struct {
	ID                        string
	Total, Daily, PerPurchase **domain.Money
	Products                  *[]string
	MaxSessions               *int
	Own                       *bool
}

// Apply returns the limits after the change.
func (in KeyChange) Apply(l account.Limits) account.Limits {
	set(&l.Budget.Total, in.Total)
	set(&l.Budget.Daily, in.Daily)
	set(&l.Budget.PerPurchase, in.PerPurchase)
	set(&l.Products, in.Products)
	set(&l.MaxSessions, in.MaxSessions)
	set(&l.Own, in.Own)
	return l
}

func set[T any](to, given *T) {
	if given != nil {
		*to = *given
	}
}

// Change changes what restricts a key, by a key without a restriction. A key that may more than the caller is
// account.ErrScope, and the last free one is account.ErrLastKey.
func (u Keys) Change(ctx context.Context, c Caller, in KeyChange) error {
	if err := c.MayChangeCredentials(); err != nil {
		return err
	}
	return u.change(ctx, c.AgentID, func(ctx context.Context, tx repos, agent account.Agent, now time.Time) error {
		keys, err := allKeys(ctx, tx, agent)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(keys, func(k account.Key) bool { return k.ID == in.ID && !k.Replaced && !k.Expired(now) })
		if at < 0 {
			return account.ErrKeyNotFound
		}
		if err := cmp.Or(stillFree(ctx, tx, c), account.Covers(c.Scopes, keys[at].Grants())); err != nil {
			return err
		}
		limits, err := in.Apply(keys[at].Limits).Check(u.a.transitions.Sells)
		switch {
		case err != nil:
			return err
		case !limits.Restricted():
			return tx.KeyWallets().Free(ctx, c.AgentID, in.ID)
		}
		if err := account.KeepsFree(keys, in.ID); err != nil {
			return err
		}
		return tx.KeyWallets().Restrict(ctx, c.AgentID, in.ID, limits, now)
	})
}

// KeyView is a key and what it spent.
type KeyView struct {
	account.Key
	Held, Spent domain.Money
	Left        domain.Money // the least that a limit leaves; with Limited
	Limited     bool         // whether a limit on money is set
	Live        int          // sessions
}

// Views lists the keys as List does, with what they spent.
func (u Keys) Views(ctx context.Context, agentID string) (views []KeyView, err error) {
	keys, err := u.List(ctx, agentID)
	if err != nil {
		return nil, err
	}
	err = u.a.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		spent, err := tx.Sessions().SpentByKey(ctx, agentID)
		if err != nil {
			return err
		}
		wallets, err := tx.KeyWallets().List(ctx, agentID)
		if err != nil {
			return err
		}
		views = make([]KeyView, len(keys))
		for i, k := range keys {
			s := spent[k.ID]
			views[i] = KeyView{Key: k, Held: s.Held, Spent: s.Spent, Live: s.Live}
			at := slices.IndexFunc(wallets, func(w billing.KeyWallet) bool { return w.KeyID == k.ID })
			if at >= 0 {
				views[i].Left, views[i].Limited = wallets[at].Left(u.a.clock.Now())
			}
		}
		return nil
	})
	return views, err
}
