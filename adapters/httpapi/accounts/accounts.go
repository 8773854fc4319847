// Package accounts declares the registration and the operations on an account and its credentials.
package accounts

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
)

type registerBody struct {
	_            struct{} `json:"-" additionalProperties:"true"`
	Name         string   `json:"name" minLength:"2" doc:"2 to 100 characters after trimming, no control characters." example:"Price watcher"`
	ContactEmail string   `json:"contact_email,omitempty" nullable:"true" maxLength:"254" doc:"An e-mail address." example:"ops@example.com"`
	WebhookURL   string   `json:"webhook_url,omitempty" nullable:"true" maxLength:"2048" doc:"Where notifications go: https (in development mode also http), no user info." example:"https://example.com/hook"`
	Description  string   `json:"description,omitempty" nullable:"true" maxLength:"500" doc:"What the agent does; it is only kept."`
	ReferralCode string   `json:"referral_code,omitempty" nullable:"true" doc:"The code of a referring agent, at most 64 characters, compared exactly after trimming."`
}

type registeredReply struct {
	AgentID       string         `json:"agent_id" doc:"Names the account."`
	Name          string         `json:"name" doc:"For people."`
	Status        string         `json:"status" enum:"active" doc:"Its state."`
	APIKey        string         `json:"api_key" doc:"Sent in the header X-API-Key. Shown once."`
	APISecret     string         `json:"api_secret" doc:"Needed for POST /auth/token only. Shown once."`
	Trial         Trial          `json:"trial" doc:"The trial credit."`
	CreatedAt     value.Stamp    `json:"created_at" doc:"When it was made."`
	Referral      *referralReply `json:"referral,omitempty" doc:"Only when a valid referral_code was given."`
	WebhookSecret string         `json:"webhook_secret,omitempty" doc:"Only when a webhook_url was given. Shown once."`
}

// Trial is the trial credit of an account.
type Trial struct {
	IsTrial   bool             `json:"is_trial" doc:"Until the first credited transfer or the expiry."`
	Balance   value.Money      `json:"balance" doc:"What of the trial credit is neither spent nor held."`
	Currency  string           `json:"currency" enum:"USD" doc:"Of all amounts."`
	ExpiresAt value.MaybeStamp `json:"expires_at" doc:"null when no trial credit was granted."`
}

type referralReply struct {
	AgentID string          `json:"agent_id" doc:"Names the account."`
	Name    string          `json:"name" doc:"For people."`
	Code    value.MaybeText `json:"code" doc:"null for the default referring agent."`
}

type accountReply struct {
	AgentID       string            `json:"agent_id" doc:"Names the account."`
	Name          string            `json:"name" doc:"For people."`
	ContactEmail  value.MaybeText   `json:"contact_email" doc:"Where the operator may write to; null if none was given."`
	WebhookURL    value.MaybeText   `json:"webhook_url" doc:"Where events go; null if nowhere."`
	Description   value.MaybeText   `json:"description" doc:"A text of the agent; null if none was given."`
	Status        account.Status    `json:"status" doc:"Its state."`
	AuthMode      accounts.AuthMode `json:"auth_mode" doc:"How this very request was authenticated."`
	RateLimit     rateLimitReply    `json:"rate_limit" doc:"The limit of requests in force."`
	Tier          account.Tier      `json:"tier" doc:"funded: enough own money came; verified: by the operator. Products may ask for a tier."`
	Trial         Trial             `json:"trial" doc:"The trial credit."`
	Referral      referralReply     `json:"referral" doc:"Who referred the account."`
	BillingUserID string            `json:"billing_user_id" doc:"The backend user that the account maps to."`
	CreatedAt     value.Stamp       `json:"created_at" doc:"When it was made."`
	UpdatedAt     value.Stamp       `json:"updated_at" doc:"When the profile was last changed."`
}

// AccountFields is accountReply under an exported name, by which huma reads it where it is embedded.
type AccountFields = accountReply

type updatedReply struct {
	AccountFields
	WebhookSecret string `json:"webhook_secret,omitempty" doc:"Only when this call set the account's first webhook_url. Shown once."`
}

type rateLimitReply struct {
	RequestsPerMinute int `json:"requests_per_minute" minimum:"0" doc:"0: unlimited."`
	Burst             int `json:"burst" minimum:"0" doc:"0: unlimited."`
}

