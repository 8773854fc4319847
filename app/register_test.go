package app_test

import (
	"strings"
	"testing"
	"time"

	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/test/fake"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	register := func(in accounts.Register) (accounts.Registered, error) {
		if in.Name == "" {
			in.Name = "  An agent  "
		}
		return w.accounts.Register(t.Context(), in)
	}
	partner, err := w.referrers.Add(t.Context(), "Partner", "CODE-1")
	ok(t, err)

	t.Run("a trial is granted for 14 days", func(t *testing.T) {
		r, err := register(accounts.Register{})
		ok(t, err)
		same(t, "the balance", r.Wallet.Balance(), 10*domain.Dollar)
		same(t, "the trial part", r.Wallet.Available.Trial, 10*domain.Dollar)
		same(t, "the expiry", r.Wallet.TrialExpiresAt, fake.Start.Add(14*24*time.Hour))
		if !r.IsTrial || r.Agent.Name != "An agent" || r.Agent.Status != account.Active {
			t.Errorf("registered %+v", r)
		}
		if !strings.HasPrefix(r.APIKey, "ak_") || !strings.HasPrefix(r.APISecret, "sk_") || r.WebhookSecret != "" {
			t.Errorf("credentials %q %q %q", r.APIKey, r.APISecret, r.WebhookSecret)
		}
		info, err := w.accounts.Info(t.Context(), r.Agent.ID)
		ok(t, err)
		if info.Wallet.Balance() != r.Wallet.Balance() || !info.IsTrial || info.Agent.BillingUserID == "" {
			t.Errorf("info is %+v", info)
		}
		same(t, "the ledger", w.entries(r.Agent.ID), "trial_grant 10000000")
	})
	t.Run("without a code it goes to the default agent, and no referral is named", func(t *testing.T) {
		for _, code := range []string{"", "   "} {
			r, err := register(accounts.Register{ReferralCode: code})
			ok(t, err)
			same(t, "the referrer", r.Agent.Referrer.Name, "openAgent")
			same(t, "referred", r.Referred, false)
		}
	})
	t.Run("a valid code names the referring agent", func(t *testing.T) {
		r, err := register(accounts.Register{ReferralCode: " CODE-1 "})
		ok(t, err)
		same(t, "the referrer", r.Agent.Referrer.ID, partner.ID)
		same(t, "referred", r.Referred, true)
	})
	t.Run("another code is refused and opens nothing", func(t *testing.T) {
		before := w.dump()
		for _, code := range []string{"code-1", "CODE-2", strings.Repeat("x", 65), "CODE\x00"} {
			_, err := register(accounts.Register{ReferralCode: code})
			refused(t, err, account.ErrReferralCode)
		}
		same(t, "the database", w.dump(), before)
	})
	t.Run("a disabled code is refused, and those who came by it keep it", func(t *testing.T) {
		r, err := register(accounts.Register{ReferralCode: "CODE-1"})
		ok(t, err)
		ok(t, w.referrers.Disable(t.Context(), "CODE-1"))
		_, err = register(accounts.Register{ReferralCode: "CODE-1"})
		refused(t, err, account.ErrReferralCode)
		info, err := w.accounts.Info(t.Context(), r.Agent.ID)
		ok(t, err)
		same(t, "the referrer", info.Agent.Referrer.Code, "CODE-1")
		list, err := w.referrers.List(t.Context())
		ok(t, err)
		if len(list) != 2 || !list[0].Default || !list[1].Disabled {
			t.Errorf("referrers %+v", list)
		}
		refused(t, w.referrers.Disable(t.Context(), "none"), account.ErrReferralCode)
	})
	t.Run("a webhook secret comes with a URL only", func(t *testing.T) {
		r, err := register(accounts.Register{Profile: account.Profile{WebhookURL: "https://example.com/hook"}})
		ok(t, err)
		if !strings.HasPrefix(r.WebhookSecret, "whsec_") || r.WebhookSecret != w.secrets.WebhookSecret(r.Agent.ID, 1) {
			t.Errorf("the secret is %q", r.WebhookSecret)
		}
	})
	t.Run("a bad profile is refused with its fields", func(t *testing.T) {
		before := w.dump()
		_, err := register(accounts.Register{Profile: account.Profile{Name: "x", ContactEmail: "no", WebhookURL: "http://plain.example"}})
		refused(t, err, domain.ErrInvalid)
		same(t, "the number of faults", len(err.(*domain.Error).Details["fields"].([]domain.FieldIssue)), 3)
		same(t, "the database", w.dump(), before)
	})
}

