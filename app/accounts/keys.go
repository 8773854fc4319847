package accounts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// NewKey asks for a further key.
type NewKey struct {
	Name    string
	Scopes  []account.Scope // none: the caller's
	Expires time.Time       // zero: never
	Limits  account.Limits
}

// Create issues a further key with permissions that the caller has too. The key itself is returned only
// here. It ends with the key of the caller.
func (u Keys) Create(ctx context.Context, c Caller, in NewKey) (account.Key, string, error) {
	if err := c.MayChangeCredentials(); err != nil {
		return account.Key{}, "", err
	}
	limits, err := in.Limits.Check(u.a.transitions.Sells)
	if err != nil {
		return account.Key{}, "", err
	}
	text := u.a.secrets.NewKey()
	k := account.Key{ID: u.a.ids.New(account.KeyPrefix), AgentID: c.AgentID, Hash: u.a.secrets.Hash(text),
		Hint: account.Hint(text), Limits: limits}
	err = u.change(ctx, c.AgentID, func(ctx context.Context, tx repos, _ account.Agent, now time.Time) (err error) {
		k.Created, k.Expires = now, in.Expires
		if k.Name, k.Scopes, err = account.CheckKey(in.Name, in.Scopes, c.Scopes, in.Expires, now); err != nil {
			return err
		}
		if c.key != nil {
			k.Parent = c.key.ID
			k = k.EndsNoLaterThan(c.key.Expires)
		}
		if err := stillFree(ctx, tx, c); err != nil {
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
				err = endKeys(ctx, tx, c.AgentID, []string{other.ID}, time.Time{})
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
		if err := tx.Keys().Insert(ctx, k); err != nil || !limits.Restricted() {
			return err
		}
		return tx.KeyWallets().Restrict(ctx, c.AgentID, k.ID, limits, now)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return k, text, nil
}

// Live reports whether the key of a tag, as Caller.KeyTag returns it, has not ended.
func (u Keys) Live(ctx context.Context, agentID string, tag []byte) (bool, error) {
	agent, err := u.a.agentByID(ctx, agentID)
	if err != nil {
		return false, err
	}
	return agent.keyByTag(tag, u.a.clock.Now()) != nil, nil
}

// List lists the keys of an account that have not expired, newest first.
func (u Keys) List(ctx context.Context, agentID string) (list []account.Key, err error) {
	err = u.a.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		keys, err := allKeys(ctx, tx, agent)
		if err != nil {
			return err
		}
		list = nil
		now := u.a.clock.Now()
		first, placed := keys[0], false
		for _, k := range keys[1:] {
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

// Fate is what becomes of what a key issued, or bought, when it ends.
type Fate string

// The fates.
const (
	End  Fate = "end"
	Keep Fate = "keep"
)

// Children is the fate of the keys that a key issued.
type Children = Fate

// The fates of children.
const (
	EndChildren  = End
	KeepChildren = Keep
)

// Delete ends a further key, and the keys that it issued unless they are kept. One that may more than the caller
// is account.ErrScope, and account.ErrLastKey is returned where no key without a restriction would be left. With
// sessions the live ones that the keys bought end too.
func (u Keys) Delete(ctx context.Context, c Caller, id string, children Children, sessions Fate) error {
	if err := c.MayChangeCredentials(); err != nil {
		return err
	}
	var ended []string // sessions
	err := u.change(ctx, c.AgentID, func(ctx context.Context, tx repos, agent account.Agent, now time.Time) error {
		if id == agent.FirstKey().ID {
			return account.ErrFirstKey
		}
		keys, err := allKeys(ctx, tx, agent)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(keys, func(k account.Key) bool { return k.ID == id })
		if at < 0 {
			return account.ErrKeyNotFound
		}
		ids := []string{id}
		if children != KeepChildren {
			ids = append(ids, account.Descendants(keys, id)...)
		}
		err = cmp.Or(stillFree(ctx, tx, c), account.Covers(c.Scopes, keys[at].Grants()), account.KeepsFree(keys, ids...))
		if err != nil {
			return err
		}
		if ended = nil; sessions == End {
			if ended, err = endSessions(ctx, u.a, tx, c.AgentID, session.AgentRequest, now, ids...); err != nil {
				return err
			}
		}
		return endKeys(ctx, tx, c.AgentID, ids, time.Time{})
	})
	if err == nil {
		for _, id := range ended {
			u.a.hub.SessionChanged(id)
		}
	}
	return err
}

// endKeys ends keys at a time, the zero time being now.
func endKeys(ctx context.Context, tx repos, agentID string, ids []string, at time.Time) error {
	for _, id := range ids {
		end := func() error {
			return cmp.Or(tx.Keys().Delete(ctx, agentID, id), tx.KeyWallets().Free(ctx, agentID, id))
		}
		if !at.IsZero() {
			end = func() error { return tx.Keys().EndAt(ctx, agentID, id, at) }
		}
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// Rotation asks for another first key.
type Rotation struct {
	Secret   string        // the API secret
	Grace    time.Duration // how long the old key, and its children, go on
	Children Children      // of the old key
}

// Rotate issues another first key, which is returned only here. The old one ends at once, or after
// the grace, and with it the keys that it issued unless they are kept. The caller must have every
// permission and send the API secret: a further key with fewer could else obtain one with all.
// account.ErrSecretTooNew is returned for a secret that was issued without the former one.
func (u Keys) Rotate(ctx context.Context, c Caller, in Rotation) (account.Key, string, error) {
	if in.Grace < 0 || in.Grace > account.MaxGrace {
		return account.Key{}, "", domain.InvalidField("grace_seconds", "must be 0 to %d", int(account.MaxGrace/time.Second))
	}
	if err := c.MayChangeCredentials(); err != nil {
		return account.Key{}, "", err
	}
	if err := account.Covers(c.Scopes, account.Scopes); err != nil {
		return account.Key{}, "", err
	}
	return u.rotate(ctx, c.AgentID, in, func(ctx context.Context, tx repos, agent account.Agent, now time.Time) error {
		if err := stillFree(ctx, tx, c); err != nil {
			return err
		}
		keys, err := allKeys(ctx, tx, agent)
		if err != nil {
			return err
		}
		if in.Children != KeepChildren {
			if err := account.KeepsFree(keys, account.Descendants(keys, keys[0].ID)...); err != nil {
				return err
			}
		}
		proof, err := proveSecret(u.a.secrets, agent, in.Secret, now)
		if err != nil {
			return err
		}
		return agent.MayReplaceKey(proof, now)
	})
}

// Replace is like Rotate for the operator: the old key and the keys that it issued end at once, and the new one has no
// restriction.
func (u Keys) Replace(ctx context.Context, agentID string) (account.Key, string, error) {
	return u.rotate(ctx, agentID, Rotation{},
		func(ctx context.Context, tx repos, agent account.Agent, _ time.Time) error {
			return tx.KeyWallets().Free(ctx, agentID, agent.FirstKey().ID)
		})
}

func (u Keys) rotate(
	ctx context.Context, agentID string, in Rotation,
	may func(context.Context, repos, account.Agent, time.Time) error,
) (first account.Key, text string, err error) {
	text = u.a.secrets.NewKey()
	hash, oldID := u.a.secrets.Hash(text), u.a.ids.New(account.KeyPrefix)
	err = u.change(ctx, agentID, func(ctx context.Context, tx repos, agent account.Agent, now time.Time) error {
		if err := may(ctx, tx, agent, now); err != nil {
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
		agent, old := agent.Replace(hash, account.Hint(text), oldID, in.Grace, now)
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		first = agent.FirstKey()
		if in.Children != KeepChildren {
			if err := endChildren(ctx, tx, others, first, old.Expires, in.Grace); err != nil {
				return err
			}
		}
		if in.Grace == 0 {
			return nil
		}
		return tx.Keys().Insert(ctx, old)
	})
	if err != nil {
		return account.Key{}, "", err
	}
	return first, text, nil
}

// endChildren ends what the first key issued: at once, or at the end of its grace.
func endChildren(ctx context.Context, tx repos, others []account.Key, first account.Key, end time.Time,
	grace time.Duration) error {
	ids := account.Descendants(others, first.ID)
	if grace == 0 {
		return endKeys(ctx, tx, first.AgentID, ids, time.Time{})
	}
	for _, k := range others {
		if slices.Contains(ids, k.ID) && !k.Expires.IsZero() && k.Expires.Before(end) {
			ids = slices.DeleteFunc(ids, func(id string) bool { return id == k.ID })
		}
	}
	return endKeys(ctx, tx, first.AgentID, ids, end)
}

// change changes the keys of an agent in one transaction, one change after the other, and announces it.
func (u Keys) change(ctx context.Context, agentID string,
	change func(context.Context, repos, account.Agent, time.Time) error) error {
	err := u.a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
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
	for _, k := range u.a.uses.takeUses() {
		if k.First {
			agentIDs = append(agentIDs, k.AgentID)
		} else {
			keyIDs = append(keyIDs, k.ID)
		}
	}
	now := u.a.clock.Now()
	for len(agentIDs)+len(keyIDs) > 0 {
		n, m := min(len(agentIDs), usesAtOnce), min(len(keyIDs), usesAtOnce)
		err := u.a.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
			return tx.Keys().Used(ctx, now, agentIDs[:n], keyIDs[:m])
		})
		if err != nil {
			return fmt.Errorf("store the uses of keys: %w", err)
		}
		agentIDs, keyIDs = agentIDs[n:], keyIDs[m:]
	}
	return nil
}
