// Package accounts holds the use cases of accounts, their credentials and the
// agents that referred them.
package accounts

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"agentproxy/app/auditing"
	"agentproxy/app/changes"
	"agentproxy/app/notify"
	"agentproxy/app/sessions"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/webhook"
	"agentproxy/ports"
)

// TokenLifetime is how long a Bearer token lives.
const TokenLifetime = time.Hour

// Config is what the operator decides about accounts.
type Config struct {
	TrialBalance domain.Money
	TrialDays    int
	// TrialDailyTotal is the most trial credit that is granted on a UTC day, and TrialPerNetwork the
	// number of trials of one network (account.Network); 0: unlimited.
	TrialDailyTotal domain.Money
	TrialPerNetwork int
	Registration    account.Registration // empty: open
	KeepOriginDays  int                  // how long the origin of a registration is kept; 0: it is not
	Exits           Exits
	Dev             bool // development mode: webhooks may use http
	PerMinute       int  // default rate limit of an agent; 0: unlimited
}

// Service is the use cases of accounts and their credentials.
type Service struct {
	cfg         Config
	store       ports.Unit[repos]
	clock       ports.Clock
	ids         ports.IDs
	secrets     ports.Secrets
	tokens      ports.Tokens
	transitions *sessions.Transitions
	hub         *changes.Hub
	cache       *agentCache
	reads       singleflight.Group // of agents, by their id, while the cache may be stale
	uses        keyUses
	Keys        Keys
	SignIns     SignIns
}

// New returns the use cases. Their cache follows the changes of the hub.
func New(cfg Config, store ports.Store, clock ports.Clock, ids ports.IDs,
	secrets ports.Secrets, tokens ports.Tokens, transitions *sessions.Transitions, hub *changes.Hub) *Service {
	a := &Service{cfg: cfg, store: narrow(store), clock: clock, ids: ids, secrets: secrets, tokens: tokens,
		transitions: transitions, hub: hub, cache: newAgentCache()}
	a.Keys, a.SignIns = Keys{a}, SignIns{a}
	hub.Watch(a.cache)
	return a
}

// Register is a request for a new account.
type Register struct {
	account.Profile
	ReferralCode string
	Origin       account.Origin // zero if the operator opens the account
	FromExit     bool           // the origin is an exit of the service, which any agent can use
	Operator     bool           // the operator opens the account, whatever the way of registration
}

// Registered is a new account with its credentials, which are returned only here.
type Registered struct {
	Info
	APIKey        string
	APISecret     string
	WebhookSecret string // empty without a webhook URL
	Referred      bool   // a valid code was given
}

// Info is an account as its agent may read it.
type Info struct {
	Agent     account.Agent
	Wallet    billing.Wallet
	IsTrial   bool
	Tier      account.Tier
	PerMinute int // the rate limit in force; 0: unlimited
}

// Register opens an account: its wallet, its trial credit and its referring
// agent, all in one transaction.
func (a *Service) Register(ctx context.Context, in Register) (Registered, error) {
	reg, err := in.Profile.Check(a.cfg.Dev)
	if err != nil {
		return Registered{}, err
	}
	if err := a.mayRegister(in, strings.TrimSpace(in.ReferralCode)); err != nil {
		return Registered{}, err
	}
	in.Origin = in.Origin.Cleaned()
	kept := in.Origin
	if a.cfg.KeepOriginDays <= 0 {
		kept = account.Origin{}
	}
	out := Registered{APIKey: a.secrets.NewKey(), APISecret: a.secrets.NewSecret()}
	keyHash, secretHash := a.secrets.Hash(out.APIKey), a.secrets.Hash(out.APISecret)
	id, user, txn := a.ids.New("agt_"), a.ids.New("usr_"), a.ids.New(billing.IDPrefix)
	err = a.store.Update(ctx, func(ctx context.Context, tx repos) error {
		now := a.clock.Now()
		referrer, referred, err := assign(ctx, tx, in.ReferralCode)
		if err != nil {
			return err
		}
		agent := account.Agent{ID: id, BillingUserID: user, Name: reg.Name, ContactEmail: reg.ContactEmail,
			WebhookURL: reg.WebhookURL, Description: reg.Description, Status: account.Active,
			KeyHash: keyHash, KeyHint: account.Hint(out.APIKey), KeyCreatedAt: now, SecretHash: secretHash, TokenVersion: 1,
			Referrer: referrer, Origin: kept, CreatedAt: now, UpdatedAt: now}
		if agent.WebhookURL != "" {
			agent.WebhookVersion = 1
		}
		if err := tx.Agents().Insert(ctx, agent); err != nil {
			return err
		}
		trial, err := a.trialOf(ctx, tx, in, now)
		if err != nil {
			return err
		}
		wallet, err := a.openWallet(ctx, tx, agent, trial, txn, now)
		if err != nil {
			return err
		}
		out.Info, out.Referred = a.info(agent, wallet, now), referred
		auditing.SetSubject(ctx, id)
		return nil
	})
	if err != nil {
		return Registered{}, err
	}
	if out.Agent.WebhookVersion > 0 {
		out.WebhookSecret = a.secrets.WebhookSecret(id, out.Agent.WebhookVersion)
	}
	return out, nil
}

