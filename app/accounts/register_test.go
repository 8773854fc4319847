package accounts_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/ports"
	"agentproxy/test/apptest"
	"agentproxy/test/fake"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	register := func(in accounts.Register) (accounts.Registered, error) {
		if in.Name == "" {
			in.Name = "  An agent  "
		}
		return w.Accounts.Register(t.Context(), in)
	}
	partner, err := w.Referrers.Add(t.Context(), "Partner", "CODE-1")
	apptest.OK(t, err)

	t.Run("a trial is granted for 14 days", func(t *testing.T) {
		r, err := register(accounts.Register{})
		apptest.OK(t, err)
		apptest.Equal(t, "the balance", r.Wallet.Balance(), 10*domain.Dollar)
		apptest.Equal(t, "the trial part", r.Wallet.Available.Trial, 10*domain.Dollar)
		apptest.Equal(t, "the expiry", r.Wallet.TrialExpiresAt, fake.Start.Add(14*24*time.Hour))
		if !r.IsTrial || r.Agent.Name != "An agent" || r.Agent.Status != account.Active {
			t.Errorf("registered %+v", r)
		}
		if !strings.HasPrefix(r.APIKey, "ak_") || !strings.HasPrefix(r.APISecret, "sk_") || r.WebhookSecret != "" {
			t.Errorf("credentials %q %q %q", r.APIKey, r.APISecret, r.WebhookSecret)
		}
		info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
		apptest.OK(t, err)
		if info.Wallet.Balance() != r.Wallet.Balance() || !info.IsTrial || info.Agent.BillingUserID == "" {
			t.Errorf("info is %+v", info)
		}
		apptest.Equal(t, "the ledger", w.Entries(r.Agent.ID), "trial_grant 10000000")
	})
	t.Run("without a code it goes to the default agent, and no referral is named", func(t *testing.T) {
		for _, code := range []string{"", "   "} {
			r, err := register(accounts.Register{ReferralCode: code})
			apptest.OK(t, err)
			apptest.Equal(t, "the referrer", r.Agent.Referrer.Name, "openAgent")
			apptest.Equal(t, "referred", r.Referred, false)
		}
	})
	t.Run("a valid code names the referring agent", func(t *testing.T) {
		r, err := register(accounts.Register{ReferralCode: " CODE-1 "})
		apptest.OK(t, err)
		apptest.Equal(t, "the referrer", r.Agent.Referrer.ID, partner.ID)
		apptest.Equal(t, "referred", r.Referred, true)
	})
	t.Run("another code is refused and opens nothing", func(t *testing.T) {
		before := w.Dump()
		for _, code := range []string{"code-1", "CODE-2", strings.Repeat("x", 65), "CODE\x00"} {
			_, err := register(accounts.Register{ReferralCode: code})
			apptest.ErrorIs(t, err, account.ErrReferralCode)
		}
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("a disabled code is refused, and those who came by it keep it", func(t *testing.T) {
		r, err := register(accounts.Register{ReferralCode: "CODE-1"})
		apptest.OK(t, err)
		apptest.OK(t, w.Referrers.Disable(t.Context(), "CODE-1"))
		_, err = register(accounts.Register{ReferralCode: "CODE-1"})
		apptest.ErrorIs(t, err, account.ErrReferralCode)
		info, err := w.Accounts.Info(t.Context(), r.Agent.ID)
		apptest.OK(t, err)
		apptest.Equal(t, "the referrer", info.Agent.Referrer.Code, "CODE-1")
		list, err := w.Referrers.List(t.Context())
		apptest.OK(t, err)
		if len(list) != 2 || !list[0].Default || !list[1].Disabled {
			t.Errorf("referrers %+v", list)
		}
		apptest.ErrorIs(t, w.Referrers.Disable(t.Context(), "none"), account.ErrReferralCode)
	})
	t.Run("a webhook secret comes with a URL only", func(t *testing.T) {
		r, err := register(accounts.Register{Profile: account.Profile{WebhookURL: "https://example.com/hook"}})
		apptest.OK(t, err)
		if !strings.HasPrefix(r.WebhookSecret, "whsec_") || r.WebhookSecret != w.Secrets.WebhookSecret(r.Agent.ID, 1) {
			t.Errorf("the secret is %q", r.WebhookSecret)
		}
	})
	t.Run("a bad profile is refused with its fields", func(t *testing.T) {
		before := w.Dump()
		_, err := register(accounts.Register{Profile: account.Profile{Name: "x", ContactEmail: "no", WebhookURL: "http://plain.example"}})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "the number of faults", len(err.(*domain.Error).Details["fields"].([]domain.FieldIssue)), 3)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
}

func TestRegisterWithoutTrial(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{TrialBalance: -1})
	r, err := w.Accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	apptest.OK(t, err)
	if r.IsTrial || r.Wallet.Balance() != 0 || !r.Wallet.TrialExpiresAt.IsZero() || w.Entries(r.Agent.ID) != "" {
		t.Errorf("registered %+v", r)
	}
}

func TestUpdateAccount(t *testing.T) {
	t.Parallel()
	w := apptest.Open(t, apptest.Options{RepeatUpdates: true})
	text := func(s string) *string { return &s }
	r, err := w.Accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent",
		ContactEmail: "a@example.com", Description: "about"}})
	apptest.OK(t, err)
	update := func(u account.Update) (accounts.Updated, error) {
		return w.Accounts.Update(t.Context(), accounts.Update{AgentID: r.Agent.ID, Update: u})
	}
	t.Run("what is not given stays", func(t *testing.T) {
		w.Clock.Advance(time.Minute)
		u, err := update(account.Update{Name: text("renamed")})
		apptest.OK(t, err)
		if u.Agent.Name != "renamed" || u.Agent.ContactEmail != "a@example.com" || u.Agent.Description != "about" ||
			!u.Agent.UpdatedAt.Equal(w.Clock.Now()) || !u.Agent.CreatedAt.Equal(fake.Start) {
			t.Errorf("updated to %+v", u.Agent)
		}
	})
	t.Run("the first URL shows the webhook secret, later ones do not", func(t *testing.T) {
		u, err := update(account.Update{WebhookURL: text("https://example.com/a")})
		apptest.OK(t, err)
		apptest.Equal(t, "the secret", u.WebhookSecret, w.Secrets.WebhookSecret(r.Agent.ID, 1))
		for _, url := range []string{"https://example.com/b", "", "https://example.com/c"} {
			u, err = update(account.Update{WebhookURL: text(url)})
			apptest.OK(t, err)
			apptest.Equal(t, "the secret", u.WebhookSecret, "")
			apptest.Equal(t, "the URL", u.Agent.WebhookURL, url)
		}
	})
	t.Run("an empty text clears what is optional, not the name", func(t *testing.T) {
		u, err := update(account.Update{ContactEmail: text(""), Description: text("")})
		apptest.OK(t, err)
		if u.Agent.ContactEmail != "" || u.Agent.Description != "" {
			t.Errorf("updated to %+v", u.Agent)
		}
		_, err = update(account.Update{Name: text("")})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
	})
	t.Run("a refused update changes nothing", func(t *testing.T) {
		before := w.Dump()
		_, err := update(account.Update{Name: text("other"), WebhookURL: text("ftp://example.com")})
		apptest.ErrorIs(t, err, domain.ErrInvalid)
		apptest.Equal(t, "the database", w.Dump(), before)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		_, err := w.Accounts.Update(t.Context(), accounts.Update{AgentID: "agt_none"})
		apptest.ErrorIs(t, err, account.ErrNotFound)
		_, err = w.Accounts.Info(t.Context(), "agt_none")
		apptest.ErrorIs(t, err, account.ErrNotFound)
	})
	t.Run("accounts are listed newest first", func(t *testing.T) {
		second := w.Register()
		list, err := w.Accounts.List(t.Context(), ports.AgentFilter{}, domain.Page{Number: 1, Size: 20})
		apptest.OK(t, err)
		if list.Total != 2 || list.Items[0].ID != second {
			t.Errorf("listed %+v", list)
		}
	})
}
