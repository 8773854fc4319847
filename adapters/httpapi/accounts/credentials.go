package accounts

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain/account"
)

type tokenBody struct {
	_           struct{}        `json:"-" additionalProperties:"true"`
	APIKey      string          `json:"api_key" doc:"The API key of the registration, or a further key."`
	APISecret   string          `json:"api_secret" doc:"The secret that was shown at the registration or by rotate-secret."`
	Permissions []account.Scope `json:"permissions,omitempty" nullable:"true" maxItems:"50" doc:"Fewer permissions than those of the key; empty: those of the key."`
}

type tokenReply struct {
	AccessToken string          `json:"access_token" doc:"Sent as Authorization: Bearer."`
	TokenType   string          `json:"token_type" enum:"Bearer" doc:"Always Bearer."`
	ExpiresIn   int             `json:"expires_in" doc:"Seconds."`
	Agent       tokenAgentReply `json:"agent" doc:"The account of the token."`
}

type tokenAgentReply struct {
	AgentID     string   `json:"agent_id" doc:"Names the account."`
	Name        string   `json:"name" doc:"For people."`
	Permissions []string `json:"permissions" doc:"What the key or token may do."`
}

type rotateSecretBody struct {
	APISecret string `json:"api_secret,omitempty" nullable:"true" doc:"The current one. Without it the new one replaces no key for 72 hours."`
}

type secretReply struct {
	APISecret string      `json:"api_secret" doc:"Shown once. Tokens of the old one fail."`
	RotatedAt value.Stamp `json:"rotated_at" doc:"When the new one took effect."`
}

// declareCredentials declares what issues tokens and secrets.
func (s *service) declareCredentials() {
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "issue-token",
		Method:  http.MethodPost,
		Path:    "/auth/token",
		Tag:     "account",
		Open:    true,
		Summary: "Exchange the key and the secret for a Bearer token",
		Doc: "The token lives for an hour and has the permissions of the key, or those that are asked for. " +
			"The key itself may be sent with every call instead.",
		OK:      []endpoint.Reply{{Status: http.StatusOK, Doc: "A token.", Data: exampleToken}},
		Refuses: endpoint.Refusals(account.ErrInvalidKey, account.ErrDisabled, endpoint.ErrScope, account.ErrRateLimited),
		Example: map[string]any{"api_key": "ak_…", "api_secret": "sk_…", "permissions": []string{"sessions:read"}},
	}, func(ctx context.Context, in *struct{ Body tokenBody }) (int, tokenReply, error) {
		g := s.api.Guess(endpoint.CallIn(ctx))
		t, err := s.Accounts.IssueToken(ctx, accounts.IssueToken{APIKey: in.Body.APIKey, APISecret: in.Body.APISecret,
			Scopes: in.Body.Permissions, AllowLookup: g.AllowLookup})
		return http.StatusOK, toToken(t), g.Ended(err)
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "refresh-token",
		Keys:    endpoint.AnyKey,
		Method:  http.MethodPost,
		Path:    "/auth/refresh",
		Tag:     "account",
		Summary: "Exchange a live token for a new one",
		Doc: "The new token has the permissions of the one that is sent. 24 hours after the first token, which the " +
			"key and the secret were exchanged for, the last one ends: expires_in shortens towards that.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A token.", Data: exampleToken}},
	}, func(ctx context.Context, _ *struct{}) (int, tokenReply, error) {
		t, err := s.Accounts.RefreshToken(endpoint.CallIn(ctx).Caller)
		return http.StatusOK, toToken(t), err
	})
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "rotate-secret",
		Method:  http.MethodPost,
		Path:    "/account/rotate-secret",
		Tag:     "account",
		Summary: "Replace the api_secret",
		Scope:   account.AccountWrite,
		Doc: "Every token issued with the old secret fails at once. The api_key stays. After a rotation without the " +
			"current secret the former one proves you for 72 hours: with it the key and the secret are replaced at once.",
		EmptyBody: true,
		Published: true,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The new secret.",
			Data: secretReply{"sk_…", value.Stamp(openapi.ExampleTime)}}},
		Refuses: endpoint.Refusals(account.ErrInvalidKey),
		Example: map[string]any{"api_secret": "sk_…"},
	}, func(ctx context.Context, in *struct{ Body rotateSecretBody }) (int, secretReply, error) {
		caller := endpoint.CallIn(ctx).Caller
		if d := s.api.Limits.TakeRotation(caller.AgentID, caller.PerMinute); !d.Allowed {
			return 0, secretReply{}, account.ErrRateLimited.After(d.RetryAfter)
		}
		secret, at, err := s.Accounts.RotateSecret(ctx, caller, in.Body.APISecret)
		return http.StatusOK, secretReply{secret, value.Stamp(at)}, err
	})
}

func toToken(t accounts.IssuedToken) tokenReply {
	return tokenReply{t.Text, "Bearer", int(t.Expires / time.Second), tokenAgentReply{t.AgentID, t.Name,
		value.Each(t.Scopes, func(s account.Scope) string { return string(s) })}}
}

var exampleToken = tokenReply{
	"eyJ…",
	"Bearer",
	3600,
	tokenAgentReply{openapi.ExampleAgent, "Price watcher", []string{"sessions:read", "sessions:write"}},
}
