package accounts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/test/apptest"
)

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{PerMinute: 600})
	r := w.RegisterCredentials()
	t.Run("a key holds every scope", func(t *testing.T) {
		c, err := w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.OK(t, err)
		if c.AgentID != r.Agent.ID || c.Mode != accounts.ByAPIKey || c.PerMinute != 600 {
			t.Errorf("the caller is %+v", c)
		}
		for _, s := range account.Scopes {
			apptest.OK(t, c.May(s))
		}
	})
	t.Run("what is no key is refused", func(t *testing.T) {
		for _, key := range []string{"", "ak_", r.APIKey + "x", r.APISecret, strings.ToUpper(r.APIKey), "ak_" + strings.Repeat("a", 5000)} {
			_, err := w.Accounts.AuthenticateKey(t.Context(), key, nil)
			apptest.ErrorIs(t, err, account.ErrInvalidKey)
		}
	})
	t.Run("a token lives for an hour and holds what was asked for", func(t *testing.T) {
		tok, err := w.IssueToken(r, account.StatsRead, account.AccountRead, account.StatsRead)
		apptest.OK(t, err)
		if !slices.Equal(tok.Scopes, []account.Scope{account.AccountRead, account.StatsRead}) || tok.Expires != time.Hour ||
			tok.AgentID != r.Agent.ID || tok.Name != "agent" {
			t.Errorf("issued %+v", tok)
		}
		c, err := w.Accounts.AuthenticateToken(t.Context(), tok.Text)
		apptest.OK(t, err)
		apptest.OK(t, c.May(account.StatsRead))
		apptest.ErrorIs(t, c.May(account.SessionsWrite), account.ErrScope)
		w.Clock.Advance(time.Hour - time.Second)
		fresh, err := w.Accounts.RefreshToken(c)
		apptest.OK(t, err)
		if !slices.Equal(fresh.Scopes, tok.Scopes) {
			t.Errorf("refreshed to %v", fresh.Scopes)
		}
		w.Clock.Advance(2 * time.Second)
		_, err = w.Accounts.AuthenticateToken(t.Context(), tok.Text)
		apptest.ErrorIs(t, err, account.ErrExpiredToken)
		_, err = w.Accounts.AuthenticateToken(t.Context(), fresh.Text)
		apptest.OK(t, err)
	})
	t.Run("no scopes asked for are all", func(t *testing.T) {
		tok, err := w.IssueToken(r)
		apptest.OK(t, err)
		if !slices.Equal(tok.Scopes, account.Scopes) {
			t.Errorf("granted %v", tok.Scopes)
		}
		_, err = w.IssueToken(r, "root")
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	})
	t.Run("a wrong pair is refused", func(t *testing.T) {
		other := w.RegisterCredentials()
		for _, p := range [][2]string{{r.APIKey, other.APISecret}, {other.APIKey, r.APISecret}, {r.APIKey, ""}, {"", r.APISecret},
			{r.APISecret, r.APISecret}, {r.APIKey, strings.Repeat("x", 5000)}} {
			_, err := w.Accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: p[0], APISecret: p[1]})
			apptest.ErrorIs(t, err, account.ErrInvalidKey)
		}
	})
	t.Run("what is no token is refused", func(t *testing.T) {
		for _, text := range []string{"", "x.y.z", r.APIKey, strings.Repeat(".", 1<<20)} {
			_, err := w.Accounts.AuthenticateToken(t.Context(), text)
			apptest.ErrorIs(t, err, account.ErrExpiredToken)
		}
	})
	t.Run("a key cannot be refreshed", func(t *testing.T) {
		c, err := w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.OK(t, err)
		_, err = w.Accounts.RefreshToken(c)
		apptest.ErrorIs(t, err, account.ErrExpiredToken)
	})
}

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	w := apptest.New(t)
	r := w.RegisterCredentials()
	old, err := w.IssueToken(r)
	apptest.OK(t, err)
	caller, err := w.Accounts.AuthenticateToken(t.Context(), old.Text)
	apptest.OK(t, err)
	secret, at, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: r.Agent.ID}, "")
	apptest.OK(t, err)
	apptest.Equal(t, "rotated at", at, w.Clock.Now())

	t.Run("older tokens fail at once, refreshed ones too", func(t *testing.T) {
		_, err = w.Accounts.AuthenticateToken(t.Context(), old.Text)
		apptest.ErrorIs(t, err, account.ErrExpiredToken)
		// A caller authenticated before the rotation gets a token of before.
		late, err := w.Accounts.RefreshToken(caller)
		apptest.OK(t, err)
		_, err = w.Accounts.AuthenticateToken(t.Context(), late.Text)
		apptest.ErrorIs(t, err, account.ErrExpiredToken)
	})
	t.Run("the old secret is wrong, the new one right, the key stays", func(t *testing.T) {
		_, err := w.IssueToken(r)
		apptest.ErrorIs(t, err, account.ErrInvalidKey)
		r.APISecret = secret
		tok, err := w.IssueToken(r)
		apptest.OK(t, err)
		_, err = w.Accounts.AuthenticateToken(t.Context(), tok.Text)
		apptest.OK(t, err)
		_, err = w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.OK(t, err)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		_, _, err := w.Accounts.RotateSecret(t.Context(), accounts.Caller{AgentID: "agt_none"}, "")
		apptest.ErrorIs(t, err, account.ErrNotFound)
	})
}

func TestRateLimitOfAnAgent(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{PerMinute: 600})
	r := w.RegisterCredentials()
	limit := func() int {
		c, err := w.Accounts.AuthenticateKey(t.Context(), r.APIKey, nil)
		apptest.OK(t, err)
		return c.PerMinute
	}
	apptest.Equal(t, "the limit", limit(), 600)
	for _, n := range []int{5, 0, accounts.MaxPerMinute} {
		apptest.OK(t, w.Accounts.SetRateLimit(t.Context(), r.Agent.ID, n))
		apptest.Equal(t, "the limit", limit(), n)
		info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the limit shown", info.PerMinute, n)
	}
	for _, n := range []int{-1, accounts.MaxPerMinute + 1} {
		apptest.ErrorIs(t, w.Accounts.SetRateLimit(t.Context(), r.Agent.ID, n), domain.ErrInvalid)
	}
}
