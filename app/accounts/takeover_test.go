package accounts_test

import (
	"errors"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

func (k keyTest) rotate(c accounts.Caller, in accounts.Rotation) (text string, err error) {
	k.t.Helper()
	_, text, err = k.Accounts.Keys.Rotate(k.t.Context(), c, in)
	return text, err
}

func (k keyTest) token(key, secret string) string {
	k.t.Helper()
	token, err := k.Accounts.IssueToken(k.t.Context(), accounts.IssueToken{APIKey: key, APISecret: secret})
	apptest.OK(k.t, err)
	return token.Text
}

func (k keyTest) tokenWorks(text string, want bool) {
	k.t.Helper()
	if _, err := k.Accounts.AuthenticateToken(k.t.Context(), text); want {
		apptest.OK(k.t, err)
	} else {
		apptest.ErrorIs(k.t, err, account.ErrExpiredToken)
	}
}

// Who has the key alone does not get the account, and the owner takes it back with the secret of before.
func TestALeakedKeyDoesNotTakeTheAccount(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	thief := k.caller(k.first.APIKey)
	stolen, _, err := k.Accounts.RotateSecret(t.Context(), thief, "")
	apptest.OK(t, err)
	until := k.Clock.Now().Add(account.SecretHold)

	_, err = k.rotate(thief, accounts.Rotation{Secret: stolen})
	apptest.ErrorIs(t, err, account.ErrSecretTooNew)
	apptest.Equal(t, "until", detail(t, err, "until"), any(until.UTC().Format(time.RFC3339)))
	// Another secret in its place, with it or without it, ends no hold.
	again, _, err := k.Accounts.RotateSecret(t.Context(), thief, stolen)
	apptest.OK(t, err)
	_, err = k.rotate(thief, accounts.Rotation{Secret: again})
	apptest.ErrorIs(t, err, account.ErrSecretTooNew)
	_, _, err = k.Accounts.RotateSecret(t.Context(), thief, "sk_wrong")
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
	k.Clock.Advance(time.Hour)
	again, _, err = k.Accounts.RotateSecret(t.Context(), thief, "")
	apptest.OK(t, err)

	second, err := k.rotate(k.caller(k.first.APIKey), accounts.Rotation{Secret: k.first.APISecret})
	apptest.OK(t, err)
	k.works(k.first.APIKey, false)
	owner := k.caller(second)
	fresh, _, err := k.Accounts.RotateSecret(t.Context(), owner, k.first.APISecret)
	apptest.OK(t, err)
	for _, old := range []string{stolen, again, k.first.APISecret} {
		_, err = k.rotate(owner, accounts.Rotation{Secret: old})
		apptest.ErrorIs(t, err, account.ErrInvalidKey)
	}
	_, err = k.rotate(owner, accounts.Rotation{Secret: fresh})
	apptest.OK(t, err)
}

func TestTheHoldOfASecretEnds(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	all := k.caller(k.first.APIKey)
	secret, _, err := k.Accounts.RotateSecret(t.Context(), all, "")
	apptest.OK(t, err)
	k.Clock.Advance(account.SecretHold - time.Microsecond)
	_, err = k.rotate(all, accounts.Rotation{Secret: secret})
	apptest.ErrorIs(t, err, account.ErrSecretTooNew)
	k.Clock.Advance(time.Microsecond)
	_, err = k.rotate(all, accounts.Rotation{Secret: k.first.APISecret})
	apptest.ErrorIs(t, err, account.ErrInvalidKey)
	key, err := k.rotate(all, accounts.Rotation{Secret: secret})
	apptest.OK(t, err)
	// With the current secret a new one is good at once, and so is the operator's command without any.
	secret, _, err = k.Accounts.RotateSecret(t.Context(), k.caller(key), secret)
	apptest.OK(t, err)
	key, err = k.rotate(k.caller(key), accounts.Rotation{Secret: secret})
	apptest.OK(t, err)
	_, _, err = k.Accounts.RotateSecret(t.Context(), k.caller(key), "")
	apptest.OK(t, err)
	_, _, err = k.Accounts.Keys.Replace(t.Context(), k.first.Agent.ID)
	apptest.OK(t, err)
}

// A key in its grace, and a token of one, go on and change no credential.
func TestAReplacedKeyChangesNoCredential(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	token := k.token(k.first.APIKey, k.first.APISecret)
	second, err := k.rotate(k.caller(k.first.APIKey), accounts.Rotation{Secret: k.first.APISecret, Grace: time.Hour})
	apptest.OK(t, err)
	further, _ := k.create(k.caller(second), accounts.NewKey{Name: "further"})
	byToken, err := k.Accounts.AuthenticateToken(t.Context(), token)
	apptest.OK(t, err)
	before := k.Dump()
	for _, old := range []accounts.Caller{k.caller(k.first.APIKey), byToken} {
		_, _, err = k.Accounts.RotateSecret(t.Context(), old, k.first.APISecret)
		apptest.ErrorIs(t, err, account.ErrScope)
		_, err = k.rotate(old, accounts.Rotation{Secret: k.first.APISecret})
		apptest.ErrorIs(t, err, account.ErrScope)
		_, _, err = k.Accounts.Keys.Create(t.Context(), old, accounts.NewKey{Name: "child"})
		apptest.ErrorIs(t, err, account.ErrScope)
		apptest.ErrorIs(t, k.Accounts.Keys.Delete(t.Context(), old, further.ID, accounts.EndChildren, accounts.Keep), account.ErrScope)
	}
	apptest.Equal(t, "the database", k.Dump(), before)
	k.tokenWorks(token, true)
	k.Clock.Advance(time.Hour)
	k.tokenWorks(token, false)
}

// What a leaked key left behind ends with it: keys that it issued, those that they issued, and tokens.
func TestWhatAKeyIssuedEndsWithIt(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	all := k.caller(k.first.APIKey)
	other, otherText := k.create(all, accounts.NewKey{Name: "other"})
	leaked, leakedText := k.create(all, accounts.NewKey{Name: "leaked"})
	_, childText := k.create(k.caller(leakedText), accounts.NewKey{Name: "child"})
	byToken, err := k.Accounts.AuthenticateToken(t.Context(), k.token(childText, k.first.APISecret))
	apptest.OK(t, err)
	_, grandchildText := k.create(byToken, accounts.NewKey{Name: "grandchild"})
	token := k.token(leakedText, k.first.APISecret)
	c, err := k.Accounts.AuthenticateToken(t.Context(), token)
	apptest.OK(t, err)
	refreshed, err := k.Accounts.RefreshToken(c)
	apptest.OK(t, err)
	ownToken := k.token(k.first.APIKey, k.first.APISecret)

	apptest.OK(t, k.Accounts.Keys.Delete(t.Context(), all, leaked.ID, accounts.EndChildren, accounts.Keep))
	for _, ended := range []string{leakedText, childText, grandchildText} {
		k.works(ended, false)
	}
	k.tokenWorks(token, false)
	k.tokenWorks(refreshed.Text, false)
	late, err := k.Accounts.RefreshToken(c) // of a caller that was authenticated before
	apptest.OK(t, err)
	k.tokenWorks(late.Text, false)
	k.works(otherText, true)
	k.tokenWorks(ownToken, true)

	keep, keepText := k.create(all, accounts.NewKey{Name: "keep"})
	_, keptText := k.create(k.caller(keepText), accounts.NewKey{Name: "kept"})
	apptest.OK(t, k.Accounts.Keys.Delete(t.Context(), all, keep.ID, accounts.KeepChildren, accounts.Keep))
	k.works(keepText, false)
	k.works(keptText, true)

	// A rotation of the first key ends what it issued at the end of the grace, or at once.
	brief, briefText := k.create(all, accounts.NewKey{Name: "brief", Expires: k.Clock.Now().Add(time.Minute)})
	second, err := k.rotate(all, accounts.Rotation{Secret: k.first.APISecret, Grace: time.Hour})
	apptest.OK(t, err)
	k.works(otherText, true)
	k.works(briefText, true)
	list, err := k.Accounts.Keys.List(t.Context(), all.AgentID)
	apptest.OK(t, err)
	for _, key := range list {
		switch want := k.Clock.Now().Add(time.Hour); key.ID {
		case brief.ID:
			apptest.Equal(t, "the end of what ends before", key.Expires, brief.Expires)
		case other.ID:
			apptest.Equal(t, "the end of a child", key.Expires, want)
		}
	}
	k.tokenWorks(ownToken, true)
	k.Clock.Advance(time.Hour)
	k.works(otherText, false)
	k.tokenWorks(ownToken, false)
	_, thirdsText := k.create(k.caller(second), accounts.NewKey{Name: "at once"})
	_, err = k.rotate(k.caller(second), accounts.Rotation{Secret: k.first.APISecret})
	apptest.OK(t, err)
	k.works(thirdsText, false)
}

// A key that expires is the latest end of its tokens and of the keys that it issues.
func TestAnExpiringKeyBoundsWhatItIssues(t *testing.T) {
	t.Parallel()
	k := openKeys(t)
	end := k.Clock.Now().Add(10 * time.Minute)
	_, text := k.create(k.caller(k.first.APIKey), accounts.NewKey{Name: "brief", Expires: end})
	token, err := k.Accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: text, APISecret: k.first.APISecret})
	apptest.OK(t, err)
	apptest.Equal(t, "the life of the token", token.Expires, 10*time.Minute)
	for _, asked := range []time.Time{{}, end.Add(time.Hour)} {
		child, _ := k.create(k.caller(text), accounts.NewKey{Name: "child", Expires: asked})
		apptest.Equal(t, "the end of the child", child.Expires, end)
	}
	sooner, _ := k.create(k.caller(text), accounts.NewKey{Name: "sooner", Expires: end.Add(-time.Minute)})
	apptest.Equal(t, "the end of a child that ends before", sooner.Expires, end.Add(-time.Minute))
	k.Clock.Advance(10 * time.Minute)
	k.tokenWorks(token.Text, false)
}

// A key that the service issued is found however many wrong ones its address has sent, and is looked up once when it
// has ended.
func TestWrongKeysLockNoRightOneOut(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	r := w.RegisterCredentials()
	full := func() error { return account.ErrRateLimited }
	_, err := w.Accounts.AuthenticateKey(t.Context(), account.EarlyAPIKey(r.APIKey[len(account.APIKeyPrefix):][:account.KeyRandom]), full)
	apptest.ErrorIs(t, err, account.ErrRateLimited)
	c, err := w.Accounts.AuthenticateKey(t.Context(), r.APIKey, full)
	apptest.OK(t, err)

	store := &readsStore{Store: w.Store.Store}
	w.Store.Store = store
	_, _, err = w.Accounts.Keys.Rotate(t.Context(), c, accounts.Rotation{Secret: r.APISecret})
	apptest.OK(t, err)
	for range 3 {
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, full)
		apptest.ErrorIs(t, err, account.ErrInvalidKey)
	}
}

// detail returns a detail of a refusal.
func detail(t *testing.T, err error, name string) any {
	t.Helper()
	e, ok := errors.AsType[*domain.Error](err)
	if !ok {
		t.Fatalf("%v is no refusal", err)
	}
	return e.Details[name]
}