type accountBody struct {
	_            struct{}  `json:"-" additionalProperties:"true"`
	Name         clearable `json:"name,omitempty" minLength:"2" nullable:"false" doc:"2 to 100 characters after trimming. It cannot be cleared."`
	ContactEmail clearable `json:"contact_email,omitempty" maxLength:"254" doc:"null or empty clears it."`
	WebhookURL   clearable `json:"webhook_url,omitempty" maxLength:"2048" doc:"null or empty clears it. Setting it, also to what it is, enables a webhook that was disabled."`
	Description  clearable `json:"description,omitempty" maxLength:"500" doc:"null or empty clears it."`
}

// clearable is a field of an update: nil was not given, null is the empty text.
type clearable struct{ to *string }

// UnmarshalJSON notes that the field was given.
func (c *clearable) UnmarshalJSON(b []byte) error {
	c.to = new(string)
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	return json.Unmarshal(b, c.to)
}

// Schema describes the type in the document.
func (clearable) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

// UseCases are the use cases that the operations on accounts call.
type UseCases struct{ Accounts *accounts.Service }

// service serves the operations on accounts.
type service struct {
	UseCases
	api *endpoint.API
}

// Declare declares the operations on accounts, their tokens, secrets and keys.
func Declare(a *endpoint.API, u UseCases) {
	s := &service{u, a}
	s.declareAccounts()
	s.declareCredentials()
	s.declareKeys()
	s.declareLimits()
}

// declareAccounts declares the registration and the profile.
func (s *service) declareAccounts() {
	for _, at := range []struct{ id, path, doc string }{
		{"register", "/account/register", "No credential is needed. The key and the secret are shown only in " +
			"this answer; store both. " +
			"The operator bounds the trial credit of a day, in all and by network; an account beyond that has none."},
		{"register-alias", "/auth/register", "The same operation as POST /account/register."},
	} {
		endpoint.Declare(s.api, endpoint.Operation{
			ID:      at.id,
			Method:  http.MethodPost,
			Path:    at.path,
			Tag:     "account",
			Open:    true,
			Before:  s.countRegistration,
			Doc:     at.doc,
			Summary: "Open an account with trial credit",
			OK: []endpoint.Reply{
				{
					Status: http.StatusCreated,
					Doc:    "The account and its credentials, which are shown once.",
					Data:   exampleRegistered,
				},
			},
			Refuses: []*domain.Error{account.ErrReferralCode, account.ErrRegistrationClosed, account.ErrRateLimited},
			Example: map[string]any{"name": "Price watcher", "contact_email": "ops@example.com"},
		}, s.register)
	}
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "get-account",
		Keys:    endpoint.AnyKey,
		Method:  http.MethodGet,
		Path:    "/account/info",
		Tag:     "account",
		Summary: "The account",
		Doc: "Its profile, tier, rate limit, trial and referring agent. It is the cheapest call that " +
			"proves a credential.",
		Scope: account.AccountRead,
		OK:    []endpoint.Reply{{Status: http.StatusOK, Doc: "The account.", Data: exampleAccount}},
	}, func(ctx context.Context, _ *struct{}) (int, accountReply, error) {
		info, err := s.Accounts.Info(ctx, endpoint.Caller(ctx))
		r := toAccount(ctx, info)
		if endpoint.Spender(ctx).Own {
			r.Trial.Balance = 0
		}
		return http.StatusOK, r, err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:        "update-account",
		Method:    http.MethodPut,
		Path:      "/account/info",
		Tag:       "account",
		Summary:   "Change the account",
		Doc:       "Only the fields that are sent change; null or an empty text clears one that may be empty.",
		Scope:     account.AccountWrite,
		EmptyBody: true,
		OK: []endpoint.Reply{
			{Status: http.StatusOK, Doc: "The account after the change.", Data: updatedReply{AccountFields: exampleAccount}},
		},
		Example: map[string]any{"name": "Price watcher 2", "webhook_url": nil},
	}, func(ctx context.Context, in *struct{ Body accountBody }) (int, updatedReply, error) {
		b := in.Body
		out, err := s.Accounts.Update(ctx, accounts.Update{AgentID: endpoint.Caller(ctx), Update: account.Update{
			Name: b.Name.to, ContactEmail: b.ContactEmail.to, WebhookURL: b.WebhookURL.to, Description: b.Description.to}})
		return http.StatusOK, updatedReply{toAccount(ctx, out.Info), out.WebhookSecret}, err
	})
}

