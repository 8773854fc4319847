package accounts_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

// keyTest is an account with a caller of its first key.
type keyTest struct {
	*apptest.World
	t     *testing.T
	first accounts.Registered
}

func openKeys(t *testing.T) keyTest {
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	return keyTest{w, t, w.RegisterCredentials()}
}

func (k keyTest) caller(key string) accounts.Caller {
	k.t.Helper()
	c, err := k.Accounts.AuthenticateKey(k.t.Context(), key, nil)
	apptest.OK(k.t, err)
	return c
}

func (k keyTest) create(c accounts.Caller, in accounts.NewKey) (account.Key, string) {
	k.t.Helper()
	key, text, err := k.Accounts.Keys.Create(k.t.Context(), c, in)
	apptest.OK(k.t, err)
	return key, text
}

func (k keyTest) works(key string, want bool) {
	k.t.Helper()
	if _, err := k.Accounts.AuthenticateKey(k.t.Context(), key, nil); want {
		apptest.OK(k.t, err)
	} else {
		apptest.ErrorIs(k.t, err, account.ErrInvalidKey)
	}
}

// listed is the keys of the account as text.
func (k keyTest) listed() (got string) {
	k.t.Helper()
	list, err := k.Accounts.Keys.List(k.t.Context(), k.first.Agent.ID)
	apptest.OK(k.t, err)
	for _, key := range list {
		got += fmt.Sprintf("%s ..%s %d used %v, ", key.Name, key.Hint, len(key.Grants()), !key.Used.IsZero())
	}
	return got
}

func TestFurtherKeys(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	all := k.caller(k.first.APIKey)
	k.Clock.Advance(time.Minute)
	reader, text := k.create(all, accounts.NewKey{Name: " reader ", Scopes: []account.Scope{account.SessionsRead, account.AccountWrite}})
	c := k.caller(text)
	apptest.Equal(t, "the agent", c.AgentID, k.first.Agent.ID)
	apptest.Equal(t, "the permissions", fmt.Sprint(c.Scopes), "[account:write sessions:read]")
	apptest.OK(t, c.May(account.SessionsRead))
	apptest.ErrorIs(t, c.May(account.SessionsWrite), account.ErrScope)
	apptest.Equal(t, "listed", k.listed(), fmt.Sprintf("reader ..%s 2 used false, first ..%s 9 used false, ", account.Hint(text), account.Hint(k.first.APIKey)))

	t.Run("no key may more than the caller", func(t *testing.T) {
		before := k.Dump()
		for _, ask := range [][]account.Scope{{account.BillingWrite}, account.Scopes} {
			_, _, err := k.Accounts.Keys.Create(t.Context(), c, accounts.NewKey{Name: "more", Scopes: ask})
			apptest.ErrorIs(t, err, account.ErrScope)
		}
		apptest.Equal(t, "the database", k.Dump(), before)
		child, _ := k.create(c, accounts.NewKey{Name: "child"})
		apptest.Equal(t, "the permissions of the caller", fmt.Sprint(child.Scopes), "[account:write sessions:read]")
		_, _, err := k.Accounts.Keys.Rotate(t.Context(), c, accounts.Rotation{Secret: k.first.APISecret, Grace: 0, Children: accounts.KeepChildren})
		apptest.ErrorIs(t, err, account.ErrScope)
		_, err = k.Accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: text, APISecret: k.first.APISecret, Scopes: account.Scopes})
		apptest.ErrorIs(t, err, account.ErrScope)
		token, err := k.Accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: text, APISecret: k.first.APISecret})
		apptest.OK(t, err)
		apptest.Equal(t, "the permissions of its token", fmt.Sprint(token.Scopes), "[account:write sessions:read]")
		apptest.OK(t, k.Accounts.Keys.Delete(t.Context(), c, child.ID, accounts.EndChildren, accounts.Keep))
	})
	t.Run("a key is not ended by one that may less, and the first one by none", func(t *testing.T) {
		strong, strongText := k.create(all, accounts.NewKey{Name: "strong"})
		apptest.ErrorIs(t, k.Accounts.Keys.Delete(t.Context(), c, strong.ID, accounts.EndChildren, accounts.Keep), account.ErrScope)
		apptest.ErrorIs(t, k.Accounts.Keys.Delete(t.Context(), all, k.first.Agent.FirstKey().ID, accounts.EndChildren, accounts.Keep), account.ErrFirstKey)
		k.works(strongText, true)
		apptest.OK(t, k.Accounts.Keys.Delete(t.Context(), all, strong.ID, accounts.EndChildren, accounts.Keep))
		k.works(strongText, false)
	})
	t.Run("another agent's key is not found", func(t *testing.T) {
		other := k.caller(k.RegisterCredentials().APIKey)
		apptest.ErrorIs(t, k.Accounts.Keys.Delete(t.Context(), other, reader.ID, accounts.EndChildren, accounts.Keep), account.ErrKeyNotFound)
		apptest.ErrorIs(t, k.Accounts.Keys.Delete(t.Context(), all, "key_none", accounts.EndChildren, accounts.Keep), account.ErrKeyNotFound)
	})
	t.Run("a bad request creates nothing", func(t *testing.T) {
		before := k.Dump()
		for _, in := range []accounts.NewKey{{Name: "x"}, {Name: "a\x1b"}, {Name: "past", Expires: k.Clock.Now()},
			{Name: "scope", Scopes: []account.Scope{"admin"}}} {
			_, _, err := k.Accounts.Keys.Create(t.Context(), all, in)
			apptest.ErrorIs(t, err, domain.ErrInvalid)
		}
		apptest.Equal(t, "the database", k.Dump(), before)
	})
	t.Run("the end of a key is its end", func(t *testing.T) {
		_, text := k.create(all, accounts.NewKey{Name: "brief", Expires: k.Clock.Now().Add(time.Hour)})
		k.works(text, true)
		k.Clock.Advance(time.Hour - 1)
		k.works(text, true)
		k.Clock.Advance(time.Microsecond)
		k.works(text, false)
		list, err := k.Accounts.Keys.List(t.Context(), k.first.Agent.ID)
		apptest.OK(t, err)
		if slices.ContainsFunc(list, func(key account.Key) bool { return key.Name == "brief" }) {
			t.Error("an expired key is listed")
		}
	})
}

