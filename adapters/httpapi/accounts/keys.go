package accounts

import (
	"context"
	"net/http"
	"time"

	"agentproxy/adapters/httpapi/endpoint"
	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/app/accounts"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
)

type newKeyBody struct {
	Name        string          `json:"name" minLength:"2" doc:"2 to 100 characters after trimming, no control characters." example:"CI"`
	Permissions []account.Scope `json:"permissions,omitempty" nullable:"true" maxItems:"50" doc:"None that the caller lacks; empty: all of the caller's."`
	ExpiresAt   string          `json:"expires_at,omitempty" nullable:"true" format:"date-time" doc:"When the key ends, in the future. Left out: never."`
	LimitsBody
}

type rotateKeyBody struct {
	APISecret    string `json:"api_secret" doc:"The secret that was shown at the registration or by rotate-secret."`
	GraceSeconds int    `json:"grace_seconds,omitempty" minimum:"0" maximum:"86400" doc:"How long the old key stays valid beside the new one; 0: it ends at once."`
}

type keyReply struct {
	KeyID       string           `json:"key_id" pattern:"^key_[a-z0-9]+$" doc:"Names the key; it is not a secret."`
	Name        string           `json:"name" doc:"For people."`
	Hint        value.MaybeText  `json:"hint" doc:"The last characters of the key; null for a key of an early version."`
	Permissions []string         `json:"permissions" doc:"What the key or token may do."`
	CreatedAt   value.Stamp      `json:"created_at" doc:"When it was made."`
	LastUsedAt  value.MaybeStamp `json:"last_used_at" doc:"Written once a minute, so up to a minute late; null: not used yet."`
	ExpiresAt   value.MaybeStamp `json:"expires_at" doc:"null: it does not expire."`
	KeyLimits
}

// KeyFields is keyReply under an exported name, by which huma reads it where it is embedded.
type KeyFields = keyReply

type issuedKeyReply struct {
	KeyFields
	APIKey string `json:"api_key" pattern:"^ak_" doc:"Sent in the header X-API-Key. Shown once."`
}

type keysReply struct {
	Items      []keyReply          `json:"items" doc:"This page."`
	Pagination endpoint.Pagination `json:"pagination" doc:"Where this page is in the list."`
}

// childrenInput is what becomes of the keys that a key issued.
type childrenInput struct {
	Children accounts.Children `query:"children" enum:"end,keep" doc:"Whether the keys that it issued end with it, which is the default."`
}

type deleteKeyInput struct {
	KeyID string `path:"key_id" doc:"The key, prefix key_."`
	childrenInput
	Sessions accounts.Fate `query:"sessions" enum:"end,keep" doc:"Whether live sessions that it bought end with it; they are kept by default."`
}

type rotateKeyInput struct {
	childrenInput
	Body rotateKeyBody
}

// declareKeys declares the operations on the keys of an account.
func (s *service) declareKeys() {
	s.declareKeyChange()
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "create-key",
		Method:  http.MethodPost,
		Path:    "/account/keys",
		Tag:     "account",
		Summary: "Issue a further API key",
		Scope:   account.AccountWrite,
		Doc: "At most 20 keys, the first one included. A key holds no permission that the credential of " +
			"this call lacks, and ends with the key of this call at the latest.",
		OK:      []endpoint.Reply{{Status: http.StatusCreated, Doc: "The key, which is shown once.", Data: exampleIssuedKey}},
		Refuses: endpoint.Refusals(account.ErrTooManyKeys),
		Example: map[string]any{"name": "CI", "permissions": []string{"sessions:read"}, "expires_at": "2027-05-15T12:00:00Z",
			"budget": map[string]any{"total": 5}, "sessions": "own"},
	}, s.createKey)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "list-keys",
		Method:  http.MethodGet,
		Path:    "/account/keys",
		Tag:     "account",
		Summary: "The API keys of the account, newest first",
		Doc: "The first key, of the registration, is among them. No key is shown again, only its last " +
			"characters.",
		Scope: account.AccountRead,
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "A page of keys that have not expired.",
			Data: keysReply{[]keyReply{exampleKey}, endpoint.ExamplePagination}}},
	}, s.listKeys)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "delete-key",
		Method:  http.MethodDelete,
		Path:    "/account/keys/{key_id}",
		Tag:     "account",
		Summary: "End a further API key",
		Scope:   account.AccountWrite,
		Doc: "At once, on every replica within a second. The first key is replaced with POST " +
			"/account/rotate-key instead.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The keys that are left.", Data: keysReply{[]keyReply{exampleKey},
			endpoint.Pagination{Page: 1, PageSize: 100, Total: 1, TotalPages: 1, NextCursor: ""}}}},
		Refuses: endpoint.Refusals(account.ErrKeyNotFound, account.ErrFirstKey, account.ErrLastKey),
	}, s.deleteKey)
	endpoint.Declare(s.api, endpoint.Operation{
		ID:      "rotate-key",
		Method:  http.MethodPost,
		Path:    "/account/rotate-key",
		Tag:     "account",
		Summary: "Replace the first API key",
		Scope:   account.AccountWrite,
		Doc: "Needs the api_secret and a credential with every permission. The old key ends at once, or after " +
			"grace_seconds, with its tokens; a key that was replaced before ends now.",
		OK: []endpoint.Reply{{Status: http.StatusOK, Doc: "The new first key, which is shown once.",
			Data: exampleIssuedKey}},
		Refuses: endpoint.Refusals(account.ErrInvalidKey, account.ErrSecretTooNew, account.ErrLastKey),
		Example: map[string]any{"api_secret": "sk_…", "grace_seconds": 3600},
	}, func(ctx context.Context, in *rotateKeyInput) (int, issuedKeyReply, error) {
		k, text, err := s.Accounts.Keys.Rotate(ctx, endpoint.CallIn(ctx).Caller, accounts.Rotation{
			Secret: in.Body.APISecret, Grace: time.Duration(in.Body.GraceSeconds) * time.Second, Children: in.Children})
		return http.StatusOK, issuedKeyReply{toKey(accounts.KeyView{Key: k}), text}, err
	})
}

