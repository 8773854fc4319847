package app_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

func (w *world) credentials() accounts.Registered {
	w.t.Helper()
	r, err := w.accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	ok(w.t, err)
	return r
}

func (w *world) token(r accounts.Registered, scopes ...account.Scope) (accounts.IssuedToken, error) {
	return w.accounts.IssueToken(context.Background(), accounts.IssueToken{APIKey: r.APIKey, APISecret: r.APISecret, Scopes: scopes})
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	w := open(t, setup{perMinute: 600})
	r := w.credentials()
	t.Run("a key holds every scope", func(t *testing.T) {
		c, err := w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		ok(t, err)
		if c.AgentID != r.Agent.ID || c.Mode != accounts.ByAPIKey || c.PerMinute != 600 {
			t.Errorf("the caller is %+v", c)
		}
		for _, s := range account.Scopes {
			ok(t, c.May(s))
		}
	})
	t.Run("what is no key is refused", func(t *testing.T) {
		for _, key := range []string{"", "ak_", r.APIKey + "x", r.APISecret, strings.ToUpper(r.APIKey), "ak_" + strings.Repeat("a", 5000)} {
			_, err := w.accounts.AuthenticateKey(t.Context(), key)
			refused(t, err, account.ErrInvalidKey)
		}
	})
	t.Run("a token lives for an hour and holds what was asked for", func(t *testing.T) {
		tok, err := w.token(r, account.StatsRead, account.AccountRead, account.StatsRead)
		ok(t, err)
		if !slices.Equal(tok.Scopes, []account.Scope{account.AccountRead, account.StatsRead}) || tok.Expires != time.Hour ||
			tok.AgentID != r.Agent.ID || tok.Name != "agent" {
			t.Errorf("issued %+v", tok)
		}
		c, err := w.accounts.AuthenticateToken(t.Context(), tok.Text)
		ok(t, err)
		ok(t, c.May(account.StatsRead))
		refused(t, c.May(account.SessionsWrite), account.ErrScope)
		w.clock.Advance(time.Hour - time.Second)
		fresh, err := w.accounts.RefreshToken(c)
		ok(t, err)
		if !slices.Equal(fresh.Scopes, tok.Scopes) {
			t.Errorf("refreshed to %v", fresh.Scopes)
		}
		w.clock.Advance(2 * time.Second)
		_, err = w.accounts.AuthenticateToken(t.Context(), tok.Text)
		refused(t, err, account.ErrExpiredToken)
		_, err = w.accounts.AuthenticateToken(t.Context(), fresh.Text)
		ok(t, err)
	})
	t.Run("no scopes asked for are all", func(t *testing.T) {
		tok, err := w.token(r)
		ok(t, err)
		if !slices.Equal(tok.Scopes, account.Scopes) {
			t.Errorf("granted %v", tok.Scopes)
		}
		_, err = w.token(r, "root")
		refused(t, err, domain.ErrInvalid)
	})
	t.Run("a wrong pair is refused", func(t *testing.T) {
		other := w.credentials()
		for _, p := range [][2]string{{r.APIKey, other.APISecret}, {other.APIKey, r.APISecret}, {r.APIKey, ""}, {"", r.APISecret},
			{r.APISecret, r.APISecret}, {r.APIKey, strings.Repeat("x", 5000)}} {
			_, err := w.accounts.IssueToken(t.Context(), accounts.IssueToken{APIKey: p[0], APISecret: p[1]})
			refused(t, err, account.ErrInvalidKey)
		}
	})
	t.Run("what is no token is refused", func(t *testing.T) {
		for _, text := range []string{"", "x.y.z", r.APIKey, strings.Repeat(".", 1<<20)} {
			_, err := w.accounts.AuthenticateToken(t.Context(), text)
			refused(t, err, account.ErrExpiredToken)
		}
	})
	t.Run("a key cannot be refreshed", func(t *testing.T) {
		c, err := w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		ok(t, err)
		_, err = w.accounts.RefreshToken(c)
		refused(t, err, account.ErrExpiredToken)
	})
}

func TestRotateSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.credentials()
	old, err := w.token(r)
	ok(t, err)
	caller, err := w.accounts.AuthenticateToken(t.Context(), old.Text)
	ok(t, err)
	secret, at, err := w.accounts.RotateSecret(t.Context(), r.Agent.ID)
	ok(t, err)
	same(t, "rotated at", at, w.clock.Now())

	t.Run("older tokens fail at once, refreshed ones too", func(t *testing.T) {
		_, err = w.accounts.AuthenticateToken(t.Context(), old.Text)
		refused(t, err, account.ErrExpiredToken)
		// A caller authenticated before the rotation gets a token of before.
		late, err := w.accounts.RefreshToken(caller)
		ok(t, err)
		_, err = w.accounts.AuthenticateToken(t.Context(), late.Text)
		refused(t, err, account.ErrExpiredToken)
	})
	t.Run("the old secret is wrong, the new one right, the key stays", func(t *testing.T) {
		_, err := w.token(r)
		refused(t, err, account.ErrInvalidKey)
		r.APISecret = secret
		tok, err := w.token(r)
		ok(t, err)
		_, err = w.accounts.AuthenticateToken(t.Context(), tok.Text)
		ok(t, err)
		_, err = w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		ok(t, err)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		_, _, err := w.accounts.RotateSecret(t.Context(), "agt_none")
		refused(t, err, account.ErrNotFound)
	})
}

func TestRateLimitOfAnAgent(t *testing.T) {
	t.Parallel()
	w := open(t, setup{perMinute: 600})
	r := w.credentials()
	limit := func() int {
		c, err := w.accounts.AuthenticateKey(t.Context(), r.APIKey)
		ok(t, err)
		return c.PerMinute
	}
	same(t, "the limit", limit(), 600)
	for _, n := range []int{5, 0, accounts.MaxPerMinute} {
		ok(t, w.accounts.SetRateLimit(t.Context(), r.Agent.ID, n))
		same(t, "the limit", limit(), n)
		info, err := w.accounts.Info(t.Context(), r.Agent.ID)
		ok(t, err)
		same(t, "the limit shown", info.PerMinute, n)
	}
	for _, n := range []int{-1, accounts.MaxPerMinute + 1} {
		refused(t, w.accounts.SetRateLimit(t.Context(), r.Agent.ID, n), domain.ErrInvalid)
	}
}