func TestAnAccountHasTwentyKeys(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	k := keyTest{w, t, w.RegisterCredentials()}
	all := k.caller(k.first.APIKey)
	_, _, err := w.Accounts.Keys.Rotate(t.Context(), all, accounts.Rotation{Secret: k.first.APISecret, Grace: time.Hour}) // the replaced key counts for nothing
	apptest.OK(t, err)
	k.create(all, accounts.NewKey{Name: "brief", Expires: w.Clock.Now().Add(time.Minute)})
	var issued, refused atomic.Int64
	apptest.Concurrently(40, func(i int) {
		_, _, err := w.Accounts.Keys.Create(t.Context(), all, accounts.NewKey{Name: fmt.Sprint("key ", i)})
		if err == nil {
			issued.Add(1)
		} else if apptest.ErrorIs(t, err, account.ErrTooManyKeys); true {
			refused.Add(1)
		}
	})
	apptest.Equal(t, "issued", issued.Load(), 18)
	apptest.Equal(t, "refused", refused.Load(), 22)
	w.Clock.Advance(time.Minute)
	k.create(all, accounts.NewKey{Name: "in place of the expired one"})
	_, _, err = w.Accounts.Keys.Create(t.Context(), all, accounts.NewKey{Name: "one more"})
	apptest.ErrorIs(t, err, account.ErrTooManyKeys)
}

func TestRotateKey(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	all := k.caller(k.first.APIKey)
	further, furtherText := k.create(all, accounts.NewKey{Name: "further"})
	before := k.Dump()
	for _, secret := range []string{"", "sk_wrong", k.first.APIKey} {
		_, _, err := k.Accounts.Keys.Rotate(t.Context(), all, accounts.Rotation{Secret: secret, Grace: 0, Children: accounts.KeepChildren})
		apptest.ErrorIs(t, err, account.ErrInvalidKey)
	}
	for _, grace := range []time.Duration{-time.Second, 24*time.Hour + time.Second} {
		_, _, err := k.Accounts.Keys.Rotate(t.Context(), all, accounts.Rotation{Secret: k.first.APISecret, Grace: grace, Children: accounts.KeepChildren})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	}
	apptest.Equal(t, "the database", k.Dump(), before)

	k.Clock.Advance(time.Minute)
	first, second, err := k.Accounts.Keys.Rotate(t.Context(), all, accounts.Rotation{Secret: k.first.APISecret, Grace: 0, Children: accounts.KeepChildren})
	apptest.OK(t, err)
	k.works(k.first.APIKey, false)
	k.works(second, true)
	k.works(furtherText, true)
	apptest.Equal(t, "the id stays", first.ID, k.first.Agent.FirstKey().ID)
	apptest.Equal(t, "listed", k.listed(), fmt.Sprintf("first ..%s 9 used false, further ..%s 9 used false, ", account.Hint(second), further.Hint))

	_, third, err := k.Accounts.Keys.Rotate(t.Context(), k.caller(second), accounts.Rotation{Secret: k.first.APISecret, Grace: time.Hour, Children: accounts.KeepChildren})
	apptest.OK(t, err)
	k.works(second, true)
	k.Clock.Advance(time.Hour - time.Microsecond)
	k.works(second, true)
	k.Clock.Advance(time.Microsecond)
	k.works(second, false)
	k.works(third, true)

	_, fourth, err := k.Accounts.Keys.Rotate(t.Context(), k.caller(third), accounts.Rotation{Secret: k.first.APISecret, Grace: 24 * time.Hour, Children: accounts.KeepChildren})
	apptest.OK(t, err)
	k.works(third, true)
	_, fifth, err := k.Accounts.Keys.Rotate(t.Context(), k.caller(fourth), accounts.Rotation{Secret: k.first.APISecret, Grace: 24 * time.Hour, Children: accounts.KeepChildren})
	apptest.OK(t, err)
	k.works(third, false) // of replaced keys the last one has a grace
	k.works(fourth, true)

	_, operators, err := k.Accounts.Keys.Replace(t.Context(), k.first.Agent.ID)
	apptest.OK(t, err)
	for _, old := range []string{fourth, fifth} {
		k.works(old, false)
	}
	k.works(operators, true)
	_, err = k.IssueToken(accounts.Registered{APIKey: operators, APISecret: k.first.APISecret})
	apptest.OK(t, err)
	_, _, err = k.Accounts.Keys.Replace(t.Context(), "agt_none")
	apptest.ErrorIs(t, err, account.ErrNotFound)
}