// assign finds the referring agent of a registration.
func assign(ctx context.Context, tx repos, code string) (account.Referrer, bool, error) {
	a, err := account.Assign(code, code != "",
		func(code string) (account.Referrer, error) { return tx.Referrers().ByCode(ctx, code) },
		func() (account.Referrer, error) { return tx.Referrers().Default(ctx) })
	return a.Referrer, a.Named, err
}

func (a *Service) openWallet(
	ctx context.Context, tx repos, agent account.Agent, trial domain.Money, txn string, now time.Time,
) (billing.Wallet, error) {
	w := billing.Wallet{AgentID: agent.ID}
	if trial > 0 {
		w.TrialExpiresAt = now.AddDate(0, 0, a.cfg.TrialDays)
	}
	if err := tx.Ledger().Open(ctx, w); err != nil || trial <= 0 {
		return w, err
	}
	e := billing.GrantTrial(trial)
	e.ID, e.AgentID, e.Ref, e.At = txn, agent.ID, "trial:"+agent.ID, now
	if _, err := tx.Ledger().Post(ctx, ports.Posting{Entry: e}); err != nil {
		return w, err
	}
	w.Available = e.Available
	return w, nil
}

func (a *Service) info(agent account.Agent, w billing.Wallet, now time.Time) Info {
	return Info{Agent: agent, Wallet: w, IsTrial: w.IsTrial(now), Tier: agent.Tier(w.Credited),
		PerMinute: a.perMinute(agent)}
}

func (a *Service) perMinute(agent account.Agent) int {
	if agent.PerMinute != nil {
		return *agent.PerMinute
	}
	return a.cfg.PerMinute
}

// Info returns an account with its wallet.
func (a *Service) Info(ctx context.Context, agentID string) (Info, error) {
	var out Info
	reads := ports.ReadSet{Agent: agentID, Money: true}
	err := a.store.View(ports.WithReadSet(ctx, reads), func(ctx context.Context, tx repos) error {
		agent, err := tx.Agents().Get(ctx, agentID)
		if err != nil {
			return err
		}
		w, err := tx.Ledger().Wallet(ctx, agentID)
		out = a.info(agent, w, a.clock.Now())
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
func (a *Service) Update(ctx context.Context, in Update) (Updated, error) {
	var out Updated
	err := a.store.Update(ctx, func(ctx context.Context, tx repos) error {
		now := a.clock.Now()
		agent, err := tx.Agents().Get(ctx, in.AgentID)
		if err != nil {
			return err
		}
		if agent, err = agent.Apply(in.Update, a.cfg.Dev, now); err != nil {
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
		out = Updated{Info: a.info(agent, w, now)}
		if first {
			out.WebhookSecret = a.secrets.WebhookSecret(agent.ID, agent.WebhookVersion)
		}
		return err
	})
	if err == nil {
		a.hub.AgentChanged(in.AgentID)
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
// invalidates every token of the old one.
func (a *Service) RotateSecret(ctx context.Context, agentID string) (secret string, at time.Time, err error) {
	secret = a.secrets.NewSecret()
	hash := a.secrets.Hash(secret)
	err = a.changeIn(ctx, agentID, func(ctx context.Context, tx repos, agent *account.Agent, now time.Time) error {
		agent.SecretHash = hash
		agent.TokenVersion++
		at = now
		_, err := notify.Enqueue(ctx, tx, a.ids, now, notify.Notification{AgentID: agentID, Of: webhook.AccountSecretRotated,
			Data: map[string]string{"agent_id": agentID}})
		return err
	})
	if err != nil {
		return "", at, err
	}
	return secret, at, nil
}

// change edits an agent alone.
func (a *Service) change(ctx context.Context, agentID string, edit func(*account.Agent, time.Time)) error {
	return a.changeIn(ctx, agentID, func(_ context.Context, _ repos, agent *account.Agent, now time.Time) error {
		edit(agent, now)
		return nil
	})
}

// changeIn edits an agent in one transaction and announces the change.
func (a *Service) changeIn(ctx context.Context, agentID string,
	edit func(context.Context, repos, *account.Agent, time.Time) error) error {
	err := a.store.Update(ctx, func(ctx context.Context, tx repos) error {
		now := a.clock.Now()
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
		a.hub.AgentChanged(agentID)
	}
	return err
}

// notFoundIs returns another error in place of account.ErrNotFound.
func notFoundIs(err, instead error) error {
	if errors.Is(err, account.ErrNotFound) {
		return instead
	}
	return err
}