func TestRegisterWithoutTrial(t *testing.T) {
	t.Parallel()
	w := open(t, setup{trial: -1})
	r, err := w.accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	ok(t, err)
	if r.IsTrial || r.Wallet.Balance() != 0 || !r.Wallet.TrialExpiresAt.IsZero() || w.entries(r.Agent.ID) != "" {
		t.Errorf("registered %+v", r)
	}
}

func TestUpdateAccount(t *testing.T) {
	t.Parallel()
	w := open(t, setup{unruly: true})
	text := func(s string) *string { return &s }
	r, err := w.accounts.Register(t.Context(), accounts.Register{Profile: account.Profile{Name: "agent",
		ContactEmail: "a@example.com", Description: "about"}})
	ok(t, err)
	update := func(u account.Update) (accounts.Updated, error) {
		return w.accounts.Update(t.Context(), accounts.Update{AgentID: r.Agent.ID, Update: u})
	}
	t.Run("what is not given stays", func(t *testing.T) {
		w.clock.Advance(time.Minute)
		u, err := update(account.Update{Name: text("renamed")})
		ok(t, err)
		if u.Agent.Name != "renamed" || u.Agent.ContactEmail != "a@example.com" || u.Agent.Description != "about" ||
			!u.Agent.UpdatedAt.Equal(w.clock.Now()) || !u.Agent.CreatedAt.Equal(fake.Start) {
			t.Errorf("updated to %+v", u.Agent)
		}
	})
	t.Run("the first URL shows the webhook secret, later ones do not", func(t *testing.T) {
		u, err := update(account.Update{WebhookURL: text("https://example.com/a")})
		ok(t, err)
		same(t, "the secret", u.WebhookSecret, w.secrets.WebhookSecret(r.Agent.ID, 1))
		for _, url := range []string{"https://example.com/b", "", "https://example.com/c"} {
			u, err = update(account.Update{WebhookURL: text(url)})
			ok(t, err)
			same(t, "the secret", u.WebhookSecret, "")
			same(t, "the URL", u.Agent.WebhookURL, url)
		}
	})
	t.Run("an empty text clears what is optional, not the name", func(t *testing.T) {
		u, err := update(account.Update{ContactEmail: text(""), Description: text("")})
		ok(t, err)
		if u.Agent.ContactEmail != "" || u.Agent.Description != "" {
			t.Errorf("updated to %+v", u.Agent)
		}
		_, err = update(account.Update{Name: text("")})
		refused(t, err, domain.ErrInvalid)
	})
	t.Run("a refused update changes nothing", func(t *testing.T) {
		before := w.dump()
		_, err := update(account.Update{Name: text("other"), WebhookURL: text("ftp://example.com")})
		refused(t, err, domain.ErrInvalid)
		same(t, "the database", w.dump(), before)
	})
	t.Run("an unknown agent is not found", func(t *testing.T) {
		_, err := w.accounts.Update(t.Context(), accounts.Update{AgentID: "agt_none"})
		refused(t, err, account.ErrNotFound)
		_, err = w.accounts.Info(t.Context(), "agt_none")
		refused(t, err, account.ErrNotFound)
	})
	t.Run("accounts are listed newest first", func(t *testing.T) {
		second := w.register()
		list, err := w.accounts.List(t.Context(), domain.Page{Number: 1, Size: 20})
		ok(t, err)
		if list.Total != 2 || list.Items[0].ID != second {
			t.Errorf("listed %+v", list)
		}
	})
}
