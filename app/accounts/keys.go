package accounts

import (
	"context"
	"fmt"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
)

// NewKey asks for a further key.
type NewKey struct {
	Name    string
	Scopes  []account.Scope // none: the caller's
	Expires time.Time       // zero: never
}

// Create issues a further key with permissions that the caller has too. The key itself is returned only
// here.
func (u Keys) Create(ctx context.Context, c Caller, in NewKey) (account.Key, string, error) {
	text := u.a.secrets.NewKey()
	k := account.Key{ID: u.a.ids.New(account.KeyPrefix), AgentID: c.AgentID, Hash: u.a.secrets.Hash(text),
		Hint: account.Hint(text)}
	err := u.change(ctx, c.AgentID, func(ctx context.Context, tx repos, _ account.Agent, now time.Time) (err error) {
		k.Created, k.Expires = now, in.Expires
		if k.Name, k.Scopes, err = account.CheckKey(in.Name, in.Scopes, c.Scopes, in.Expires, now); err != nil {
			return err
		}
		others, err := tx.Keys().Further(ctx, c.AgentID)
		if err != nil {
			return err
		}
		live := 1 // the first one
		for _, other := range others {
			switch {
			case other.Expired(now): // makes room
				err = tx.Keys().Delete(ctx, c.AgentID, other.ID)
			case !other.Replaced: // of a replaced one there is one at most
				live++
			}
			if err != nil {
				return err
			}
		}
		if live >= account.MaxKeys {
			return account.ErrTooManyKeys
		}
		return tx.Keys().Insert(ctx, k)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return k, text, nil
}

// List lists the keys of an account that have not expired, newest first.
func (u Keys) List(ctx context.Context, agentID string) (list []account.Key, err error) {
	err = u.a.store.View(ctx, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		further, err := tx.Keys().Further(ctx, agentID)
		list = nil
		now := u.a.clock.Now()
		first, placed := agent.FirstKey(), false
		for _, k := range further {
			if !placed && k.Created.Before(first.Created) {
				list, placed = append(list, first), true
			}
			if !k.Expired(now) {
				list = append(list, k)
			}
		}
		if !placed {
			list = append(list, first)
		}
		return err
	})
	return list, err
}

// Delete ends a further key. One that may more than the caller is account.ErrScope.
func (u Keys) Delete(ctx context.Context, c Caller, id string) error {
	return u.change(ctx, c.AgentID, func(ctx context.Context, tx repos, agent account.Agent, _ time.Time) error {
		if id == agent.FirstKey().ID {
			return account.ErrFirstKey
		}
		others, err := tx.Keys().Further(ctx, c.AgentID)
		if err != nil {
			return err
		}
		for _, k := range others {
			if k.ID != id {
				continue
			}
			if err := account.Covers(c.Scopes, k.Grants()); err != nil {
				return err
			}
		}
		return tx.Keys().Delete(ctx, c.AgentID, id)
	})
}

// Rotate issues another first key, which is returned only here. The old one ends at once, or after
// the grace. The caller must have every permission and send the API secret: a further key with
// fewer could else obtain one with all.
func (u Keys) Rotate(ctx context.Context, c Caller, secret string, grace time.Duration) (account.Key, string, error) {
	if grace < 0 || grace > account.MaxGrace {
		return account.Key{}, "", domain.InvalidField("grace_seconds", "must be 0 to %d", int(account.MaxGrace/time.Second))
	}
	if err := account.Covers(c.Scopes, account.Scopes); err != nil {
		return account.Key{}, "", err
	}
	return u.rotate(ctx, c.AgentID, grace, func(agent account.Agent) error {
		if len(secret) > maxCredential || !u.a.secrets.Same(secret, agent.SecretHash) {
			return account.ErrInvalidKey.Msgf("the api_secret is wrong; rotate it to get another one")
		}
		return nil
	})
}

// Replace is like Rotate for the operator: the old key ends at once.
func (u Keys) Replace(ctx context.Context, agentID string) (account.Key, string, error) {
	return u.rotate(ctx, agentID, 0, func(account.Agent) error { return nil })
}

func (u Keys) rotate(
	ctx context.Context, agentID string, grace time.Duration, may func(account.Agent) error,
) (first account.Key, text string, err error) {
	text = u.a.secrets.NewKey()
	hash, oldID := u.a.secrets.Hash(text), u.a.ids.New(account.KeyPrefix)
	err = u.change(ctx, agentID, func(ctx context.Context, tx repos, agent account.Agent, now time.Time) error {
		if err := may(agent); err != nil {
			return err
		}
		others, err := tx.Keys().Further(ctx, agentID)
		if err != nil {
			return err
		}
		for _, k := range others {
			if !k.Replaced {
				continue
			}
			if err := tx.Keys().Delete(ctx, agentID, k.ID); err != nil {
				return err
			}
		}
		agent, old := agent.Replace(hash, account.Hint(text), oldID, grace, now)
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		first = agent.FirstKey()
		if grace == 0 {
			return nil
		}
		return tx.Keys().Insert(ctx, old)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return first, text, nil
}

// change changes the keys of an agent in one transaction, one change after the other, and announces it.
func (u Keys) change(ctx context.Context, agentID string,
	change func(context.Context, repos, account.Agent, time.Time) error) error {
	err := u.a.store.Update(ctx, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		return change(ctx, tx, agent, u.a.clock.Now())
	})
	if err == nil {
		u.a.hub.AgentChanged(agentID)
	}
	return err
}

// KeyUsesEvery is how often StoreUses is to be called: the precision of a key's last use.
const KeyUsesEvery = time.Minute

// usesAtOnce is of how many agents and keys StoreUses stores the use in a transaction. It is small,
// because calls that buy for one of the agents wait until all of them are written.
const usesAtOnce = 16

// StoreUses stores which keys were used since the last call, as used now. What it cannot store is lost:
// the next use is stored by a later call.
func (u Keys) StoreUses(ctx context.Context) error {
	var agentIDs, keyIDs []string
	for _, k := range u.a.uses.take() {
		if k.First {
			agentIDs = append(agentIDs, k.AgentID)
		} else {
			keyIDs = append(keyIDs, k.ID)
		}
	}
	now := u.a.clock.Now()
	for len(agentIDs)+len(keyIDs) > 0 {
		n, m := min(len(agentIDs), usesAtOnce), min(len(keyIDs), usesAtOnce)
		err := u.a.store.Update(ctx, func(ctx context.Context, tx repos) error {
			return tx.Keys().Used(ctx, now, agentIDs[:n], keyIDs[:m])
		})
		if err != nil {
			return fmt.Errorf("store the uses of keys: %w", err)
		}
		agentIDs, keyIDs = agentIDs[n:], keyIDs[m:]
	}
	return nil
}
