package accounts_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
)

func TestSignIn(t *testing.T) {
	ctx := context.Background()
	always := func() error { return nil }
	anyone := func(accounts.Caller) error { return nil }
	start := func(t *testing.T) (*apptest.World, accounts.Registered, string) {
		w := apptest.New(t)
		r := w.RegisterCredentials()
		token, c, err := w.Accounts.SignIns.Start(ctx, r.APIKey, always, anyone)
		apptest.OK(t, err)
		apptest.Equal(t, "the caller", c.AgentID, r.Agent.ID)
		return w, r, token
	}
	over := func(t *testing.T, w *apptest.World, token string) {
		t.Helper()
		_, err := w.Accounts.SignIns.Caller(ctx, token)
		apptest.ErrorIs(t, err, accounts.ErrSignedOut)
	}
	good := func(t *testing.T, w *apptest.World, token string) accounts.Caller {
		t.Helper()
		c, err := w.Accounts.SignIns.Caller(ctx, token)
		apptest.OK(t, err)
		return c
	}
	t.Run("it lives 12 hours, and survives a restart", func(t *testing.T) {
		w, r, token := start(t)
		w.Wire(apptest.Options{}, w.Clock, w.IDs)
		w.Clock.Advance(accounts.SignInLifetime - time.Second)
		apptest.Equal(t, "the caller", good(t, w, token).AgentID, r.Agent.ID)
		w.Clock.Advance(time.Second)
		over(t, w, token)
	})
	t.Run("a wrong key starts none, and is counted", func(t *testing.T) {
		w, _, _ := start(t)
		looked := 0
		_, _, err := w.Accounts.SignIns.Start(ctx, "ak_wrong", func() error { looked++; return nil }, anyone)
		if !errors.Is(err, account.ErrInvalidKey) || looked != 1 {
			t.Errorf("%v after %d look-ups", err, looked)
		}
	})
	t.Run("who is not admitted starts none", func(t *testing.T) {
		w, r, _ := start(t)
		w.Store.CountUpdates()
		_, _, err := w.Accounts.SignIns.Start(ctx, r.APIKey, always, func(accounts.Caller) error { return account.ErrRateLimited })
		if n := w.Store.CountUpdates(); !errors.Is(err, account.ErrRateLimited) || n != 0 {
			t.Errorf("%v after %d updates", err, n)
		}
	})
	t.Run("it ends by signing out, alone", func(t *testing.T) {
		w, r, token := start(t)
		other, _, err := w.Accounts.SignIns.Start(ctx, r.APIKey, always, anyone)
		apptest.OK(t, err)
		for range 2 {
			apptest.OK(t, w.Accounts.SignIns.End(ctx, token))
		}
		over(t, w, token)
		good(t, w, other)
	})
	t.Run("it ends with the secret", func(t *testing.T) {
		w, r, token := start(t)
		_, _, err := w.Accounts.RotateSecret(ctx, accounts.Caller{AgentID: r.Agent.ID}, "")
		apptest.OK(t, err)
		over(t, w, token)
	})
	t.Run("it ends with its key", func(t *testing.T) {
		w, r, _ := start(t)
		c, err := w.Accounts.AuthenticateKey(ctx, r.APIKey, nil)
		apptest.OK(t, err)
		_, text, err := w.Accounts.Keys.Create(ctx, c, accounts.NewKey{Name: "console",
			Scopes: []account.Scope{account.SessionsRead}, Expires: w.Clock.Now().Add(time.Hour)})
		apptest.OK(t, err)
		token, _, err := w.Accounts.SignIns.Start(ctx, text, always, anyone)
		apptest.OK(t, err)
		apptest.ErrorIs(t, good(t, w, token).May(account.BillingRead), account.ErrScope)
		w.Clock.Advance(time.Hour)
		over(t, w, token)
		_, text, err = w.Accounts.Keys.Create(ctx, c, accounts.NewKey{Name: "deleted"})
		apptest.OK(t, err)
		token, _, err = w.Accounts.SignIns.Start(ctx, text, always, anyone)
		apptest.OK(t, err)
		list, err := w.Accounts.Keys.List(ctx, r.Agent.ID)
		apptest.OK(t, err)
		for _, k := range list {
			if k.Name == "deleted" {
				apptest.OK(t, w.Accounts.Keys.Delete(ctx, c, k.ID, accounts.EndChildren, accounts.Keep))
			}
		}
		over(t, w, token)
	})
	t.Run("a disabled account is refused as such", func(t *testing.T) {
		w, r, token := start(t)
		apptest.OK(t, w.Accounts.Disable(ctx, r.Agent.ID, "abuse"))
		_, err := w.Accounts.SignIns.Caller(ctx, token)
		apptest.ErrorIs(t, err, account.ErrDisabled)
	})
	t.Run("the database holds no token", func(t *testing.T) {
		w, _, token := start(t)
		apptest.OK(t, w.DB.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx ports.Tx) error {
			_, found, err := tx.Idempotency().Find(ctx, "", "/console", token, time.Time{})
			if found {
				t.Error("the token is a key of the table")
			}
			return err
		}))
		over(t, w, "")
		over(t, w, token+"x")
	})
}