// Another replica accepts a key until it polls what changed.
func TestKeysHoldOnOtherReplicas(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	other, done := apptest.Start(t, apptest.Options{Database: k.Database})
	defer done()
	apptest.OK(t, other.Poll(t.Context()))
	replica := keyTest{other, t, k.first}
	all := k.caller(k.first.APIKey)
	key, text := k.create(all, accounts.NewKey{Name: "further"})
	replica.works(k.first.APIKey, true)
	replica.works(text, true)
	apptest.OK(t, k.Accounts.Keys.Delete(t.Context(), all, key.ID, accounts.EndChildren, accounts.Keep))
	_, fresh, err := k.Accounts.Keys.Rotate(t.Context(), all, accounts.Rotation{Secret: k.first.APISecret, Grace: 0, Children: accounts.KeepChildren})
	apptest.OK(t, err)
	apptest.OK(t, other.Poll(t.Context()))
	replica.works(text, false)
	replica.works(k.first.APIKey, false)
	replica.works(fresh, true)
}

func TestTheLastUseOfAKeyIsStoredOnceAMinute(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	all := k.caller(k.first.APIKey)
	_, text := k.create(all, accounts.NewKey{Name: "further"})
	used := func() (times []time.Time) {
		list, err := k.Accounts.Keys.List(t.Context(), k.first.Agent.ID)
		apptest.OK(t, err)
		for _, key := range list {
			times = append(times, key.Used)
		}
		return times
	}
	before := k.Dump()
	for range 3 {
		k.works(text, true)
	}
	apptest.Equal(t, "the database after uses", k.Dump(), before)
	k.Clock.Advance(30 * time.Second)
	apptest.OK(t, k.Accounts.Keys.StoreUses(t.Context()))
	at := k.Clock.Now()
	for i, got := range used() {
		if !got.Equal(at) {
			t.Errorf("key %d was used at %v, want %v", i, got, at)
		}
	}
	k.Clock.Advance(time.Minute)
	before = k.Dump()
	apptest.OK(t, k.Accounts.Keys.StoreUses(t.Context()))
	apptest.Equal(t, "the database without further uses", k.Dump(), before)
	k.works(text, true)
	apptest.OK(t, k.Accounts.Keys.StoreUses(t.Context()))
	if got := used(); !got[0].Equal(k.Clock.Now()) || !got[1].Equal(at) {
		t.Errorf("used at %v", got)
	}
}

func TestATokenIsRefreshedForADay(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	token, err := w.IssueToken(w.RegisterCredentials())
	apptest.OK(t, err)
	refresh := func() (accounts.IssuedToken, error) {
		c, err := w.Accounts.AuthenticateToken(t.Context(), token.Text)
		apptest.OK(t, err)
		return w.Accounts.RefreshToken(c)
	}
	for hours := 0.5; hours <= 23; hours += 0.5 {
		w.Clock.Advance(30 * time.Minute)
		token, err = refresh()
		apptest.OK(t, err)
		apptest.Equal(t, fmt.Sprint("the life after ", hours), token.Expires, time.Hour)
	}
	w.Clock.Advance(45 * time.Minute)
	token, err = refresh()
	apptest.OK(t, err)
	apptest.Equal(t, "the life before the end", token.Expires, 15*time.Minute)
	w.Clock.Advance(15*time.Minute - 500*time.Millisecond)
	_, err = refresh()
	apptest.ErrorIs(t, err, account.ErrExpiredToken)
	w.Clock.Advance(time.Second)
	_, err = w.Accounts.AuthenticateToken(t.Context(), token.Text)
	apptest.ErrorIs(t, err, account.ErrExpiredToken)
}

func TestAnUnknownKeyIsLookedUpIfThatIsAllowed(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	looks := 0
	refusal := account.ErrRateLimited
	never := func() error { looks++; return refusal }
	early := account.EarlyAPIKey(strings.Repeat("a", account.KeyRandom))
	_, err := k.Accounts.AuthenticateKey(t.Context(), early, never)
	apptest.ErrorIs(t, err, refusal)
	_, err = k.Accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: early,
		APISecret: k.first.APISecret, AllowLookup: never})
	apptest.ErrorIs(t, err, refusal)
	_, err = k.Accounts.AuthenticateKey(t.Context(), "no key", never)
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
	apptest.Equal(t, "asked", looks, 2)
	_, err = k.Accounts.AuthenticateKey(t.Context(), k.first.APIKey, never)
	apptest.OK(t, err)
	apptest.Equal(t, "asked for a key that was issued", looks, 2)
}
