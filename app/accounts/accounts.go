// Package accounts holds the use cases of accounts, their credentials and the
// agents that referred them.
package accounts

import (
	"context"
	"time"

	"agentproxy/app/notify"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// Info is an account as its agent may read it.
type Info struct {
	Agent     account.Agent
	Wallet    billing.Wallet
	IsTrial   bool
	Tier      account.Tier
	PerMinute int // the rate limit in force; 0: unlimited
}

func (s *Service) info(agent account.Agent, w billing.Wallet, now time.Time) Info {
	return Info{Agent: agent, Wallet: w, IsTrial: w.IsTrial(now), Tier: s.TierOf(agent, w),
		PerMinute: s.perMinute(agent)}
}

// TierOf returns the tier of an account with a wallet.
func (s *Service) TierOf(agent account.Agent, w billing.Wallet) account.Tier {
	return agent.Tier(w.Credited(), s.cfg.FundedFrom)
}

func (s *Service) perMinute(agent account.Agent) int {
	if agent.PerMinute != nil {
		return *agent.PerMinute
	}
	return s.cfg.PerMinute
}

// Info returns an account with its wallet.
func (s *Service) Info(ctx context.Context, agentID string) (Info, error) {
	var out Info
	reads := ports.ReadSet{Agent: agentID, Money: true}
	err := s.store.View(ctx, reads, func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, agentID)
		out = s.info(agent, w, s.clock.Now())
		return err
	})
	return out, err
}

// Update changes what its fields name; nil leaves a field alone.
type Update struct {
	AgentID string
	account.Update
}

// Updated is an account after a change. WebhookSecret is set when the change
// gave the account its first webhook URL.
type Updated struct {
	Info
	WebhookSecret string
}

// Update changes an account.
func (s *Service) Update(ctx context.Context, in Update) (Updated, error) {
	var out Updated
	err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := s.clock.Now()
		agent, err := tx.Agents().Get(ctx, in.AgentID)
		if err != nil {
			return err
		}
		if agent, err = agent.Apply(in.Update, s.cfg.Dev, now); err != nil {
			return err
		}
		first := false
		if in.WebhookURL != nil {
			if first, err = setWebhook(ctx, tx, &agent); err != nil {
				return err
			}
		}
		if err := tx.Agents().Put(ctx, agent); err != nil {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, agent.ID)
		out = Updated{Info: s.info(agent, w, now)}
		if first {
			out.WebhookSecret = s.secrets.WebhookSecret(agent.ID, agent.WebhookVersion)
		}
		return err
	})
	if err == nil {
		s.hub.AgentChanged(in.AgentID)
	}
	return out, err
}

// setWebhook makes events go to the agent's URL, also when the webhook was off,
// and reports whether the agent has its first secret by that.
func setWebhook(ctx context.Context, tx repos, agent *account.Agent) (first bool, err error) {
	before, err := tx.Webhooks().Endpoint(ctx, agent.ID)
	if err != nil {
		return false, err
	}
	after := before.SetURL(agent.WebhookURL)
	agent.WebhookVersion = after.Version
	if after == before {
		return false, nil
	}
	return before.Version == 0 && after.Version > 0, tx.Webhooks().PutEndpoint(ctx, after)
}

// RotateSecret issues a new API secret, which is returned only here, and
// invalidates every token of the old one. old is the current one; without it, empty, the new one replaces no
// key for account.SecretHold. A wrong one is account.ErrInvalidKey.
func (s *Service) RotateSecret(ctx context.Context, c Caller, old string) (secret string, at time.Time, err error) {
	if err := c.MayChangeCredentials(); err != nil {
		return "", at, err
	}
	secret = s.secrets.NewSecret()
	hash, agentID := s.secrets.Hash(secret), c.AgentID
	err = s.changeIn(ctx, agentID, func(ctx context.Context, tx repos, agent *account.Agent, now time.Time) error {
		proof := account.NoSecret
		if old != "" {
			if proof, err = proveSecret(s.secrets, *agent, old, now); err != nil {
				return err
			}
		}
		*agent = agent.ReplaceSecret(hash, proof, now)
		at = now
		_, err := notify.Enqueue(ctx, tx, s.ids, now, notify.Notification{AgentID: agentID, Of: webhook.AccountSecretRotated,
			Data: map[string]string{"agent_id": agentID}})
		return err
	})
	if err != nil {
		return "", at, err
	}
	return secret, at, nil
}

// proveSecret returns what a secret proves of an agent.
func proveSecret(s ports.Secrets, agent account.Agent, secret string, now time.Time) (account.SecretProof, error) {
	return agent.ProveSecret(func(hash []byte) bool {
		return len(secret) <= maxCredential && s.Same(secret, hash)
	}, now)
}

// change edits an agent alone.
func (s *Service) change(ctx context.Context, agentID string, edit func(*account.Agent, time.Time)) error {
	return s.changeIn(ctx, agentID, func(_ context.Context, _ repos, agent *account.Agent, now time.Time) error {
		edit(agent, now)
		return nil
	})
}

// changeIn edits an agent in one transaction and announces the change.
func (s *Service) changeIn(ctx context.Context, agentID string,
	edit func(context.Context, repos, *account.Agent, time.Time) error) error {
	err := s.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		now := s.clock.Now()
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		if err := edit(ctx, tx, &agent, now); err != nil {
			return err
		}
		agent.UpdatedAt = now
		return tx.Agents().Put(ctx, agent)
	})
	if err == nil {
		s.hub.AgentChanged(agentID)
	}
	return err
}
