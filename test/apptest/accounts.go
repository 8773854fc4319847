package apptest

import (
	"context"

	"agentproxy/app/accounts"
	"agentproxy/app/ledger"
	"agentproxy/domain"
	"agentproxy/domain/account"
)

// Register opens an account and returns its id.
func (w *World) Register() string {
	w.T.Helper()
	return w.RegisterCredentials().Agent.ID
}

// WebhookURL is the URL of an agent of RegisterWithWebhook.
const WebhookURL = "https://example.com/hook"

// RegisterWithWebhook opens an account with WebhookURL and returns its id.
func (w *World) RegisterWithWebhook() string {
	w.T.Helper()
	r, err := w.Accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent", WebhookURL: WebhookURL}})
	OK(w.T, err)
	return r.Agent.ID
}

// RegisterFunded opens an account, adds whole dollars of own money to its trial credit and
// returns its id.
func (w *World) RegisterFunded(dollars domain.Money) string {
	w.T.Helper()
	id := w.Register()
	_, err := w.Wallet.Adjust(context.Background(), id, dollars*domain.Dollar, "for the test")
	OK(w.T, err)
	return id
}

// Balance returns what an agent can spend.
func (w *World) Balance(agent string) domain.Money {
	w.T.Helper()
	b, err := w.Wallet.Balance(context.Background(), agent)
	OK(w.T, err)
	return b.Wallet.Balance()
}

// SetBudget sets the limits of an agent's spending in dollars; an empty text is no limit.
func (w *World) SetBudget(agent, daily, total string, paused bool) {
	w.T.Helper()
	limit := func(text string) **domain.Money {
		var p *domain.Money
		if text != "" {
			m := Dollars(text)
			p = &m
		}
		return &p
	}
	_, err := w.Wallet.SetBudget(context.Background(), ledger.SetBudget{AgentID: agent, Daily: limit(daily), Total: limit(total), Paused: &paused})
	OK(w.T, err)
}

// RegisterCredentials opens an account and returns it with its API key and secret.
func (w *World) RegisterCredentials() accounts.Registered {
	w.T.Helper()
	r, err := w.Accounts.Register(context.Background(), accounts.Register{Profile: account.Profile{Name: "agent"}})
	OK(w.T, err)
	return r
}

// IssueToken exchanges the key and the secret of an account for a token of the scopes.
func (w *World) IssueToken(r accounts.Registered, scopes ...account.Scope) (accounts.IssuedToken, error) {
	return w.Accounts.IssueToken(context.Background(), accounts.IssueToken{APIKey: r.APIKey, APISecret: r.APISecret, Scopes: scopes})
}