// visitors returns what admits those who register.
func (s *service) visitors() accounts.Visitors {
	return accounts.Visitors{Accounts: s.Accounts, Limits: s.api.Limits}
}

// countRegistration refuses a registration if too many came from the same address.
func (s *service) countRegistration(ctx context.Context) error {
	c := endpoint.CallIn(ctx)
	r := c.Request()
	admitted, err := s.visitors().Admit(c, accounts.Visitor{Addr: s.api.ClientAddr(r), Peer: endpoint.PeerAddr(r),
		UserAgent: r.UserAgent()})
	c.Found = admitted
	return err
}

// register opens an account.
func (s *service) register(ctx context.Context, in *struct{ Body registerBody }) (int, registeredReply, error) {
	b := in.Body
	out, err := s.visitors().Register(ctx, endpoint.CallIn(ctx).Found.(accounts.Admitted), // of countRegistration
		accounts.Register{ReferralCode: b.ReferralCode, Profile: account.Profile{Name: b.Name,
			ContactEmail: b.ContactEmail, WebhookURL: b.WebhookURL, Description: b.Description}})
	if err != nil {
		return 0, registeredReply{}, err
	}
	return http.StatusCreated, toRegistered(out), nil
}

func toRegistered(out accounts.Registered) registeredReply {
	r := registeredReply{AgentID: out.Agent.ID, Name: out.Agent.Name, Status: string(out.Agent.Status),
		APIKey: out.APIKey, APISecret: out.APISecret, Trial: ToTrial(out.Wallet, out.IsTrial),
		CreatedAt: value.Stamp(out.Agent.CreatedAt), WebhookSecret: out.WebhookSecret}
	if out.Referred {
		referral := toReferral(out.Agent.Referrer)
		r.Referral = &referral
	}
	return r
}

// ToTrial returns the reply that shows the trial credit of a wallet.
func ToTrial(w billing.Wallet, isTrial bool) Trial {
	return Trial{isTrial, value.Money(w.Available.Trial), domain.Currency, value.MaybeStamp(w.TrialExpiresAt)}
}

func toReferral(r account.Referrer) referralReply {
	return referralReply{r.ID, r.Name, value.MaybeText(r.Code)}
}

func toAccount(ctx context.Context, i accounts.Info) accountReply {
	a := i.Agent
	return accountReply{AgentID: a.ID, Name: a.Name, ContactEmail: value.MaybeText(a.ContactEmail),
		WebhookURL: value.MaybeText(a.WebhookURL), Description: value.MaybeText(a.Description), Status: a.Status,
		AuthMode: endpoint.CallIn(ctx).Caller.Mode, RateLimit: rateLimitReply{i.PerMinute, i.PerMinute},
		Tier: i.Tier, Trial: ToTrial(i.Wallet, i.IsTrial), Referral: toReferral(a.Referrer), BillingUserID: a.BillingUserID,
		CreatedAt: value.Stamp(a.CreatedAt), UpdatedAt: value.Stamp(a.UpdatedAt)}
}

var (
	// ExampleTrial is the trial credit that the document shows.
	ExampleTrial = Trial{true, openapi.USD("10"), domain.Currency,
		value.MaybeStamp(openapi.ExampleTime.AddDate(0, 0, 14))}
	exampleReferral   = referralReply{"ref_" + openapi.ExampleID, "Partner", "PARTNER-1"}
	exampleRegistered = registeredReply{
		AgentID:       openapi.ExampleAgent,
		Name:          "Price watcher",
		Status:        "active",
		APIKey:        "ak_…",
		APISecret:     "sk_…",
		Trial:         ExampleTrial,
		CreatedAt:     value.Stamp(openapi.ExampleTime),
		Referral:      &exampleReferral,
		WebhookSecret: "whsec_…",
	}
	exampleAccount = accountReply{
		AgentID:       openapi.ExampleAgent,
		Name:          "Price watcher",
		ContactEmail:  "ops@example.com",
		Status:        "active",
		AuthMode:      "api_key",
		RateLimit:     rateLimitReply{600, 600},
		Tier:          "trial",
		Trial:         ExampleTrial,
		Referral:      referralReply{AgentID: "ref_" + openapi.ExampleID, Name: "openAgent"},
		BillingUserID: "usr_" + openapi.ExampleID,
		CreatedAt:     value.Stamp(openapi.ExampleTime),
		UpdatedAt:     value.Stamp(openapi.ExampleTime),
	}
)