func (s *service) createKey(ctx context.Context, in *struct{ Body newKeyBody }) (int, issuedKeyReply, error) {
	ask := accounts.NewKey{Name: in.Body.Name,
		Scopes: in.Body.Permissions}
	if in.Body.ExpiresAt != "" {
		var issue string
		if ask.Expires, issue = value.ParseTime(in.Body.ExpiresAt); issue != "" {
			return 0, issuedKeyReply{}, domain.InvalidField("expires_at", "%s", issue)
		}
		ask.Expires = ask.Expires.Truncate(time.Microsecond)
	}
	change, err := in.Body.change("")
	if err != nil {
		return 0, issuedKeyReply{}, err
	}
	ask.Limits = change.Apply(account.Limits{})
	k, text, err := s.Accounts.Keys.Create(ctx, endpoint.CallIn(ctx).Caller, ask)
	v := accounts.KeyView{Key: k}
	v.Left, v.Limited = billing.KeyWallet{Limits: k.Limits}.Left(k.Created)
	return http.StatusCreated, issuedKeyReply{toKey(v), text}, err
}

func (s *service) listKeys(ctx context.Context, in *struct{ endpoint.Paging }) (int, keysReply, error) {
	all, err := s.Accounts.Keys.Views(ctx, endpoint.Caller(ctx))
	if err != nil {
		return 0, keysReply{}, err
	}
	list, err := domain.PagedAfter(all, in.Asked(), func(k accounts.KeyView) int64 { return domain.PlaceOf(k.ID) })
	items, pagination := endpoint.PageOf(list, toKey)
	return http.StatusOK, keysReply{items, pagination}, err
}

func (s *service) deleteKey(ctx context.Context, in *deleteKeyInput) (int, keysReply, error) {
	if len(in.KeyID) > 64 || !strictjson.IsName(in.KeyID) {
		return 0, keysReply{}, account.ErrKeyNotFound
	}
	if err := s.Accounts.Keys.Delete(ctx, endpoint.CallIn(ctx).Caller, in.KeyID, in.Children, in.Sessions); err != nil {
		return 0, keysReply{}, err
	}
	left, err := s.Accounts.Keys.Views(ctx, endpoint.Caller(ctx))
	items, pagination := endpoint.PageOf(domain.List[accounts.KeyView]{Items: left, Total: len(left),
		Page: domain.Page{Number: 1, Size: domain.MaxPageSize}}, toKey)
	return http.StatusOK, keysReply{items, pagination}, err
}

func toKey(k accounts.KeyView) keyReply {
	return keyReply{k.ID, k.Name, value.MaybeText(k.Hint),
		value.Each(k.Grants(), func(s account.Scope) string { return string(s) }),
		value.Stamp(k.Created), value.MaybeStamp(k.Used), value.MaybeStamp(k.Expires), toKeyLimits(k)}
}

var (
	exampleKey = keyReply{KeyID: "key_" + openapi.ExampleID, Name: "CI", Hint: "x4Ab",
		Permissions: []string{"sessions:read"},
		CreatedAt:   value.Stamp(openapi.ExampleTime), KeyLimits: exampleLimited}
	exampleIssuedKey = issuedKeyReply{exampleKey, "ak_…"}
)
